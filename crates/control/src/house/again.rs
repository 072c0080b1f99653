//! Doing finished runs again. A retry is a new submission that takes the place of the old run in one commit; a resubmit
//! is a new run beside it. What either takes over, the engine's plan says.

use std::{
    collections::BTreeMap,
    sync::{
        PoisonError,
        mpsc::{self, Receiver, Sender},
    },
};

use octoflow_engine::{
    argo::again::{self, Again, AgainOptions, Around, ResubmitOptions},
    taskset::{again as set_again, program::gang_name},
};
use octoflow_model::{
    Fact, RunId,
    argo::{GcStrategy, garbage::Garbage},
    before::Before,
    submission::{Stored, Submission},
    taskset,
};
use octoflow_store::{Reader, RunRow};
use serde::Deserialize;
use serde_json::Value;

use super::House;
use crate::{Claim, Error, clock, known, name_suffix, new_uid, read, sweep};

/// How often another name is drawn when one is taken.
const DRAWS: usize = 8;

impl House {
    /// What a retry would run again, and why. Nothing is changed.
    pub fn again_plan(&self, run: RunId, options: &AgainOptions) -> Result<Again, Error> {
        let (object, _) = self.settled(run)?;
        if object["kind"] == taskset::KIND {
            set_again::allows(&object, options)?;
            // All of it runs again, and nothing is kept.
            return Ok(Again { reuse: BTreeMap::new(), rerun: Vec::new() });
        }
        let reader = self.desk.store.reader()?;
        Ok(again::plan(&object, &around(&reader, run)?, options)?)
    }

    /// Runs a finished run again from where it went wrong. It keeps its name, its uid and its age, and gets a new number,
    /// which is the answer. When this returns the old one is gone and the new one is on disk.
    pub fn retry(&self, run: RunId, options: &AgainOptions) -> Result<RunId, Error> {
        self.again(run, options, None)
    }

    /// The same, and every fact of the run from the first on.
    pub fn retry_watched(&self, run: RunId, options: &AgainOptions) -> Result<(RunId, Receiver<Vec<Fact>>), Error> {
        let (watcher, facts) = mpsc::channel();
        Ok((self.again(run, options, Some(watcher))?, facts))
    }

    fn again(&self, run: RunId, options: &AgainOptions, watcher: Option<Sender<Vec<Fact>>>) -> Result<RunId, Error> {
        let (object, row) = self.settled(run)?;
        if object["kind"] == taskset::KIND {
            set_again::allows(&object, options)?;
            return self.set_again(run, row, set_again::renewed(&object), watcher);
        }
        let reader = self.desk.store.reader()?;
        // Refused before anything is touched.
        again::plan(&object, &around(&reader, run)?, options)?;
        let object = self.spare(run, object)?;
        let reader = self.desk.store.reader()?;
        let plan = again::plan(&object, &around(&reader, run)?, options)?;
        let fresh = again::renewed(&object, &options.parameters);
        let known = known::known(&self.desk.store, &row.namespace, &fresh.manifest, self.desk.host.as_deref())?;
        let submission = Submission {
            name: row.name,
            namespace: row.namespace,
            uid: row.uid,
            at: row.created,
            manifest: fresh.manifest,
            stored: fresh.stored,
            parent: row.parent,
            known,
            before: Some(Box::new(plan.before(read::numbers(&reader, run)?))),
        };
        self.desk.hand_in(submission, Some(run), None, watcher, |_| Vec::new())
    }

    /// A TaskSet begins once more, with the PodGroups as they are now.
    fn set_again(
        &self,
        run: RunId,
        row: RunRow,
        manifest: Value,
        watcher: Option<Sender<Vec<Fact>>>,
    ) -> Result<RunId, Error> {
        let reader = self.desk.store.reader()?;
        let set = taskset::TaskSet::deserialize(&manifest)
            .map_err(|error| Error::Object { what: format!("TaskSet `{}`", row.name), why: error.to_string() })?;
        let mut stored = Stored::default();
        for name in set.spec.roles.iter().filter_map(gang_name) {
            let Some(group) = reader.object("PodGroup", &row.namespace, name)? else { continue };
            let group: Value = serde_json::from_slice(&group.body).unwrap_or_default();
            let least = group["spec"]["minMember"].as_u64().and_then(|least| u32::try_from(least).ok());
            stored.groups.insert(name.to_owned(), least.unwrap_or_default());
        }
        let known = known::known(&self.desk.store, &row.namespace, &manifest, self.desk.host.as_deref())?;
        let before = Before { runs: read::numbers(&reader, run)?, ..Before::default() };
        let submission = Submission {
            name: row.name,
            namespace: row.namespace,
            uid: row.uid,
            at: row.created,
            manifest,
            stored,
            parent: row.parent,
            known,
            before: Some(Box::new(before)),
        };
        self.desk.hand_in(submission, Some(run), None, watcher, |_| Vec::new())
    }

    /// Makes a new run from an old one, open or finished. The answer is its number.
    pub fn resubmit(&self, run: RunId, options: &ResubmitOptions) -> Result<RunId, Error> {
        self.resubmit_once(run, options, None)
    }

    /// The same, but asking twice with one key makes one run.
    pub fn resubmit_once(&self, run: RunId, options: &ResubmitOptions, claim: Option<&Claim>) -> Result<RunId, Error> {
        if let Some(claim) = claim
            && let Some(made) = claim.made(&self.desk.store.reader()?)?
        {
            return Ok(made);
        }
        let (object, row) = self.settled(run)?;
        again::allows(&object, &options.parameters)?;
        let reader = self.desk.store.reader()?;
        let now = clock::now();
        let before = match options.memoized {
            true => Some(Box::new(again::memoized(&object, &around(&reader, run)?, now)?.before(Vec::new()))),
            false => None,
        };
        let fresh = again::resubmitted(&object, &options.parameters);
        let known = known::known(&self.desk.store, &row.namespace, &fresh.manifest, self.desk.host.as_deref())?;
        let submission = Submission {
            name: String::new(),
            namespace: row.namespace,
            uid: String::new(),
            at: clock::steady().shifted(known.skew),
            manifest: fresh.manifest,
            stored: fresh.stored,
            parent: None,
            known,
            before,
        };
        for _ in 1..DRAWS {
            let name = format!("{}{}", fresh.generate_name, name_suffix()?);
            let submission = Submission { name, uid: new_uid()?, ..submission.clone() };
            match self.desk.hand_in(submission, None, claim.cloned(), None, |_| Vec::new()) {
                Err(Error::NameTaken { .. }) => {}
                answer => return answer,
            }
        }
        let name = format!("{}{}", fresh.generate_name, name_suffix()?);
        let submission = Submission { name, uid: new_uid()?, ..submission };
        self.desk.hand_in(submission, None, claim.cloned(), None, |_| Vec::new())
    }

    /// The run as it stands. When it is over, that is on disk by now.
    fn settled(&self, run: RunId) -> Result<(Value, RunRow), Error> {
        let object = self.object(run)?;
        let phase = if object["kind"] == taskset::KIND { "state" } else { "phase" };
        let over = matches!(object["status"][phase].as_str(), Some("Succeeded" | "Failed" | "Error"));
        if over && self.desk.store.reader()?.archive(run)?.is_none() {
            // The watch closes once the end is kept.
            self.watch(run).iter().for_each(drop);
        }
        let row = self.desk.store.reader()?.run(run)?.ok_or(Error::UnknownRun(run))?;
        Ok((object, row))
    }

    /// Nothing of the old run is deleted from here on; what was, its record says.
    fn spare(&self, run: RunId, object: Value) -> Result<Value, Error> {
        let garbage = read::garbage(&self.desk.store.reader()?, run)?;
        if !garbage.iter().any(goes_at_the_end) && object["status"]["artifactGCStatus"].is_null() {
            return Ok(object);
        }
        let sweeping = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).release();
        if let Some(thread) = sweeping {
            // What a sweeper that died had to do is on disk.
            let _ = thread.join();
        }
        sweep::pardon(&self.data_dir, run).map_err(Error::Garbage)?;
        read::object(&self.desk.store.reader()?, run)
    }
}

fn around(reader: &Reader, run: RunId) -> Result<Around, Error> {
    let doomed = read::garbage(reader, run)?.into_iter().filter(goes_at_the_end).map(|item| item.node);
    Ok(Around { attempts: read::attempts(reader, run)?.into_iter().collect(), doomed: doomed.collect() })
}

fn goes_at_the_end(item: &Garbage) -> bool {
    item.strategy == GcStrategy::OnWorkflowCompletion
}
