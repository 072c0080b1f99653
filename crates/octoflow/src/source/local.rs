//! The data directory of this machine as a source: read directly, commanded through the process that runs it.

use std::{
    collections::{BTreeSet, HashMap},
    ops::ControlFlow,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use octoflow_control::{
    self as control, Error, Explanation, owned,
    read::{
        self,
        lines::{self, Frame, Line, LineFilter, LineQuery, LineSink, Logs, POLL_INTERVAL},
    },
    sweep_deleted,
};
use octoflow_store::{Filter, RunRow, SecretsKey, Store};
use serde_json::Value;

use super::{LogQuery, Source, Waiting, still_open};
use crate::{
    config::{self, system},
    exit::Failure,
    local::{Local, explained},
    output::Output,
    source::remote::{self, Message, Request},
};

/// Poll interval for a watched run.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) struct LocalSource {
    data_dir: PathBuf,
    /// Needed for changes only.
    secrets_key_file: Option<PathBuf>,
    output: Output,
    /// `None` if nothing was ever run with this directory.
    local: Option<Local>,
}

impl LocalSource {
    pub(crate) fn open(data_dir: PathBuf, secrets_key_file: Option<PathBuf>, output: Output) -> Result<Self> {
        let local = Local::open(&data_dir)?;
        Ok(Self { data_dir, secrets_key_file, output, local })
    }

    fn local(&self) -> Result<&Local> {
        self.local.as_ref().ok_or_else(|| Failure::not_found("nothing has been run here yet").into())
    }

    fn nobody(&self, row: &RunRow) -> Failure {
        self.output.detail("no process listens on the data directory's socket");
        Failure::conflict(format!("run `{}` was interrupted, no process is running it", row.name)).help(format!(
            "take it up again with: octoflow run --resume {0}, or delete it with: octoflow delete --force {0}",
            row.name
        ))
    }
}

impl Source for LocalSource {
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
        let reader = self.local()?.reader();
        // The nodes of a run that is over stand in its object.
        let mut found = if row.archived { Vec::new() } else { read::explain(reader, row.run)? };
        found.extend(read::unheard(reader, row.run)?);
        let told = |one: Explanation| Waiting {
            wait: one.wait.map_or(Value::Null, |wait| wait.to_json()),
            node: one.node,
            phase: one.phase,
            why: one.reason,
        };
        Ok(found.into_iter().map(told).collect())
    }

    fn lines(
        &self,
        row: &RunRow,
        query: &LogQuery,
        on_item: &mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    ) -> Result<BTreeSet<String>> {
        let filter = LineFilter::new(query.container.clone(), query.since, query.grep.as_deref())
            .map_err(|error| Failure::usage(format!("--grep: {error}")))?;
        let wanted = LineQuery { names: query.names.clone(), tail: query.tail, follow: query.follow };
        let mut forwarder = LineForwarder { filter, on_item, failed: None };
        lines::lines(self.local()?.reader(), &Logs::new(&self.data_dir), row.run, &wanted, &mut forwarder)?;
        match forwarder.failed {
            Some(error) => Err(error),
            None => Ok(forwarder.filter.containers_seen().clone()),
        }
    }

    fn frames(
        &self,
        row: &RunRow,
        node: &str,
        follow: bool,
        on_item: &mut dyn FnMut(&Frame) -> Result<()>,
    ) -> Result<()> {
        let mut failed = None;
        let logs = Logs::new(&self.data_dir);
        lines::frames(self.local()?.reader(), &logs, row.run, node, follow, &mut |frame| {
            let Some(frame) = frame else {
                thread::sleep(POLL_INTERVAL);
                return ControlFlow::Continue(());
            };
            match on_item(&frame) {
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
        // Holding the lock proves that no process runs any of them.
        system::keep_files_private();
        let key = self.secrets_key_file.as_deref().map(SecretsKey::read).transpose().map_err(explained)?;
        let store = Store::open_keyed(&self.data_dir, key).map_err(explained)?;
        let policy = config::egress()?;
        for row in rows {
            for warning in control::remove_run(&store, &self.data_dir, row).map_err(with_exit_code)?.warnings {
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
            // Checked before reading, so that the last read sees the end.
            let over = reader.run(row.run).map_err(explained)?.is_none_or(|row| row.archived);
            let revision = reader.run_revision(row.run).map_err(explained)?;
            let enough = (over || revision != seen) && see(&local.object(row)?)?.is_break();
            seen = revision;
            if over || enough || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(());
            }
            thread::sleep(WATCH_INTERVAL);
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

fn with_exit_code(error: Error) -> anyhow::Error {
    match error {
        Error::Store(error) => explained(error),
        error => error.into(),
    }
}

/// Passes lines on until that fails.
struct LineForwarder<'a> {
    filter: LineFilter,
    on_item: &'a mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    failed: Option<anyhow::Error>,
}

impl LineSink for LineForwarder<'_> {
    fn matches(&mut self, line: &Line) -> bool {
        self.filter.matches(line)
    }

    fn line(&mut self, node: &str, number: u64, line: &Line) -> ControlFlow<()> {
        match (self.on_item)(node, number, line) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn idle(&mut self) -> ControlFlow<()> {
        thread::sleep(POLL_INTERVAL);
        ControlFlow::Continue(())
    }
}
