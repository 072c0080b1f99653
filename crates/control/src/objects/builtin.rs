//! Questions to the built-in plugins: gathers what they need to know of the user's other jobs, and answers. Which plugin
//! is asked, and what follows from the answer, is decided elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc::Sender,
};

use octoflow_engine::{
    plugins::builtin::{self, Context, ContextNeed, HISTORY},
    submission::state::was_passed,
};
use octoflow_model::{
    AttemptId, RunId,
    plugin::{JOB_KIND, LifeState, submitted::mark},
    request::{Answer, BuiltinRequest},
};
use octoflow_store::{Filter, LabelTest, Page, Reader, RunRow};

use super::{ResourceWorker, Retry, action_error::ActionError};
use crate::{Error, clock, read};

/// Limit of the open jobs of a user that are looked at; a quota is far below.
const MAX_OPEN: usize = 10_000;
/// Limit of the jobs without a label that are looked at to find those of a user whose id cannot be one.
const MAX_UNLABELLED: usize = 1_000;

/// Address of the gate whose passes hold places.
const QUOTA: &str = "builtin:quota";

/// Jobs that a quota has let pass, by user, until they have ended. Of two jobs that ask at the same time, the second must
/// know of the first, which does not run yet. The facts of a job say the same, and are what a new process goes by.
pub(super) struct Granted {
    by_user: BTreeMap<String, BTreeSet<RunId>>,
    /// The first run that this process was to accept.
    first: RunId,
    /// Earlier runs whose facts were looked at.
    looked: BTreeSet<RunId>,
}

impl Granted {
    /// Begins with a process, and the number of the first run that it accepts.
    pub(super) fn new(first: RunId) -> Self {
        Self { by_user: BTreeMap::new(), first, looked: BTreeSet::new() }
    }

    fn note(&mut self, user: &str, run: RunId) {
        self.by_user.entry(user.to_owned()).or_default().insert(run);
    }

    /// Returns the open jobs of a user that were let pass, and forgets the others of that user.
    fn of(&mut self, user: &str, open: &[RunRow]) -> BTreeSet<RunId> {
        let granted = self.by_user.entry(user.to_owned()).or_default();
        granted.retain(|run| open.iter().any(|job| job.run == *run));
        let granted = granted.clone();
        if granted.is_empty() {
            self.by_user.remove(user);
        }
        granted
    }

    /// Notes which jobs of a user a process before this one let pass. Of each job the facts are read once.
    fn recall(&mut self, user: &str, open: &[RunRow], reader: &Reader) -> Result<(), Error> {
        let first = self.first;
        for job in open.iter().filter(|job| job.run < first && job.phase == LifeState::Waiting.word()) {
            if !self.looked.insert(job.run) {
                continue;
            }
            match read::facts(reader, job.run) {
                Ok(facts) if was_passed(&facts, QUOTA) => self.note(user, job.run),
                Ok(_) => {}
                Err(error) if error.is_outage() => {
                    self.looked.remove(&job.run);
                    return Err(error);
                }
                // A journal that cannot be read is told elsewhere, and a job without one is over.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

impl ResourceWorker {
    pub(super) fn ask_builtin(&mut self, attempt: AttemptId, request: Box<BuiltinRequest>) {
        let answer = match self.answer_builtin(attempt.run, &request) {
            Ok(value) => {
                if builtin::need(&request.name) == ContextNeed::Running && value["decision"] == "pass" {
                    self.granted.note(user_of(&request), attempt.run);
                }
                Answer::Object(value)
            }
            Err(ActionError::Refused(why)) => Answer::Refused(why),
            Err(ActionError::Unavailable) => {
                self.retries.insert(attempt, Retry::Builtin(request));
                return;
            }
        };
        self.answer(attempt, answer);
    }

    /// Asks for a job that will never run, so nobody has to remember it.
    pub(super) fn try_builtin(&mut self, request: &BuiltinRequest, to: &Sender<Answer>) {
        let nobody = RunId(u64::MAX);
        let answer = match self.answer_builtin(nobody, request) {
            Ok(value) => Answer::Object(value),
            Err(ActionError::Refused(why)) => Answer::Refused(why),
            Err(ActionError::Unavailable) => Answer::Refused("the storage is not available".to_owned()),
        };
        // Whoever asked may have gone.
        let _ = to.send(answer);
    }

    fn answer_builtin(&mut self, asking: RunId, request: &BuiltinRequest) -> Result<serde_json::Value, ActionError> {
        let user = user_of(request);
        let mut context = Context { now: clock::now(), ..Context::default() };
        match builtin::need(&request.name) {
            ContextNeed::Time => {}
            ContextNeed::Running => context.running = self.running(user, asking)?,
            ContextNeed::History => context.history = self.history(user)?,
        }
        Ok(builtin::answer(&request.name, &request.input, &request.options, &context)?)
    }

    /// Returns how many other jobs of the user run, or are past the gates and about to.
    fn running(&mut self, user: &str, asking: RunId) -> Result<u32, ActionError> {
        let reader = self.handle.store.reader()?;
        let open = [LifeState::Waiting, LifeState::Running, LifeState::Suspended];
        let jobs = self.jobs_of(&reader, user, &open, MAX_OPEN)?;
        self.granted.recall(user, &jobs, &reader)?;
        let granted = self.granted.of(user, &jobs);
        let mut running = 0;
        for job in jobs.iter().filter(|job| job.run != asking) {
            running += u32::from(holds_place(&reader, job, &granted)?);
        }
        Ok(running)
    }

    /// Returns how the user's last jobs ended. Those that somebody stopped say nothing.
    fn history(&self, user: &str) -> Result<Vec<bool>, ActionError> {
        let reader = self.handle.store.reader()?;
        let jobs = self.jobs_of(&reader, user, &[LifeState::Succeeded, LifeState::Failed], HISTORY)?;
        Ok(jobs.iter().map(|job| job.phase == LifeState::Succeeded.word()).collect())
    }

    /// Returns a user's jobs in these states, the newest first.
    fn jobs_of(
        &self,
        reader: &Reader,
        user: &str,
        states: &[LifeState],
        limit: usize,
    ) -> Result<Vec<RunRow>, ActionError> {
        let list = |label: LabelTest, limit: usize| -> Result<Vec<RunRow>, ActionError> {
            let filter = Filter {
                kind: Some(JOB_KIND.to_owned()),
                phases: states.iter().map(|state| state.word().to_owned()).collect(),
                labels: vec![label],
                ..Filter::default()
            };
            Ok(reader.list(&filter, Page { limit, after: None })?.0)
        };
        let key = mark::USER.to_owned();
        if is_label_value(user) {
            return list(LabelTest::Equals { key, value: user.to_owned() }, limit);
        }
        let mut found = Vec::new();
        for job in list(LabelTest::Absent { key }, MAX_UNLABELLED)? {
            if found.len() == limit {
                break;
            }
            match self.handle.summary(job.run) {
                Ok(object) if object["spec"]["userID"] == user => found.push(job),
                // It has gone since.
                Ok(_) | Err(Error::UnknownRun(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }
}

fn user_of(request: &BuiltinRequest) -> &str {
    request.input["header"]["userID"].as_str().unwrap_or_default()
}

/// Reports whether a job runs, or will as soon as what is left of its way is gone.
fn holds_place(reader: &Reader, job: &RunRow, granted: &BTreeSet<RunId>) -> Result<bool, ActionError> {
    if job.phase == LifeState::Running.word() {
        return Ok(true);
    }
    if job.phase != LifeState::Waiting.word() {
        return Ok(false);
    }
    if granted.contains(&job.run) {
        return Ok(true);
    }
    // It was handed over, perhaps by a process before this one.
    let children = Filter { parent: Some(job.run), ..Filter::default() };
    Ok(!reader.list(&children, Page { limit: 1, after: None })?.0.is_empty())
}

/// Reports whether jobs of this user have the label.
fn is_label_value(user: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    user.len() <= 63
        && edge(user.chars().next())
        && edge(user.chars().next_back())
        && user.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use octoflow_model::Time;
    use octoflow_store::{Batch, Change, Store};

    use super::*;

    fn job(run: u64, phase: &str) -> RunRow {
        let mut row = RunRow::new(RunId(run), "default", JOB_KIND, &format!("j{run}"), &format!("u{run}"), Time(1));
        row.phase = phase.to_owned();
        row
    }

    #[test]
    fn a_job_holds_a_place_when_it_runs_or_is_past_the_gates() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let mut child = job(9, "Pending");
        child.parent = Some(RunId(3));
        let rows =
            [job(1, "running"), job(2, "waiting"), job(3, "waiting"), job(4, "suspended"), job(5, "waiting"), child];
        let mut batch = Batch::new();
        rows.iter().for_each(|row| batch.push(Change::NewRun(Box::new(row.clone()))));
        store.commit_wait(batch).unwrap();
        let (reader, granted) = (store.reader().unwrap(), BTreeSet::from([RunId(5), RunId(4)]));
        let holds = rows[..5].iter().map(|job| holds_place(&reader, job, &granted).unwrap_or_default());
        assert_eq!(holds.collect::<Vec<_>>(), [true, false, true, false, true]);
    }

    #[test]
    fn ids_that_can_be_labels_are_found_by_them() {
        for good in ["ann", "a", "a-b_c.d", "7"] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["", "ann@example.org", "-a", "a.", &"x".repeat(64), "ä"] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
