//! The controller of this process for `run`, with errors mapped to exit codes. A thin layer over `control`.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::Receiver,
};

use anyhow::{Context as _, Result};
use octoflow_control::{self as control, Condition, Error, Place, Submit, Supervisor};
use octoflow_engine::Command;
use octoflow_model::{AttemptId, Fact, RunId};
use octoflow_store::RunRow;
use serde_json::Value;

use super::{Context, prepare::Ready};
use crate::{
    cli::Run,
    config::{self, node},
    exit::{Exit, Failure},
    local,
};

/// Facts of a run, from the first to the last.
pub(crate) type Facts = Receiver<Vec<Fact>>;

pub(crate) struct LocalController {
    inner: control::Controller,
}

impl LocalController {
    pub(crate) fn open(args: &Run, context: &Context) -> Result<Self> {
        let mut config = node::config(&args.execution, config::egress()?, context)?;
        if let Place::Processes(processes) = &mut config.place {
            processes.visible = folders(args);
        }
        let (inner, notices) = control::Controller::open(config).map_err(explained)?;
        notices.iter().for_each(|notice| context.output.talk(notice));
        Ok(Self { inner })
    }

    pub(crate) fn put_object(&self, object: Value) -> Result<()> {
        self.inner.put_object(object).map_err(explained)
    }

    /// Submits a run; `None` if the name is taken.
    pub(crate) fn submit(&self, name: &str, ready: &Ready) -> Result<Option<(RunId, Facts)>> {
        let Ready { namespace, manifest, stored, warned: _ } = ready.clone();
        let submit = Submit { namespace, name: name.to_owned(), manifest, stored, claim: None };
        match self.inner.submit_watched(submit) {
            Ok(watched) => Ok(Some(watched)),
            Err(Error::NameTaken { .. }) => Ok(None),
            Err(error) => Err(explained(error)),
        }
    }

    pub(crate) fn restore_run(&self, run: RunId) -> Result<Facts> {
        self.inner.restore_run(run).map_err(explained)
    }

    pub(crate) fn command(&self, run: RunId, command: Command) -> Result<()> {
        self.inner.command(run, command).map_err(explained)
    }

    /// Returns the open runs that this run created.
    pub(crate) fn open_children(&self, run: RunId) -> Result<Vec<(RunId, String)>> {
        self.inner.open_children(run).map_err(explained)
    }

    /// Finds an open run by name.
    pub(crate) fn open_run(&self, namespace: &str, kind: Option<&str>, name: &str) -> Option<RunId> {
        let row = self.inner.store().reader().and_then(|reader| reader.run_by_name(namespace, kind, name)).ok()??;
        (!row.archived).then_some(row.run)
    }

    /// Subscribes to the facts of a run from now on; closed after the last.
    pub(crate) fn watch(&self, run: RunId) -> Facts {
        self.inner.watch(run)
    }

    pub(crate) fn object(&self, run: RunId) -> Result<Value> {
        self.inner.object(run).map_err(explained)
    }

    /// Returns the run with only the nodes needed for a summary.
    pub(crate) fn brief(&self, run: RunId) -> Result<Value> {
        let reader = self.inner.store().reader().map_err(local::explained)?;
        match control::read::brief(&reader, run).map_err(explained)? {
            Some(object) => Ok(object),
            None => self.object(run),
        }
    }

    /// Returns the attempts by node id, for finding logs.
    pub(crate) fn attempts(&self, run: RunId) -> Result<Vec<(String, AttemptId)>> {
        let reader = self.inner.store().reader().map_err(local::explained)?;
        control::read::attempts(&reader, run).map_err(explained)
    }

    /// Returns the row of a run.
    pub(crate) fn row(&self, run: RunId) -> Result<Option<RunRow>> {
        let reader = self.inner.store().reader().map_err(local::explained)?;
        reader.run(run).map_err(local::explained)
    }

    /// Returns the conditions that currently keep tasks from running.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        self.inner.runtime_conditions()
    }

    /// Starts a supervised thread.
    pub(crate) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let work = move || {
            work();
            Ok(())
        };
        self.inner.supervisor().spawn(name, work).map(drop).context("cannot start a thread")
    }

    /// Returns the supervisor of this process's threads.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        self.inner.supervisor()
    }

    /// Registers a callback for the unexpected end of a thread.
    pub(crate) fn on_failure(&self, hear: impl Fn(String) + Send + 'static) {
        self.inner.supervisor().on_failure(move |failure| hear(failure.to_string()));
    }

    /// Returns the error that currently makes storage unavailable, if any.
    pub(crate) fn outage(&self) -> Option<String> {
        self.inner.store().failure().filter(octoflow_store::Error::is_outage).map(|error| error.to_string())
    }

    pub(crate) fn close(self) -> Result<()> {
        self.inner.close().map_err(explained)
    }
}

/// Returns the working directory and the folders of the manifests: steps can read what lies beside them, also below
/// `/tmp`.
fn folders(args: &Run) -> Vec<PathBuf> {
    let given = args.manifests.iter().chain(&args.files).filter(|path| path.exists());
    let of_manifests = given.filter_map(|path| if path.is_dir() { Some(path.as_path()) } else { path.parent() });
    // A bare file name has an empty parent: it lies in the working directory.
    let of_manifests = of_manifests.filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned);
    std::env::current_dir().ok().into_iter().chain(of_manifests).collect()
}

/// Returns whether storage is temporarily unavailable.
pub(crate) fn is_outage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<octoflow_store::Error>().is_some_and(octoflow_store::Error::is_outage)
}

fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::Store(error) => local::explained(error),
        Error::Refused(refusal) => Failure::new(Exit::Conflict, refusal.to_string()).into(),
        error => error.into(),
    }
}
