//! Runs that flows order: reads the template as it is now, makes the run's manifest of it, admits and submits it. A missing
//! template is waited for. Also deletes such runs again. It never decides what follows.

use octoflow_engine::{
    admit::{admit, listed},
    kinds::{of_key, of_manifest},
};
use octoflow_model::{
    AttemptId, Report, RunId,
    request::{Answer, MakeRequest, SubmitRequest},
};
use octoflow_store::RunRow;
use serde_json::Value;

use super::{Key, ResourceWorker, Retry, action_error::ActionError, identity::Identity};
use crate::{Error, clock, controller::Submit};

/// An order for a run: of a stored template, or of a manifest.
#[derive(Clone, Debug)]
pub(super) enum OrderedRun {
    Made(Box<MakeRequest>),
    Given(Box<SubmitRequest>),
}

impl OrderedRun {
    fn child(&self) -> Option<RunId> {
        match self {
            Self::Made(request) => request.child,
            Self::Given(request) => request.child,
        }
    }

    fn namespace(&self) -> &str {
        match self {
            Self::Made(request) => &request.namespace,
            Self::Given(request) => &request.namespace,
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Made(request) => &request.name,
            Self::Given(request) => &request.name,
        }
    }

    fn seed(&self) -> &str {
        match self {
            Self::Made(request) => &request.seed,
            Self::Given(request) => &request.seed,
        }
    }
}

/// Result of trying to make a run.
enum Made {
    /// It was submitted. From here on the engine tells the run that ordered it what becomes of it.
    Submitted,
    /// Its template is missing.
    Held(Key, String),
    /// A run of that name is being deleted.
    NameBusy(String),
    /// It was made before and is over, or gone (`Null`).
    Over(Value),
}

/// How often a name is tried again that another run has, which is being deleted; the tries are [`super::RETRY`] apart.
const NAME_TRIES: u32 = 300;

impl ResourceWorker {
    /// Makes a run. `tries` is how often its name was busy before.
    pub(super) fn make(&mut self, attempt: AttemptId, order: OrderedRun, tries: u32) {
        match self.try_make(attempt, &order) {
            Ok(Made::NameBusy(why)) if tries < NAME_TRIES => {
                self.retries.insert(attempt, Retry::Make(order, tries + 1));
                self.report(Report::Waiting { attempt, at: clock::now(), why });
            }
            Ok(Made::NameBusy(why)) => self.answer(attempt, Answer::Refused(why)),
            Ok(Made::Submitted) => {}
            Ok(Made::Over(object)) => self.answer(attempt, Answer::Object(object)),
            Ok(Made::Held(key, why)) => {
                self.held.insert(attempt, (key, order));
                self.report(Report::Waiting { attempt, at: clock::now(), why });
            }
            Err(ActionError::Refused(why)) => self.answer(attempt, Answer::Refused(why)),
            Err(ActionError::Unavailable) => {
                self.retries.insert(attempt, Retry::Make(order, tries));
            }
        }
    }

    /// Makes the runs that waited for this object.
    pub(super) fn release_held(&mut self, changed: &Key) {
        let mut ready: Vec<AttemptId> =
            self.held.iter().filter(|(_, (key, _))| key == changed).map(|(attempt, _)| *attempt).collect();
        ready.sort_unstable();
        for attempt in ready {
            if let Some((_, order)) = self.held.remove(&attempt) {
                self.make(attempt, order, 0);
            }
        }
    }

    fn try_make(&self, attempt: AttemptId, order: &OrderedRun) -> Result<Made, ActionError> {
        if let Some(child) = order.child() {
            return match self.handle.store.reader()?.run(child)? {
                None => Ok(Made::Over(Value::Null)),
                Some(row) if row.archived => Ok(Made::Over(self.handle.object(child)?)),
                // It is continued here; the engine knows who ordered it.
                Some(_) => self.handle.restore_run(child).map(|_| Made::Submitted).map_err(Into::into),
            };
        }
        let manifest = match order {
            OrderedRun::Given(request) => request.manifest.clone(),
            OrderedRun::Made(request) => match self.of_template(request)? {
                Ok(manifest) => manifest,
                Err(missing) => return Ok(missing),
            },
        };
        let parent = self.handle.store.reader()?.run(attempt.run)?;
        let parent = parent.ok_or_else(|| "the run that asks is gone".to_owned())?;
        let admitted = admit(&manifest, &self.handle.catalog()?).map_err(|problems| listed(&problems.0))?;
        let submit = Submit {
            namespace: order.namespace().to_owned(),
            name: order.name().to_owned(),
            manifest: admitted.manifest,
            stored: admitted.stored,
            claim: None,
        };
        let uid = Identity::of(&parent.uid, order.seed()).uid();
        let kind = of_manifest(&submit.manifest).map_err(|problem| problem.message)?;
        let entered = match self.made_before_retry(attempt, order, &uid)? {
            None => self.handle.enter(submit, uid.clone(), Some(attempt), None),
            // Plugins may make another kind of it this time.
            Some(old) if old.archived && old.kind != kind.key => {
                self.remove_run(old.run)?;
                self.handle.enter(submit, uid.clone(), Some(attempt), None)
            }
            Some(old) if old.archived => self.handle.enter_instead(submit, uid.clone(), attempt, old.run),
            Some(_) => return Ok(Made::NameBusy(format!("'{}' is being done again by itself", order.name()))),
        };
        match entered {
            Ok(_) => Ok(Made::Submitted),
            // It was submitted by an earlier try, whose answer was lost with the storage.
            Err(_) if self.handle.store.reader()?.run_by_uid(&uid)?.is_some_and(|row| row.run > attempt.run) => {
                Ok(Made::Submitted)
            }
            Err(Error::NameTaken { .. }) if self.is_being_deleted(&manifest, order)? => {
                Ok(Made::NameBusy(format!("an earlier '{}' is being deleted", order.name())))
            }
            Err(Error::NameTaken { .. }) => {
                let noun = of_key(&parent.kind).map_or("run", |kind| kind.noun);
                Err(format!("'{}' exists already, and it is not of this {noun}; delete it and retry", order.name())
                    .into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the run that the same order was for before the run that orders it was retried.
    fn made_before_retry(
        &self,
        attempt: AttemptId,
        order: &OrderedRun,
        uid: &str,
    ) -> Result<Option<RunRow>, ActionError> {
        // A flow counts its orders, so each of them makes a run of its own.
        let OrderedRun::Given(_) = order else { return Ok(None) };
        let found = self.handle.store.reader()?.run_by_uid(uid)?;
        // A retry is a new run, so what it orders is newer.
        Ok(found.filter(|row| row.run < attempt.run))
    }

    /// Makes a manifest of the template as it is now, or says that it is missing.
    fn of_template(&self, request: &MakeRequest) -> Result<Result<Value, Made>, ActionError> {
        let kind = of_key(&request.template_kind).and_then(|kind| Some((kind, kind.make?)));
        let (kind, make) = kind.ok_or_else(|| format!("no runs are made of a {}", request.template_kind))?;
        let key = Key::new(kind.key, &request.namespace, &request.template);
        let Some(template) = self.stored_object(&key)? else {
            let why = format!("{} '{}' is missing in namespace '{}'", kind.name, request.template, request.namespace);
            return Ok(Err(Made::Held(key, why)));
        };
        Ok(Ok(make(&template, request)))
    }

    /// Reports whether the run that has the name is on its way out: it is being deleted, or the run it belonged to is gone
    /// and what it had made follows.
    fn is_being_deleted(&self, manifest: &Value, order: &OrderedRun) -> Result<bool, ActionError> {
        let kind = of_manifest(manifest).map_err(|problem| problem.message)?;
        let reader = self.handle.store.reader()?;
        let Some(row) = reader.run_by_name(order.namespace(), Some(kind.key), order.name())? else {
            // It has gone since.
            return Ok(true);
        };
        let object = match self.handle.object(row.run) {
            Ok(object) => object,
            Err(error) if error.is_outage() => return Err(error.into()),
            // It has gone since.
            Err(_) => return Ok(true),
        };
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Ok(true);
        }
        // The manifest names the run that orders it as its owner; one of the same kind owned the one that is there.
        let owners = |of: &Value| of["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let ours = owners(manifest);
        let is_same = |owner: &Value| {
            ours.iter().any(|own| owner["kind"] == own["kind"] && owner["apiVersion"] == own["apiVersion"])
        };
        let theirs = owners(&object);
        let Some(uid) = theirs.iter().filter(|owner| is_same(owner)).find_map(|owner| owner["uid"].as_str()) else {
            return Ok(false);
        };
        Ok(reader.run_by_uid(uid)?.is_none())
    }

    /// Deletes runs that are over, by uid. What cannot be deleted is told and stays.
    pub(super) fn remove_all(&mut self, attempt: AttemptId, uids: Vec<String>) {
        let mut left = Vec::new();
        for uid in &uids {
            let removed = self.handle.store.reader().and_then(|reader| reader.run_by_uid(uid)).map_err(Error::from);
            let removed = removed.and_then(|row| match row {
                Some(row) if row.archived => self.remove_run(row.run),
                Some(row) => Ok(vec![format!("'{}' runs again", row.name)]),
                None => Ok(Vec::new()),
            });
            match removed {
                Ok(warnings) => left.extend(warnings),
                Err(error) if error.is_outage() => {
                    self.retries.insert(attempt, Retry::Remove(uids));
                    return;
                }
                Err(error) => left.push(crate::supervisor::error_chain(&error)),
            }
        }
        let answer = if left.is_empty() { Answer::Object(Value::Null) } else { Answer::Failed(left.join("; ")) };
        self.answer(attempt, answer);
    }
}
