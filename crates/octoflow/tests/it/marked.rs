//! Manifests with marks: every finding of `octoflow lint` stands on a line that says so, and every line that says so
//! has its finding. `#! error OF1029` at the end of a line marks it; `#! strict` anywhere asks for `--strict`.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::Value;

use crate::stage::Stage;

/// Line, severity and code.
type Finding = (usize, String, String);

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lint")
}

fn marks(text: &str) -> BTreeSet<Finding> {
    let marked = text.lines().enumerate().filter_map(|(index, line)| Some((index + 1, line.split_once("#! ")?.1)));
    let each = marked.flat_map(|(line, words)| words.split(", ").map(move |mark| (line, mark)));
    let findings = each.filter_map(|(line, mark)| {
        let (severity, code) = mark.trim().split_once(' ')?;
        Some((line, severity.to_owned(), code.to_owned()))
    });
    findings.collect()
}

#[test]
fn every_finding_is_on_its_line_and_nothing_else_is_found() {
    let stage = Stage::new();
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 9, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let expected = marks(&text);
        let mut words = vec!["lint", file.to_str().unwrap(), "-o", "json"];
        if text.contains("#! strict") {
            words.push("--strict");
        }
        let said = stage.octoflow(&words);
        let findings: Vec<Value> = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}\n{said}"));
        let word = |finding: &Value, field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        let found: BTreeSet<Finding> = findings
            .iter()
            .map(|one| {
                let line = one["line"].as_u64().and_then(|line| usize::try_from(line).ok()).unwrap_or(0);
                (line, word(one, "severity"), word(one, "code"))
            })
            .collect();
        let has_errors = expected.iter().any(|(_, severity, _)| severity == "error");
        assert_eq!(said.code, if has_errors { 6 } else { 0 }, "{}", file.display());
        for missing in expected.difference(&found) {
            wrong.push(format!("{}: not found: {missing:?}", file.display()));
        }
        for (line, severity, code) in found.difference(&expected) {
            let told = findings.iter().find(|one| one["line"] == *line as u64 && one["code"] == code.as_str());
            let message = told.map(|one| word(one, "message")).unwrap_or_default();
            wrong.push(format!("{}:{line}: not expected: {severity} {code}: {message}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
