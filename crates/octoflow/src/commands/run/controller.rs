//! The controller that runs workflows and TaskSets, opened for this process, with its errors given their exit codes.
//! A thin layer: what it does is `control`'s.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::Receiver,
};

use anyhow::{Context as _, Result};
use octoflow_control::{self as control, Condition, Error, Place, Submit, Supervisor};
use octoflow_engine::Command;
use octoflow_model::{AttemptId, Fact, RunId};
use serde_json::Value;

use super::{Context, prepare::Ready};
use crate::{
    cli::Run,
    config,
    exit::{Exit, Failure},
    local, node,
};

/// Every fact of a run, from the first to the last.
pub(crate) type Facts = Receiver<Vec<Fact>>;

pub(crate) struct LocalController {
    inner: control::Controller,
}

impl LocalController {
    pub(crate) fn open(args: &Run, context: &Context) -> Result<Self> {
        let mut config = node::config(args.isolation, args.parallelism, config::egress()?, context)?;
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

    /// `None` when the name is taken.
    pub(crate) fn submit(&self, name: &str, ready: &Ready) -> Result<Option<(RunId, Facts)>> {
        let Ready { namespace, manifest, stored } = ready.clone();
        let submit = Submit { namespace, name: name.to_owned(), manifest, stored, claim: None };
        match self.inner.submit_watched(submit) {
            Ok(watched) => Ok(Some(watched)),
            Err(Error::NameTaken { .. }) => Ok(None),
            Err(error) => Err(explained(error)),
        }
    }

    pub(crate) fn take_up(&self, run: RunId) -> Result<Facts> {
        self.inner.take_up(run).map_err(explained)
    }

    pub(crate) fn command(&self, run: RunId, command: Command) -> Result<()> {
        self.inner.command(run, command).map_err(explained)
    }

    /// Runs that are not over and were made by this one.
    pub(crate) fn open_children(&self, run: RunId) -> Result<Vec<(RunId, String)>> {
        self.inner.open_children(run).map_err(explained)
    }

    /// A run that is not over, by its name.
    pub(crate) fn open_run(&self, namespace: &str, kind: Option<&str>, name: &str) -> Option<RunId> {
        let row = self.inner.store().reader().and_then(|reader| reader.run_by_name(namespace, kind, name)).ok()??;
        (!row.archived).then_some(row.run)
    }

    /// The facts of a run from now on; closed after the last.
    pub(crate) fn watch(&self, run: RunId) -> Facts {
        self.inner.watch(run)
    }

    pub(crate) fn object(&self, run: RunId) -> Result<Value> {
        self.inner.object(run).map_err(explained)
    }

    /// The same with only the nodes a summary speaks of.
    pub(crate) fn brief(&self, run: RunId) -> Result<Value> {
        let reader = self.inner.store().reader().map_err(local::explained)?;
        match control::read::brief(&reader, run).map_err(explained)? {
            Some(object) => Ok(object),
            None => self.object(run),
        }
    }

    /// Which attempt's log belongs to which node, by node id.
    pub(crate) fn attempts(&self, run: RunId) -> Result<Vec<(String, AttemptId)>> {
        let reader = self.inner.store().reader().map_err(local::explained)?;
        control::read::attempts(&reader, run).map_err(explained)
    }

    /// What keeps tasks from being run right now.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        self.inner.runtime_conditions()
    }

    /// Starts a thread of this process whose end is heard of, if it was not meant to end.
    pub(crate) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let work = move || {
            work();
            Ok(())
        };
        self.inner.supervisor().spawn(name, work).map(drop).context("cannot start a thread")
    }

    /// Who hears of the end of this process's threads.
    pub(crate) fn supervisor(&self) -> &Supervisor {
        self.inner.supervisor()
    }

    /// Hears of a thread that ended and was not meant to.
    pub(crate) fn on_failure(&self, hear: impl Fn(String) + Send + 'static) {
        self.inner.supervisor().on_failure(move |failure| hear(failure.to_string()));
    }

    /// Why nothing can be written at present; everything waits for that.
    pub(crate) fn outage(&self) -> Option<String> {
        self.inner.store().failure().filter(octoflow_store::Error::is_outage).map(|error| error.to_string())
    }

    pub(crate) fn close(self) -> Result<()> {
        self.inner.close().map_err(explained)
    }
}

/// The folder the person stands in, and those of the manifests: steps find what lies beside them, also below `/tmp`.
fn folders(args: &Run) -> Vec<PathBuf> {
    let given = args.manifests.iter().chain(&args.files).filter(|path| path.exists());
    let of_manifests = given.filter_map(|path| if path.is_dir() { Some(path.as_path()) } else { path.parent() });
    // A bare file name has an empty parent: it lies where the person stands.
    let of_manifests = of_manifests.filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned);
    std::env::current_dir().ok().into_iter().chain(of_manifests).collect()
}

/// Storage is out of order; it may work later.
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
