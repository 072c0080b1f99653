//! An export file as a source: it can be read like any run, but not changed.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io::{BufRead, BufReader},
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context as _, Result};
use octoflow_control::read::lines::{Frame, Line, LineFilter, MAIN};
use octoflow_engine::kinds;
use octoflow_model::RunId;
use octoflow_store::{Filter, RunRow};
use serde_json::Value;

use super::{LATEST, LogQuery, Source, Waiting, kind_of, server::line_of};
use crate::{
    commands::EXPORT_FORMAT,
    exit::Failure,
    output::clock,
    source::{
        remote::Request,
        workflow::{Workflow, text},
    },
};

pub(crate) struct ExportFile {
    path: PathBuf,
    row: RunRow,
    object: Value,
    waiting: Vec<Waiting>,
}

impl ExportFile {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let wrong =
            |why: &str| Failure::usage(format!("`{}` is no file that `octoflow export` wrote: {why}", path.display()));
        let mut lines = values(path)?;
        let head = lines.next().ok_or_else(|| wrong("it is empty"))??;
        let head = head.get("octoflow").ok_or_else(|| wrong("its first line says nothing of it"))?;
        if head["export"].as_u64() != Some(EXPORT_FORMAT) {
            return Err(wrong("this version does not understand its format").into());
        }
        let object = lines.next().ok_or_else(|| wrong("it ends too soon"))??;
        let object = object.get("object").cloned().ok_or_else(|| wrong("it holds no run"))?;
        let workflow = Workflow::new(&object);
        let kind = kinds::of_manifest(&object).map_err(|problem| wrong(&problem.message))?.key;
        let created = workflow.created().unwrap_or_else(clock::now);
        let mut row =
            RunRow::new(RunId(0), text(head, "namespace"), kind, text(head, "name"), text(head, "uid"), created);
        row.phase = workflow.phase().to_owned();
        row.archived = head["archived"].as_bool().unwrap_or(true);
        let mut waiting = Vec::new();
        for value in lines {
            let value = value?;
            let Some(one) = value.get("waiting") else { break };
            waiting.push(Waiting {
                node: text(one, "node").to_owned(),
                phase: text(one, "phase").to_owned(),
                why: text(one, "why").to_owned(),
                wait: one["wait"].clone(),
            });
        }
        Ok(Self { path: path.to_owned(), row, object, waiting })
    }

    /// Returns the run in the file.
    pub(crate) fn row(&self) -> &RunRow {
        &self.row
    }

    fn read_only(&self) -> anyhow::Error {
        Failure::usage(format!("`{}` is a file; the run in it can only be looked at", self.path.display())).into()
    }
}

/// Reads the values of a file, one per line.
fn values(path: &Path) -> Result<impl Iterator<Item = Result<Value>> + use<>> {
    let file =
        File::open(path).map_err(|error| Failure::usage(format!("cannot read `{}`: {error}", path.display())))?;
    let name = path.display().to_string();
    Ok(BufReader::new(file).lines().map(move |line| {
        let line = line.with_context(|| format!("cannot read `{name}`"))?;
        serde_json::from_str(&line)
            .map_err(|_| Failure::usage(format!("`{name}` is damaged, or no file that `octoflow export` wrote")).into())
    }))
}

impl Source for ExportFile {
    fn list(&self, _: &Filter, _: usize) -> Result<(Vec<RunRow>, bool)> {
        Ok((vec![self.row.clone()], false))
    }

    fn look_up(&self, _: &str, _: Option<&str>, name: &str) -> Result<Option<RunRow>> {
        Ok((name == LATEST || name == self.row.name).then(|| self.row.clone()))
    }

    fn object(&self, _: &RunRow) -> Result<Value> {
        Ok(self.object.clone())
    }

    fn waiting(&self, _: &RunRow) -> Result<Vec<Waiting>> {
        Ok(self.waiting.clone())
    }

    fn lines(
        &self,
        _: &RunRow,
        query: &LogQuery,
        on_item: &mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    ) -> Result<BTreeSet<String>> {
        let mut filter = LineFilter::new(query.container.clone(), query.since, query.grep.as_deref())
            .map_err(|error| Failure::usage(format!("--grep: {error}")))?;
        for value in values(&self.path)? {
            let value = value?;
            let Some(event) = value.get("line") else { continue };
            let line = line_of(event);
            // If the id alone does not tell, the caller filters the nodes, which are all in the object.
            let view = kind_of(&self.row).dialect().map(|dialect| dialect.view);
            let meant = view.is_none_or(|view| view.is_meant(text(event, "node"), &query.names));
            if meant && filter.matches(&line) {
                on_item(text(event, "node"), event["number"].as_u64().unwrap_or_default(), &line)?;
            }
        }
        Ok(filter.containers_seen().clone())
    }

    fn frames(&self, row: &RunRow, node: &str, _: bool, on_item: &mut dyn FnMut(&Frame) -> Result<()>) -> Result<()> {
        self.lines(row, &LogQuery::default(), &mut |id, _, line| {
            if id != node || line.container.as_deref().unwrap_or(MAIN) != MAIN {
                return Ok(());
            }
            let mut bytes = line.bytes.clone();
            bytes.push(b'\n');
            on_item(&Frame { stream: line.stream, at: line.at, container: None, bytes })
        })
        .map(drop)
    }

    fn log_files(&self, _: &RunRow) -> Result<HashMap<String, String>> {
        Ok(HashMap::new())
    }

    fn steer(&self, _: &RunRow, _: &Request) -> Result<()> {
        Err(self.read_only())
    }

    fn with_owned(&self, _: Vec<RunRow>) -> Result<Vec<RunRow>> {
        Err(self.read_only())
    }

    fn delete(&self, _: &[RunRow], _: &mut dyn FnMut(&RunRow) -> Result<()>) -> Result<()> {
        Err(self.read_only())
    }

    fn watch(
        &self,
        _: &RunRow,
        _: Option<Instant>,
        see: &mut dyn FnMut(&Value) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        see(&self.object).map(drop)
    }
}
