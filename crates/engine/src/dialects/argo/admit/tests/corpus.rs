//! Admits the conformance corpus: rows to be rejected are, rows of supported features are not, and the rest is refused
//! for an unsupported feature that is named, never for anything else.

use std::{collections::BTreeMap, path::PathBuf};

use octoflow_manifest::{Limits, read};
use serde_json::Value;

use super::Objects;
use crate::{
    admit::shape,
    dialects::argo::{
        admit::{admit, admit_template, code},
        refer::Reach,
    },
};

struct Row {
    file: String,
    rejected: bool,
    text: String,
    /// Objects that are loaded before it.
    before: Vec<String>,
}

/// Rows whose phase is only assumed, and which visibly cannot run as they are: a parameter has no value.
const NEED_A_PARAMETER: [&str; 1] = ["e2e/testdata/parameters-workflow.yaml"];

/// A row that refers to a template which refers to another one that the row does not load.
const NEED_A_TEMPLATE: [&str; 1] = ["e2e/testdata/artifactgc/artgc-from-ref-template-plugin.yaml"];

/// Reads the rows; `None` without the corpus. A build that must prove something has it.
fn rows() -> Option<Vec<Row>> {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/argo");
    let Ok(table) = std::fs::read_to_string(corpus.join("cases.tsv")) else {
        assert!(std::env::var_os("CI").is_none(), "the corpus must be there in CI: {}", corpus.display());
        println!("SKIPPED: no conformance corpus at {}", corpus.display());
        return None;
    };
    let row = |line: &str| {
        let mut columns = line.split('\t');
        let (file, expected) = (columns.next()?.to_owned(), columns.next()?);
        let text =
            |file: &str| std::fs::read_to_string(corpus.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let before = columns.next().unwrap_or_default().split(',').filter(|file| !file.is_empty()).map(text).collect();
        Some(Row { text: text(&file), rejected: expected == "rejected", file, before })
    };
    Some(table.lines().skip(1).filter_map(row).collect())
}

/// Returns (code, path, message) of all problems; empty if the row is admitted.
fn problems(row: &Row) -> Vec<(&'static str, String, String)> {
    let documents = match read(&row.file, row.text.as_bytes(), &Limits::default()) {
        Ok(documents) => documents,
        Err(problems) => {
            return problems.iter().map(|found| (found.code, String::new(), found.message.clone())).collect();
        }
    };
    let others = row.before.iter().flat_map(|text| read(&row.file, text.as_bytes(), &Limits::default()).ok()).flatten();
    let is_template = |object: &Value| object["kind"].as_str().is_some_and(|kind| Reach::of_kind(kind).is_some());
    let all = documents.iter().map(|document| document.value.clone()).chain(others.map(|document| document.value));
    let objects = Objects { templates: all.filter(is_template).collect(), ..Objects::default() };
    let judged = documents.iter().map(|document| match is_template(&document.value) {
        true => admit_template(&document.value).0,
        false => admit(&document.value, &objects).err().map(|problems| problems.0).unwrap_or_default(),
    });
    let told = judged.flatten();
    told.map(|found| (found.code, found.path.map(|path| path.to_string()).unwrap_or_default(), found.message)).collect()
}

#[test]
fn rows_to_be_rejected_are_rejected() {
    let Some(rows) = rows() else { return };
    for row in rows.iter().filter(|row| row.rejected) {
        assert!(!problems(row).is_empty(), "{} must be rejected", row.file);
    }
}

#[test]
fn other_rows_are_admitted_or_refused_for_a_named_feature() {
    let Some(rows) = rows() else { return };
    let mut admitted = 0;
    let mut refused: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows.iter().filter(|row| !row.rejected) {
        let problems = problems(row);
        let unsupported = |code: &str| code == shape::code::UNSUPPORTED || code == code::KIND;
        match problems.iter().find(|(code, ..)| unsupported(code)) {
            None if problems.is_empty() => admitted += 1,
            None if NEED_A_PARAMETER.contains(&row.file.as_str()) => {
                assert!(problems.iter().all(|(code, ..)| *code == code::NO_VALUE), "{problems:?}");
            }
            None if NEED_A_TEMPLATE.contains(&row.file.as_str()) => {}
            None => wrong.push(format!("{}: {problems:?}", row.file)),
            Some(_) => {
                for (_, _, message) in problems.iter().filter(|(code, ..)| unsupported(code)) {
                    let rows = refused.entry(message.clone()).or_default();
                    rows.push(&row.file);
                    rows.dedup();
                }
            }
        }
    }
    for (feature, rows) in &refused {
        println!("{:3} {feature}: {}", rows.len(), rows.join(" "));
    }
    println!("{admitted} admitted");
    assert!(wrong.is_empty(), "these use only supported features:\n{}", wrong.join("\n"));
    assert!(admitted >= 120, "only {admitted} rows are admitted");
}
