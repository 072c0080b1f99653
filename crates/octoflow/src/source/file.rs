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
    /// The runs that it has made.
    made: Vec<(RunRow, Value)>,
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
        let row_of = |head: &Value, object: &Value| -> Result<RunRow> {
            let workflow = Workflow::new(object);
            let kind = kinds::of_manifest(object).map_err(|problem| wrong(&problem.message))?.key;
            let created = workflow.created().unwrap_or_else(clock::now);
            let (namespace, name) = (workflow.namespace(), workflow.name());
            let mut row = RunRow::new(RunId(0), namespace, kind, name, text(head, "uid"), created);
            row.phase = workflow.phase().to_owned();
            row.archived = head["archived"].as_bool().unwrap_or(true);
            Ok(row)
        };
        let mut row = row_of(head, &object)?;
        text(head, "namespace").clone_into(&mut row.namespace);
        text(head, "name").clone_into(&mut row.name);
        let (mut waiting, mut made) = (Vec::new(), Vec::new());
        for value in lines {
            let value = value?;
            if let Some(one) = value.get("waiting") {
                waiting.push(Waiting {
                    node: text(one, "node").to_owned(),
                    phase: text(one, "phase").to_owned(),
                    why: text(one, "why").to_owned(),
                    wait: one["wait"].clone(),
                });
            } else if let Some(one) = value.get("made") {
                made.push((row_of(one, &one["object"])?, one["object"].clone()));
            } else {
                break;
            }
        }
        Ok(Self { path: path.to_owned(), row, object, waiting, made })
    }

    /// Returns what the file holds of a run that the one in it has made.
    fn made(&self, row: &RunRow) -> Option<&(RunRow, Value)> {
        self.made.iter().find(|(made, _)| made.uid == row.uid && row.uid != self.row.uid)
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

    fn look_up(&self, _: &str, kind: Option<&str>, name: &str) -> Result<Option<RunRow>> {
        let all = std::iter::once(&self.row).chain(self.made.iter().map(|(row, _)| row));
        let mut named = all.filter(|row| row.name == name && kind.is_none_or(|kind| row.kind == kind));
        Ok(if name == LATEST { Some(self.row.clone()) } else { named.next().cloned() })
    }

    fn object(&self, row: &RunRow) -> Result<Value> {
        Ok(self.made(row).map_or(&self.object, |(_, object)| object).clone())
    }

    fn waiting(&self, row: &RunRow) -> Result<Vec<Waiting>> {
        Ok(if self.made(row).is_some() { Vec::new() } else { self.waiting.clone() })
    }

    fn lines(
        &self,
        row: &RunRow,
        query: &LogQuery,
        on_item: &mut dyn FnMut(&str, u64, &Line) -> Result<()>,
    ) -> Result<BTreeSet<String>> {
        let mut filter = LineFilter::new(query.container.clone(), query.since, query.grep.as_deref())
            .map_err(|error| Failure::usage(format!("--grep: {error}")))?;
        for value in values(&self.path)? {
            let value = value?;
            let of = if self.made(row).is_some() { Some(row.uid.as_str()) } else { None };
            let Some(event) = value.get("line").filter(|event| event["of"].as_str() == of) else { continue };
            let line = line_of(event);
            // If the id alone does not tell, the caller filters the nodes, which are all in the object.
            let view = kind_of(row).dialect().map(|dialect| dialect.view);
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
