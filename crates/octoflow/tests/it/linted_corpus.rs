//! `octoflow lint` over every row of the conformance corpus, each with what is loaded before it: no error in a file that
//! runs, and in every file to be rejected the error that is meant, at its place.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use crate::stage::Stage;

/// The codes with which a feature is refused because it is not supported yet. Empty it when everything is.
const NOT_YET: &[&str] = &["OF1011", "OF1012"];

/// Rows that are sound only with a parameter of the command line.
const NEED_A_PARAMETER: &[&str] = &["e2e/testdata/parameters-workflow.yaml"];

/// Rows whose template calls one of a WorkflowTemplate that they do not load.
const NEED_A_TEMPLATE: &[&str] = &["e2e/testdata/artifactgc/artgc-from-ref-template-plugin.yaml"];

/// What is wrong with each row to be rejected: line, column, code.
const REJECTED: &[(&str, u64, u64, &str)] = &[
    ("e2e/expectedfailures/empty-parameter-dag.yaml", 12, 13, "OF1019"),
    ("e2e/expectedfailures/empty-parameter-steps.yaml", 11, 13, "OF1019"),
    ("e2e/expectedfailures/misreference-template-name.yaml", 21, 23, "OF1018"),
    ("e2e/lintfail/invalid-spec.yaml", 9, 15, "OF1018"),
    ("e2e/smoke/basic-invalid.yaml", 11, 45, "OF1002"),
    ("e2e/testdata/malformed/malformed-workflow.yaml", 10, 7, "OF1010"),
    ("e2e/testdata/malformed/malformed-workflowtemplate.yaml", 10, 7, "OF1010"),
];

/// The ConfigMaps some rows say their cluster has.
const LIMITS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: my-config}
data: {workflow: \"1\", template: \"3\"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: template-config}
data: {template: \"1\"}
";

#[test]
fn the_corpus_gets_no_false_error_and_every_row_to_be_rejected_gets_the_right_one() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/argo");
    if !corpus.is_dir() {
        assert!(std::env::var_os("CI").is_none(), "the corpus must be there in CI: {}", corpus.display());
        return;
    }
    let stage = Stage::new();
    let limits = stage.file("limits.yaml", LIMITS);
    let mut expected: BTreeMap<&str, (u64, u64, &str)> =
        REJECTED.iter().map(|(file, line, column, code)| (*file, (*line, *column, *code))).collect();
    let table = fs::read_to_string(corpus.join("cases.tsv")).unwrap();
    let (mut wrong, mut sound, mut not_yet) = (Vec::new(), 0, 0);
    for row in table.lines().skip(1).filter(|row| !row.trim().is_empty()) {
        let columns: Vec<&str> = row.split('\t').collect();
        let (file, phase) = (columns[0], columns[1]);
        let before = columns.get(2).unwrap_or(&"").split(',').filter(|name| !name.is_empty());
        let files = before.chain([file]).map(|name| corpus.join(name).to_str().unwrap().to_owned());
        let mut words = vec!["lint".to_owned(), "-o".to_owned(), "json".to_owned()];
        words.extend(files);
        if columns.get(3).unwrap_or(&"").contains("local-configmap") {
            words.push(limits.clone());
        }
        let said = stage.octoflow(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let all: Vec<Value> = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{file}: {error}\n{said}"));
        let own = |one: &&Value| {
            one["severity"] == "error" && one["file"].as_str().is_some_and(|name| name.ends_with(&format!("/{file}")))
        };
        let errors: Vec<&Value> = all.iter().filter(own).collect();
        let has = |code: &str| errors.iter().any(|one| one["code"] == code);
        if phase == "rejected" {
            match expected.remove(file) {
                None => wrong.push(format!("{file}: nobody said what is wrong with it: {errors:?}")),
                Some((line, column, code)) => {
                    let told = |one: &&Value| one["line"] == line && one["column"] == column && one["code"] == code;
                    if !errors.iter().any(told) {
                        wrong.push(format!("{file}: no {code} at {line}:{column}: {errors:?}"));
                    }
                }
            }
        } else if NOT_YET.iter().any(|code| has(code)) {
            not_yet += 1;
        } else if NEED_A_PARAMETER.contains(&file) {
            assert!(has("OF1020"), "{file}: {errors:?}");
        } else if NEED_A_TEMPLATE.contains(&file) {
            assert!(has("OF1018"), "{file}: {errors:?}");
        } else if errors.is_empty() {
            sound += 1;
        } else {
            wrong.push(format!("{file} is sound: {errors:?}"));
        }
    }
    println!("{sound} sound, {not_yet} with features that are not supported yet");
    assert!(expected.is_empty(), "no row is to be rejected any more: {expected:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(sound >= 120, "only {sound} rows are sound");
}
