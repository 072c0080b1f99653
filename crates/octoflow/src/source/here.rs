//! The data directory of this machine as a source: read without asking anyone, steered through the process that runs it.

use std::{
    collections::{BTreeSet, HashMap},
    ops::ControlFlow,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use octoflow_control::{
    self as control, Error, owned,
    read::{
        self,
        lines::{self, Frame, Line, Listener, Logs, MOMENT, Sieve, Wanted},
    },
    sweep_deleted,
};
use octoflow_store::{Filter, RunRow, SecretsKey, Store};
use serde_json::Value;

use super::{LogQuery, Source, Waiting, still_open};
use crate::{
    config,
    exit::Failure,
    local::{Local, explained},
    output::Output,
    remote::{self, Message, Request},
    system,
};

/// How often a run that is watched is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub(crate) struct Here {
    data_dir: PathBuf,
    /// Needed by whoever changes something.
    secrets_key_file: Option<PathBuf>,
    output: Output,
    /// None when nothing was ever run with this directory.
    local: Option<Local>,
}

impl Here {
    pub(crate) fn open(data_dir: PathBuf, secrets_key_file: Option<PathBuf>, output: Output) -> Result<Self> {
        let local = Local::open(&data_dir)?;
        Ok(Self { data_dir, secrets_key_file, output, local })
    }

    fn local(&self) -> Result<&Local> {
        self.local.as_ref().ok_or_else(|| Failure::not_found("nothing has been run here yet").into())
    }

    fn nobody(&self, row: &RunRow) -> Failure {
        self.output.detail("nobody listens on the data directory's socket");
        Failure::conflict(format!("run `{}` was interrupted, no process is running it", row.name)).help(format!(
            "take it up again with: octoflow run --resume {0}, or delete it with: octoflow delete --force {0}",
            row.name
        ))
    }
}

impl Source for Here {
    fn list(&self, filter: &Filter, limit: usize) -> Result<(Vec<RunRow>, bool)> {
        match &self.local {
            Some(local) => local.list(filter, limit),
            None => Ok((Vec::new(), false)),
        }
    }

    fn mark_unreadable(&self, rows: &mut [RunRow]) -> Result<()> {
        self.local.as_ref().map_or(Ok(()), |local| local.mark_unreadable(rows))
    }

    fn look_up(&self, namespace: &str, kind: Option<&str>, name: &str) -> Result<Option<RunRow>> {
        match &self.local {
            Some(local) => local.look_up(namespace, kind, name),
            None => Ok(None),
        }
    }

    fn object(&self, row: &RunRow) -> Result<Value> {
        self.local()?.object(row)
    }

    fn waiting(&self, row: &RunRow) -> Result<Vec<Waiting>> {
        if row.archived {
            return Ok(Vec::new());
        }
        let found = read::explain(self.local()?.reader(), row.run)?;
        Ok(found.into_iter().map(|one| Waiting { node: one.node, phase: one.phase, why: one.reason }).collect())
    }

    fn lines(
        &self,
        row: &RunRow,
        query: &LogQuery,
        hear: &mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    ) -> Result<BTreeSet<String>> {
        let sieve = Sieve::new(query.container.clone(), query.since, query.grep.as_deref())
            .map_err(|error| Failure::usage(format!("--grep: {error}")))?;
        let wanted = Wanted { names: query.names.clone(), tail: query.tail, follow: query.follow };
        let mut ear = Ear { sieve, hear, failed: None };
        lines::lines(self.local()?.reader(), &Logs::new(&self.data_dir), row.run, &wanted, &mut ear)?;
        match ear.failed {
            Some(error) => Err(error),
            None => Ok(ear.sieve.heard().clone()),
        }
    }

    fn frames(&self, row: &RunRow, node: &str, follow: bool, hear: &mut dyn FnMut(&Frame) -> Result<()>) -> Result<()> {
        let mut failed = None;
        let logs = Logs::new(&self.data_dir);
        lines::frames(self.local()?.reader(), &logs, row.run, node, follow, &mut |frame| {
            let Some(frame) = frame else {
                thread::sleep(MOMENT);
                return ControlFlow::Continue(());
            };
            match hear(&frame) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn log_files(&self, row: &RunRow) -> Result<HashMap<String, String>> {
        let logs = Logs::new(&self.data_dir);
        let places = self.local()?.attempts(row)?.into_iter().map(|(id, attempt)| (id, logs.path(attempt)));
        Ok(places.filter(|(_, path)| path.exists()).map(|(id, path)| (id, path.display().to_string())).collect())
    }

    fn steer(&self, row: &RunRow, request: &Request) -> Result<()> {
        still_open(row, request)?;
        let (namespace, kind, run) = (row.namespace.clone(), Some(row.kind.clone()), row.name.clone());
        let message = Message { namespace, kind, run, request: request.clone() };
        match remote::ask(&self.data_dir, &message)? {
            Some(Ok(())) => Ok(()),
            Some(Err(refusal)) => Err(Failure::conflict(refusal).into()),
            None => Err(self.nobody(row).into()),
        }
    }

    fn with_owned(&self, rows: Vec<RunRow>) -> Result<Vec<RunRow>> {
        let mut all = rows;
        let mut next = 0;
        while let Some(owner) = all.get(next).cloned() {
            next += 1;
            let filter = Filter { parent: Some(owner.run), ..Filter::default() };
            for child in self.list(&filter, usize::MAX)?.0 {
                let known = all.iter().any(|row| row.run == child.run);
                if !known && child.archived && owned(&self.object(&child)?, &owner.uid) {
                    all.push(child);
                }
            }
        }
        Ok(all)
    }

    fn delete(&self, rows: &[RunRow], gone: &mut dyn FnMut(&RunRow) -> Result<()>) -> Result<()> {
        // Taking the lock proves that nobody is running any of them.
        system::keep_files_private();
        let key = self.secrets_key_file.as_deref().map(SecretsKey::read).transpose().map_err(explained)?;
        let store = Store::open_keyed(&self.data_dir, key).map_err(explained)?;
        let policy = config::egress()?;
        for row in rows {
            for warning in control::forget(&store, &self.data_dir, row).map_err(told)?.warnings {
                self.output.warn(&warning);
            }
            gone(row)?;
        }
        for warning in sweep_deleted(&store, &self.data_dir, policy) {
            self.output.warn(&warning);
        }
        store.close().map_err(explained)
    }

    fn watch(
        &self,
        row: &RunRow,
        until: Option<Instant>,
        see: &mut dyn FnMut(&Value) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let local = self.local()?;
        let mut seen = None;
        loop {
            let reader = local.reader();
            // Asked before looking, so that the last look sees the end.
            let over = reader.run(row.run).map_err(explained)?.is_none_or(|row| row.archived);
            let revision = reader.run_revision(row.run).map_err(explained)?;
            let enough = (over || revision != seen) && see(&local.object(row)?)?.is_break();
            seen = revision;
            if over || enough || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
    }

    fn empty(&self, name: &str) -> Option<Failure> {
        self.local.is_none().then(|| {
            let place = self.data_dir.display();
            Failure::not_found(format!("there is no run `{name}`: nothing has been run with `{place}` yet"))
                .help("start with: octoflow run FILE")
        })
    }
}

fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Store(error) => explained(error),
        error => error.into(),
    }
}

/// Passes lines on until that fails.
struct Ear<'a> {
    sieve: Sieve,
    hear: &'a mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    failed: Option<anyhow::Error>,
}

impl Listener for Ear<'_> {
    fn wants(&mut self, line: &Line) -> bool {
        self.sieve.wants(line)
    }

    fn hear(&mut self, node: &str, number: u64, line: &Line) -> ControlFlow<()> {
        match (self.hear)(node, number, line) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn pause(&mut self) -> ControlFlow<()> {
        thread::sleep(MOMENT);
        ControlFlow::Continue(())
    }
}
