//! Submitted jobs as the pipeline's clients know them: by an id that is unique in all namespaces, and in lists by page.

use octoflow_model::{
    Time,
    plugin::{JOB_KIND, LifeState, term},
};
use octoflow_store::{Filter, LabelTest, NumberedPage, RunRow};

use super::{Fault, FoundRun, Kind, Registry, kinds};
use crate::{Error, new_uid};

/// Conditions on submitted jobs, which must all hold. An empty one matches every job.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    pub users: Vec<String>,
    pub states: Vec<LifeState>,
    pub job_kind: Option<String>,
    /// The beginning of the job's name.
    pub name: Option<String>,
    pub cluster: Option<String>,
    /// Submitted after this time, and before that one; neither is included.
    pub after: Option<Time>,
    pub before: Option<Time>,
    pub namespaces: Vec<String>,
}

impl JobFilter {
    /// Returns the same conditions on rows.
    pub fn index(&self) -> Filter {
        let mut labels = Vec::new();
        if !self.users.is_empty() {
            labels.push(LabelTest::In { key: term::USER.to_owned(), values: self.users.clone() });
        }
        for (key, value) in [(term::JOB_KIND, &self.job_kind), (term::CLUSTER, &self.cluster)] {
            let test = value.clone().map(|value| LabelTest::Equals { key: key.to_owned(), value });
            labels.extend(test);
        }
        // Only submitted jobs have terms, so an index of one needs not look at the kind.
        let kind = (labels.is_empty() || !self.states.is_empty()).then(|| JOB_KIND.to_owned());
        Filter {
            kind,
            namespaces: self.namespaces.clone(),
            phases: self.states.iter().map(|state| state.word().to_owned()).collect(),
            labels,
            label_prefix: self.name.clone().map(|name| (term::JOB_NAME.to_owned(), name)),
            since: self.after.map(|after| Time(after.0.saturating_add(1))),
            until: self.before,
            ..Filter::default()
        }
    }
}

/// Returns the kind of submitted jobs.
pub fn job_kind() -> &'static Kind {
    kinds::of_key(JOB_KIND).expect("the table of kinds has submitted jobs")
}

/// Draws the id of a new job: 36 characters, each of them a digit or one of a to f.
pub fn new_job_id() -> Result<String, Error> {
    Ok(new_uid()?.replace('-', "0"))
}

impl Registry {
    /// Returns one page of jobs, and the number of all that match.
    pub fn jobs(&self, filter: &JobFilter, page: NumberedPage) -> Result<(Vec<RunRow>, u64), Fault> {
        self.read(|reader| Ok(reader.page(&filter.index(), page)?))
    }

    pub fn count_jobs(&self, filter: &JobFilter) -> Result<u64, Fault> {
        self.read(|reader| Ok(reader.count(&filter.index())?))
    }

    /// Finds a job by its id in the namespaces that `sees` allows.
    pub fn job(&self, id: &str, sees: impl Fn(&str) -> bool) -> Result<FoundRun, Fault> {
        let rows = self.read(|reader| Ok(reader.runs_named(JOB_KIND, id)?))?;
        let row = rows.into_iter().find(|row| sees(&row.namespace));
        let row = row.ok_or_else(|| Fault::NotFound { kind: job_kind(), name: id.to_owned() })?;
        Ok(FoundRun { run: row.run, row })
    }

    /// Checks that no run of this kind has the name in any namespace.
    pub(super) fn check_unique(&self, kind: &'static Kind, name: &str) -> Result<(), Fault> {
        match self.read(|reader| Ok(reader.runs_named(kind.key, name)?))?.is_empty() {
            true => Ok(()),
            false => Err(Fault::Exists { kind, name: name.to_owned() }),
        }
    }
}
