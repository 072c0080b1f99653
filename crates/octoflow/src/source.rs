//! The source of runs: the data directory of this machine, or a server. Every command is written once against this
//! trait, and prints the same for both.

pub(crate) mod below;
pub(crate) mod remote;
pub(crate) mod workflow;

mod file;
mod local;
mod server;

use std::{
    collections::{BTreeSet, HashMap},
    ops::ControlFlow,
    time::Instant,
};

use anyhow::Result;
use octoflow_control::read::lines::{Frame, Line};
use octoflow_engine::{
    dialect::PhaseClass,
    kinds::{self, Kind},
};
use octoflow_model::Time;
use octoflow_store::{Filter, RunRow};
use serde_json::Value;

pub(crate) use file::ExportFile;
pub(crate) use local::LocalSource;
pub(crate) use server::{ServerSource, kind_parameter, without_nulls, workflow};

use crate::{exit::Failure, load::names, source::remote::Request};

/// Number of names considered for a suggestion.
const SUGGEST_FROM: usize = 1000;

/// Alias for the newest run of a namespace.
pub(crate) const LATEST: &str = "@latest";

/// Parses the name of a run with an optional kind: `wf/x`, `taskset/x`, or just `x`.
pub(crate) fn kind_and_name(text: &str) -> Result<(Option<&'static Kind>, &str)> {
    let Some((word, name)) = text.split_once('/') else { return Ok((None, text)) };
    let Some(kind) = kinds::of_word(word).filter(|kind| kind.runs()) else {
        let text = format!("`{word}` in `{text}` is no kind of run");
        return Err(Failure::usage(text).help(format!("write {}", each_named(kinds::of_runs(), "NAME"))).into());
    };
    Ok((Some(kind), name))
}

/// Formats `workflow/NAME or taskset/NAME`.
fn each_named(kinds: impl Iterator<Item = &'static Kind>, name: &str) -> String {
    kinds.map(|kind| format!("{}/{name}", kind.prefix())).collect::<Vec<_>>().join(" or ")
}

/// Returns the kind of a run by its row; `UNKNOWN` if a newer version has written it.
pub(crate) fn kind_of(row: &RunRow) -> &'static Kind {
    kinds::of_key(&row.kind).unwrap_or(&kinds::UNKNOWN)
}

/// Returns the meaning of a run's phase.
pub(crate) fn stand_of(row: &RunRow) -> Option<PhaseClass> {
    kind_of(row).dialect()?.phase_class(&row.phase)
}

/// Returns the phases of all kinds of runs with a matching meaning.
pub(crate) fn phases(means: impl Fn(PhaseClass) -> bool) -> Vec<String> {
    let all = kinds::of_runs().filter_map(Kind::dialect).flat_map(|dialect| dialect.phases);
    let words: BTreeSet<&str> = all.filter(|phase| means(phase.class)).map(|phase| phase.word).collect();
    words.into_iter().map(str::to_owned).collect()
}

/// Returns whether Argo's API serves the run; others are served by the Kubernetes-style one.
pub(crate) fn in_argo_api(row: &RunRow) -> bool {
    kind_of(row).dialect().is_some_and(|dialect| dialect.in_argo_api)
}

/// Reason why an open node waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub node: String,
    /// Empty for a task that is not a node yet.
    pub phase: String,
    pub why: String,
    /// What the scheduler says about it, as data; null if it does not wait for that.
    pub wait: Value,
}

/// Selection of log lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogQuery {
    /// Full names of nodes; empty selects all.
    pub names: Vec<String>,
    pub container: Option<String>,
    pub since: Option<Time>,
    pub grep: Option<String>,
    pub tail: Option<usize>,
    pub follow: bool,
}

/// Refuses commands to finished runs.
fn still_open(row: &RunRow, request: &Request) -> Result<()> {
    if row.archived {
        let text = format!("cannot {} run `{}`: it is over ({})", request.verb(), row.name, row.phase);
        return Err(Failure::conflict(text).into());
    }
    Ok(())
}

pub(crate) trait Source {
    /// Lists runs, newest first, at most `limit`. Returns whether there are more.
    fn list(&self, filter: &Filter, limit: usize) -> Result<(Vec<RunRow>, bool)>;

    /// Marks runs that cannot be read in their messages. A server has done so already.
    fn mark_unreadable(&self, _: &mut [RunRow]) -> Result<()> {
        Ok(())
    }

    /// Finds a run by name, or the newest by `@latest`; of any kind if `kind` is `None`.
    fn look_up(&self, namespace: &str, kind: Option<&str>, name: &str) -> Result<Option<RunRow>>;

    /// Returns the run with its status, as users see it.
    fn object(&self, row: &RunRow) -> Result<Value>;

    fn waiting(&self, row: &RunRow) -> Result<Vec<Waiting>>;

    /// Passes lines with the id of their node and their number in it. Returns the containers that wrote anything.
    fn lines(
        &self,
        row: &RunRow,
        query: &LogQuery,
        on_item: &mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    ) -> Result<BTreeSet<String>>;

    /// Passes the bytes of one node.
    fn frames(
        &self,
        row: &RunRow,
        node: &str,
        follow: bool,
        on_item: &mut dyn FnMut(&Frame) -> Result<()>,
    ) -> Result<()>;

    /// Returns the local log file of each node, by id.
    fn log_files(&self, row: &RunRow) -> Result<HashMap<String, String>>;

    fn steer(&self, row: &RunRow, request: &Request) -> Result<()>;

    /// Adds the runs they own, which are deleted with them.
    fn with_owned(&self, rows: Vec<RunRow>) -> Result<Vec<RunRow>>;

    /// Deletes runs, and reports each that is gone.
    fn delete(&self, rows: &[RunRow], gone: &mut dyn FnMut(&RunRow) -> Result<()>) -> Result<()>;

    /// Passes the run whenever it has changed, until it is over, the deadline passes, or `see` breaks.
    fn watch(
        &self,
        row: &RunRow,
        until: Option<Instant>,
        see: &mut dyn FnMut(&Value) -> Result<ControlFlow<()>>,
    ) -> Result<()>;

    /// Returns the error for an empty source.
    fn empty(&self, _name: &str) -> Option<Failure> {
        None
    }

    /// Finds a run by its name, which may include the kind: `taskset/NAME`.
    fn find(&self, namespace: &str, name: &str) -> Result<RunRow> {
        let (kind, name) = kind_and_name(name)?;
        let kinds = match kind {
            Some(kind) => vec![Some(kind)],
            None if name == LATEST => vec![None],
            None => kinds::of_runs().map(Some).collect(),
        };
        let mut found: Vec<RunRow> = Vec::new();
        for kind in kinds {
            let key = kind.map(|kind| kind.key);
            let row = self.look_up(namespace, key, name)?.filter(|row| key.is_none_or(|key| row.kind == key));
            found.extend(row);
        }
        // A job and the run that came out of it have one name, and the run is part of the job.
        if let Some(job) = found.iter().position(|row| row.kind == octoflow_model::plugin::JOB_KIND) {
            return Ok(found.swap_remove(job));
        }
        match found.len() {
            0 => Err(self.missing(namespace, name)?.into()),
            1 => Ok(found.remove(0)),
            _ => {
                let kinds: Vec<&Kind> = found.iter().map(kind_of).collect();
                let noun = |kind: &Kind| match kinds.iter().filter(|other| other.noun == kind.noun).count() {
                    1 => kind.noun.to_owned(),
                    _ => format!("{} of {}", kind.noun, kind.api_version()),
                };
                let nouns: Vec<String> = kinds.iter().map(|kind| noun(kind)).collect();
                let text = format!("a {} are called `{name}`", nouns.join(" and a "));
                Err(Failure::usage(text)
                    .help(format!("say which one: {}", each_named(found.iter().map(kind_of), name)))
                    .into())
            }
        }
    }

    /// Makes the error for an unknown name: suggests a similar one, or the namespace it is in.
    fn missing(&self, namespace: &str, name: &str) -> Result<Failure> {
        if let Some(failure) = self.empty(name) {
            return Ok(failure);
        }
        if name == LATEST {
            return Ok(Failure::not_found(format!("there are no runs in namespace `{namespace}` yet")));
        }
        let (rows, _) = self.list(&Filter::default(), SUGGEST_FROM)?;
        let failure = Failure::not_found(format!("there is no run `{name}` in namespace `{namespace}`"));
        if let Some(row) = rows.iter().find(|row| row.name == name) {
            return Ok(failure.help(format!("there is one in namespace `{0}`: use -n {0}", row.namespace)));
        }
        let here = rows.iter().filter(|row| row.namespace == namespace).map(|row| row.name.as_str());
        Ok(failure.help(names::suggestion(name, here).unwrap_or_else(|| "see all with: octoflow list -A".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_say_the_kind() {
        let read = |text| kind_and_name(text).map(|(kind, name)| (kind.map(|kind| kind.name), name)).unwrap();
        assert_eq!(read("x"), (None, "x"));
        assert_eq!(read("ts/x"), (Some("TaskSet"), "x"));
        assert_eq!(read("TaskSet/x"), (Some("TaskSet"), "x"));
        assert_eq!(read("wf/@latest"), (Some("Workflow"), LATEST));
        assert!(kind_and_name("pod/x").is_err());
        assert_eq!(kind_and_name("vcjob/x").unwrap().0.map(|kind| kind.group), Some("batch.volcano.sh"));
    }

    #[test]
    fn every_kind_of_run_is_offered_by_a_word_that_means_it() {
        for kind in kinds::of_runs() {
            let offered = each_named([kind].into_iter(), "x");
            assert_eq!(kind_and_name(&offered).unwrap(), (Some(kind), "x"));
        }
    }
}
