//! Doing finished runs again. A retry is a new submission that takes the place of the old run in one commit; a resubmit
//! is a new run beside it. What either takes over, the engine's plan says.

use std::sync::{
    PoisonError,
    mpsc::{self, Receiver, Sender},
};

use octoflow_engine::{
    Dialect, dialect,
    rerun::{RerunOptions, RerunPlan, ResubmitOptions, RunContext},
};
use octoflow_model::{
    Fact, RunId,
    garbage::{Garbage, GcStrategy},
    submission::Submission,
};
use octoflow_store::{Reader, RunRow};
use serde_json::Value;

use super::Controller;
use crate::{Claim, Error, clock, maintenance::sweep, name_suffix, new_uid, objects::known, read};

/// How often another name is drawn when one is taken.
const DRAWS: usize = 8;

impl Controller {
    /// What a retry would run again, and why. Nothing is changed.
    pub fn again_plan(&self, run: RunId, options: &RerunOptions) -> Result<RerunPlan, Error> {
        let (object, _) = self.settled(run)?;
        let reader = self.handle.store.reader()?;
        Ok(dialect_of(run, &object)?.reruns.plan(&object, &context(&reader, run)?, options)?)
    }

    /// Runs a finished run again from where it went wrong. It keeps its name, its uid and its age, and gets a new number,
    /// which is the answer. When this returns the old one is gone and the new one is on disk.
    pub fn retry(&self, run: RunId, options: &RerunOptions) -> Result<RunId, Error> {
        self.plan(run, options, None)
    }

    /// The same, and every fact of the run from the first on.
    pub fn retry_watched(&self, run: RunId, options: &RerunOptions) -> Result<(RunId, Receiver<Vec<Fact>>), Error> {
        let (watcher, facts) = mpsc::channel();
        Ok((self.plan(run, options, Some(watcher))?, facts))
    }

    fn plan(&self, run: RunId, options: &RerunOptions, watcher: Option<Sender<Vec<Fact>>>) -> Result<RunId, Error> {
        let (object, row) = self.settled(run)?;
        let reruns = dialect_of(run, &object)?.reruns;
        let reader = self.handle.store.reader()?;
        // Refused before anything is touched.
        reruns.plan(&object, &context(&reader, run)?, options)?;
        let object = self.spare(run, object)?;
        let reader = self.handle.store.reader()?;
        let fresh = reruns.retry(&object, &context(&reader, run)?, options, &self.handle.catalog()?)?;
        let known = known::known(&self.handle.store, &row.namespace, &fresh.manifest, self.handle.host.as_deref())?;
        let submission = Submission {
            name: row.name,
            namespace: row.namespace,
            uid: row.uid,
            at: row.created,
            manifest: fresh.manifest,
            stored: fresh.stored,
            parent: row.parent,
            // Whoever ordered the first one was told of its end.
            ordered_by: None,
            context: known,
            previous: Some(Box::new(fresh.plan.before(read::numbers(&reader, run)?))),
        };
        self.handle.hand_in(submission, Some(run), None, watcher, |_| Vec::new())
    }

    /// Makes a new run from an old one, open or finished. The answer is its number.
    pub fn resubmit(&self, run: RunId, options: &ResubmitOptions) -> Result<RunId, Error> {
        self.resubmit_once(run, options, None)
    }

    /// The same, but asking twice with one key makes one run.
    pub fn resubmit_once(&self, run: RunId, options: &ResubmitOptions, claim: Option<&Claim>) -> Result<RunId, Error> {
        if let Some(claim) = claim
            && let Some(made) = claim.made(&self.handle.store.reader()?, clock::steady())?
        {
            return Ok(made);
        }
        let (object, row) = self.settled(run)?;
        let reader = self.handle.store.reader()?;
        let reruns = dialect_of(run, &object)?.reruns;
        let fresh = reruns.resubmit(&object, &context(&reader, run)?, options, clock::now())?;
        let before = options.memoized.then(|| Box::new(fresh.plan.before(Vec::new())));
        let known = known::known(&self.handle.store, &row.namespace, &fresh.manifest, self.handle.host.as_deref())?;
        let submission = Submission {
            name: String::new(),
            namespace: row.namespace,
            uid: String::new(),
            at: clock::steady().shifted(known.skew),
            manifest: fresh.manifest,
            stored: fresh.stored,
            parent: None,
            ordered_by: None,
            context: known,
            previous: before,
        };
        for _ in 1..DRAWS {
            let name = format!("{}{}", fresh.generate_name, name_suffix()?);
            let submission = Submission { name, uid: new_uid()?, ..submission.clone() };
            match self.handle.hand_in(submission, None, claim.cloned(), None, |_| Vec::new()) {
                Err(Error::NameTaken { .. }) => {}
                answer => return answer,
            }
        }
        let name = format!("{}{}", fresh.generate_name, name_suffix()?);
        let submission = Submission { name, uid: new_uid()?, ..submission };
        self.handle.hand_in(submission, None, claim.cloned(), None, |_| Vec::new())
    }

    /// The run as it stands. When it is over, that is on disk by now.
    fn settled(&self, run: RunId) -> Result<(Value, RunRow), Error> {
        let object = self.object(run)?;
        let decided = dialect_of(run, &object)?.is_decided(&object);
        if decided && self.handle.store.reader()?.archive(run)?.is_none() {
            // The watch closes once the end is kept.
            self.watch(run).iter().for_each(drop);
        }
        let row = self.handle.store.reader()?.run(run)?.ok_or(Error::UnknownRun(run))?;
        Ok((object, row))
    }

    /// Nothing of the old run is deleted from here on; what was, its record says.
    fn spare(&self, run: RunId, object: Value) -> Result<Value, Error> {
        let garbage = read::garbage(&self.handle.store.reader()?, run)?;
        if !garbage.iter().any(goes_at_the_end) && object["status"]["artifactGCStatus"].is_null() {
            return Ok(object);
        }
        let sweeping = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).release();
        if let Some(thread) = sweeping {
            // What a sweeper that died had to do is on disk.
            let _ = thread.join();
        }
        sweep::dequeue_deletion(&self.data_dir, run).map_err(Error::Garbage)?;
        read::object(&self.handle.store.reader()?, run)
    }
}

/// The dialect of a run, by its object.
fn dialect_of(run: RunId, object: &Value) -> Result<&'static Dialect, Error> {
    dialect::of(object).map_err(|why| Error::Journal { run, why })
}

fn context(reader: &Reader, run: RunId) -> Result<RunContext, Error> {
    let deleting = read::garbage(reader, run)?.into_iter().filter(goes_at_the_end).map(|item| item.node);
    Ok(RunContext { attempts: read::attempts(reader, run)?.into_iter().collect(), deleting: deleting.collect() })
}

fn goes_at_the_end(item: &Garbage) -> bool {
    item.strategy == GcStrategy::OnWorkflowCompletion
}
