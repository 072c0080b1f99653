//! The conformance corpus through the real command: every row of its table ends in its phase.
//! A row that is judged otherwise says why.

#![expect(clippy::print_stderr, reason = "a skipped corpus is told loudly")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

/// Most cases sleep rather than work, so more of them than cores run at once.
const AT_ONCE: usize = 8;
/// No case takes this long unless it hangs.
const PATIENCE: &str = "300s";
/// The table has so many rows at least; a shorter one would not have been read whole.
const AT_LEAST: usize = 198;

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
/// Stands in for the `nc` of an image: two daemons of one row listen on one port, which one machine has only once.
const NC: &str = "#!/bin/sh\nexec sleep 3600\n";

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

#[derive(Debug)]
struct Case {
    file: String,
    expected: String,
    load_first: Vec<String>,
    /// It refers to ConfigMaps that a cluster is expected to have.
    needs_config_maps: bool,
}

#[derive(Debug, PartialEq)]
enum Ending {
    Phase(String),
    Rejected,
    Broken(String),
}

#[test]
fn every_row_ends_in_its_phase() {
    let Some(corpus) = corpus() else { return };
    let cases = cases(&corpus);
    let scratch = tempfile::tempdir().expect("a scratch directory can be made");
    // Not below `/tmp`, which every task has for itself.
    let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the build has a place for tests");
    let nc = programs.path().join("nc");
    fs::write(&nc, NC).expect("a new directory takes a file");
    fs::set_permissions(&nc, fs::Permissions::from_mode(0o755)).expect("a file can be made a program");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{}:{path}", programs.path().display(), corpus.join("bin").display());
    let next = AtomicUsize::new(0);
    let endings = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((at, case)) =
                    cases.get(next.fetch_add(1, Ordering::Relaxed)).map(|case| (case.file.clone(), case))
                {
                    let tries = if draws(&corpus, case) { TRIES } else { 1 };
                    let mut ending = None;
                    for again in 0..tries {
                        let data_dir = scratch.path().join(format!("{}_{again}", at.replace('/', "_")));
                        let ended = run(&corpus, case, &data_dir, &path);
                        let right = ended == Ending::Phase(case.expected.clone());
                        ending = Some(ended);
                        if right {
                            break;
                        }
                    }
                    let ending = ending.expect("every case is tried at least once");
                    endings.lock().unwrap().insert(at, ending);
                }
            });
        }
    });
    let endings = endings.into_inner().unwrap();
    let mut wrong = Vec::new();
    let mut right = 0;
    for case in &cases {
        let ending = &endings[&case.file];
        match ending {
            Ending::Rejected if case.expected == "rejected" => right += 1,
            Ending::Phase(phase) if *phase == case.expected => right += 1,
            other => wrong.push(format!("{}: expected {}, got {other:?}", case.file, case.expected)),
        }
    }
    println!("{right} right, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{} cases ended wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(right >= AT_LEAST, "the table has only {right} rows, where it had {AT_LEAST}");
}

/// A case that draws lots may be out of luck: one that fails two times of three and may be tried eleven times ends badly
/// once in ninety runs, on any engine.
const TRIES: u32 = 4;

fn draws(corpus: &Path, case: &Case) -> bool {
    fs::read_to_string(corpus.join("argo").join(&case.file)).is_ok_and(|text| text.contains("random."))
}

fn corpus() -> Option<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if corpus.is_dir() {
        return Some(corpus.canonicalize().expect("the corpus folder has a path"));
    }
    assert!(std::env::var_os("CI").is_none(), "the corpus is required in CI: {} is missing", corpus.display());
    eprintln!("SKIPPED: the conformance corpus is not at {}", corpus.display());
    None
}

fn cases(corpus: &Path) -> Vec<Case> {
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

fn run(corpus: &Path, case: &Case, data_dir: &Path, path: &str) -> Ending {
    let files = case.load_first.iter().chain([&case.file]).map(|file| corpus.join("argo").join(file));
    let limits = data_dir.with_extension("limits.yaml");
    if case.needs_config_maps {
        fs::write(&limits, LIMITS).expect("the scratch directory takes a file");
    }
    let files = case.needs_config_maps.then_some(limits).into_iter().chain(files);
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        .args(["run", "-o", "json", "--quiet", "--timeout", PATIENCE, "--data-dir"])
        .arg(data_dir)
        .args(files)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(6) {
        return Ending::Rejected;
    }
    match serde_json::from_slice::<Value>(&output.stdout).ok().and_then(|object| phase(&object)) {
        Some(phase) => Ending::Phase(phase),
        None => Ending::Broken(format!("{}: {}", output.status, said.lines().last().unwrap_or_default())),
    }
}

fn phase(object: &Value) -> Option<String> {
    let object = object.get("items").and_then(|items| items.get(0)).unwrap_or(object);
    object["status"]["phase"].as_str().map(str::to_owned)
}
