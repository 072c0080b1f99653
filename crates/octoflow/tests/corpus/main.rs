//! The conformance corpus through the real command, run locally and submitted to a server: every row of its table ends
//! in its phase, either way.

#![expect(clippy::print_stderr, reason = "a skipped corpus is told loudly")]

#[path = "../wire/wire.rs"]
mod wire;

mod served;
mod table;

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::table::{AT_LEAST, Case, Ending, TRIES, WAITING, cases, corpus, draws};

/// Most cases sleep rather than work, so more of them than cores run at once.
const AT_ONCE: usize = 8;
/// No case takes this long unless it hangs.
const PATIENCE: &str = "300s";
/// A case that only waits for somebody is ended after this.
const SHORT_PATIENCE: &str = "20s";

/// Stands in for the `nc` of an image: two daemons of one row listen on one port, which one machine has only once.
const NC: &str = "#!/bin/sh\nexec sleep 3600\n";

/// One test for both ways: each sleeps most of the time, and together they take hardly longer than one.
#[test]
fn every_row_ends_in_its_phase_run_here_and_through_a_server() {
    let Some(corpus) = corpus() else { return };
    let cases = cases(&corpus);
    let of_server: Vec<Case> = cases.iter().map(Case::of_server).collect();
    let scratch = tempfile::tempdir().expect("a scratch directory can be made");
    // Not below `/tmp`, which every task has for itself, wherever the checkout is.
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = if built.starts_with("/tmp") { Path::new("/var/tmp") } else { built };
    let programs = tempfile::tempdir_in(place).expect("there is a place for programs");
    for program in fs::read_dir(corpus.join("bin")).expect("the corpus brings programs").flatten() {
        fs::copy(program.path(), programs.path().join(program.file_name())).expect("a program can be copied");
    }
    let nc = programs.path().join("nc");
    fs::write(&nc, NC).expect("a new directory takes a file");
    fs::set_permissions(&nc, fs::Permissions::from_mode(0o755)).expect("a file can be made a program");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.path().display());
    let (here, there) = thread::scope(|scope| {
        let served = scope.spawn(|| served::endings(&corpus, &of_server, scratch.path(), &path));
        let here = endings(&corpus, &cases, AT_ONCE, |case, at, again| {
            run(&corpus, case, &scratch.path().join(format!("{at}_{again}")), &path)
        });
        (here, served.join().expect("the rows of the server were tried"))
    });
    let mut wrong = judged("run here", &cases, &here);
    wrong.extend(judged("through a server", &of_server, &there));
    assert!(wrong.is_empty(), "{} cases ended wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() >= AT_LEAST, "the table has only {} rows, where it had {AT_LEAST}", cases.len());
}

/// Runs the cases, so many at a time; those with random results may be retried.
fn endings(
    corpus: &Path,
    cases: &[Case],
    at_once: usize,
    attempt: impl Fn(&Case, usize, u32) -> Ending + Sync,
) -> BTreeMap<usize, Ending> {
    let next = AtomicUsize::new(0);
    let endings = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { return };
                    let tries = if draws(corpus, case) { TRIES } else { 1 };
                    let mut ending = attempt(case, at, 0);
                    for again in 1..tries {
                        if case.is_met_by(&ending) {
                            break;
                        }
                        ending = attempt(case, at, again);
                    }
                    endings.lock().expect("nothing panics while it holds the endings").insert(at, ending);
                }
            });
        }
    });
    endings.into_inner().expect("nothing panics while it holds the endings")
}

/// Returns everything that ended differently than expected.
fn judged(way: &str, cases: &[Case], endings: &BTreeMap<usize, Ending>) -> Vec<String> {
    cases
        .iter()
        .enumerate()
        .filter(|(at, case)| !case.is_met_by(&endings[at]))
        .map(|(at, case)| format!("{} ({way}): expected {}, got {:?}", case.file, case.expected, endings[&at]))
        .collect()
}

fn run(corpus: &Path, case: &Case, data_dir: &Path, path: &str) -> Ending {
    let patience = if WAITING.contains(&case.file.as_str()) { SHORT_PATIENCE } else { PATIENCE };
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        .args(["run", "-o", "json", "--quiet", "--timeout", patience, "--data-dir"])
        .arg(data_dir)
        .args(case.files(corpus, &data_dir.with_extension("limits.yaml")))
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be started");
    ending(&output)
}

/// What a command said about the end.
fn ending(output: &Output) -> Ending {
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
