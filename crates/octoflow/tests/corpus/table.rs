//! The rows of the conformance corpus: what they are, what they need, and what each ends in.
//! A row that is judged otherwise than its table says why.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The table has so many rows at least; a shorter one would not have been read whole.
pub(crate) const AT_LEAST: usize = 198;

const STEP_IN_ERROR: &str =
    "the step ends in Error for its missing output, and a group with such a step has failed, and so has the run";

/// Rows whose phase was assumed or read off the file rather than seen, and what they end in instead, with the reason.
const JUDGED: [(&str, &str, &str); 8] = [
    (
        "e2e/testdata/parameters-workflow.yaml",
        "rejected",
        "its parameter has no value; it is meant to be given with -p",
    ),
    ("e2e/testdata/progress-workflow.yaml", "Failed", "it calls /argosay, a file of its image; a process has no image"),
    (
        "examples/loops-arbitrary-sequential-steps.yaml",
        "Failed",
        "the fourth item exits with 1 to show that the loop stops there",
    ),
    ("e2e/functional/workflow_level_host_aliases.yaml", "Failed", "it asks a name server with nslookup"),
    ("e2e/functional/workflow_template_level_host_aliases.yaml", "Failed", "it asks a name server with nslookup"),
    (
        "e2e/testdata/artifactgc/artgc-from-ref-template-plugin.yaml",
        "rejected",
        "its template calls one of another WorkflowTemplate, which the row does not load",
    ),
    ("e2e/testdata/artifactgc/artgc-non-optional-artifact-not-written.yaml", "Failed", STEP_IN_ERROR),
    ("e2e/testdata/artifactgc/artgc-non-optional-artifact-not-written-plugin.yaml", "Failed", STEP_IN_ERROR),
];
/// Cases that a server ends otherwise than `run` does, and why.
const JUDGED_OF_SERVERS: [(&str, &str, &str); 2] = [
    (
        "e2e/testdata/wellformed/wellformed-workflow-with-malformed-workflow-template-ref.yaml",
        "rejected",
        "a server keeps no malformed template, so there is nothing to refer to",
    ),
    (
        "e2e/testdata/wellformed/wellformed-workflow-with-malformed-cluster-workflow-template-ref.yaml",
        "rejected",
        "a server keeps no malformed template, so there is nothing to refer to",
    ),
];

/// Cases that wait for input that never comes: they are ended once nothing else is left to do.
pub(crate) const WAITING: [&str; 1] = ["e2e/testdata/retry-test.yaml"];

/// Cases that sleep for minutes; they begin first so that the others run meanwhile.
const SLOW: [&str; 2] =
    ["examples/synchronization-db-mutex-tmpl-level.yaml", "examples/parallelism-nested-workflow.yaml"];

/// The ConfigMaps with the limits of semaphores that the cases say their cluster has.
const LIMITS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: my-config}
data: {workflow: "1", template: "3"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: template-config}
data: {template: "1"}
"#;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) expected: String,
    pub(crate) load_first: Vec<String>,
    /// It refers to ConfigMaps that a cluster is expected to have.
    pub(crate) needs_config_maps: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Ending {
    Phase(String),
    Rejected,
    Broken(String),
}

/// A case with random results may be unlucky: one that fails two times of three and may be tried eleven times ends
/// badly once in ninety runs, on any engine.
pub(crate) const TRIES: u32 = 4;

pub(crate) fn draws(corpus: &Path, case: &Case) -> bool {
    fs::read_to_string(corpus.join("argo").join(&case.file)).is_ok_and(|text| text.contains("random."))
}

pub(crate) fn corpus() -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if corpus.is_dir() {
        return Some(corpus.canonicalize().expect("the corpus folder has a path"));
    }
    assert!(std::env::var_os("CI").is_none(), "the corpus is required in CI: {} is missing", corpus.display());
    eprintln!("SKIPPED: the conformance corpus is not at {}", corpus.display());
    None
}

pub(crate) fn cases(corpus: &Path) -> Vec<Case> {
    let table = fs::read_to_string(corpus.join("argo/cases.tsv")).expect("the corpus has its table");
    let rows = table.lines().skip(1).filter(|line| !line.trim().is_empty());
    let mut cases: Vec<Case> = rows
        .map(|line| {
            let mut columns = line.split('\t').map(str::to_owned);
            let (file, expected) = (columns.next().unwrap_or_default(), columns.next().unwrap_or_default());
            let load_first = columns
                .next()
                .unwrap_or_default()
                .split(',')
                .filter(|file| !file.is_empty())
                .map(str::to_owned)
                .collect();
            let expected = JUDGED.iter().find(|judged| judged.0 == file).map_or(expected, |judged| judged.1.to_owned());
            let needs_config_maps = columns.next().unwrap_or_default().split(',').any(|need| need == "local-configmap");
            Case { file, expected, load_first, needs_config_maps }
        })
        .collect();
    cases.sort_by_key(|case| !SLOW.contains(&case.file.as_str()));
    cases
}

impl Case {
    /// Its files in the order they are to be given, with the limits of semaphores before them where it needs those.
    pub(crate) fn files(&self, corpus: &Path, limits: &Path) -> Vec<PathBuf> {
        let own = self.load_first.iter().chain([&self.file]).map(|file| corpus.join("argo").join(file));
        if self.needs_config_maps {
            fs::write(limits, LIMITS).expect("the scratch directory takes a file");
        }
        self.needs_config_maps.then(|| limits.to_owned()).into_iter().chain(own).collect()
    }

    /// What it ends in when a server has it.
    pub(crate) fn of_server(&self) -> Self {
        let judged = JUDGED_OF_SERVERS.iter().find(|judged| judged.0 == self.file);
        let expected = judged.map_or(self.expected.as_str(), |judged| judged.1).to_owned();
        Self { expected, ..self.clone() }
    }

    pub(crate) fn is_met_by(&self, ending: &Ending) -> bool {
        match ending {
            Ending::Rejected => self.expected == "rejected",
            Ending::Phase(phase) => *phase == self.expected,
            Ending::Broken(_) => false,
        }
    }
}
