//! Every numbered behaviour of the dialect as a scenario file, run through the real binary, in one of three ways:
//!
//! * `*.test.yaml`: logic in virtual time, in the format of `octoflow test` (`docs/testing.md`);
//! * `*.process.yaml`: a manifest run for real by `octoflow run`, and what its final object holds;
//! * `*.command.yaml`: command lines, their exit codes and what they say.
//!
//! Each file names the behaviours it shows in `covers`. `covered.md` lists them; refresh it with `UPDATE=1`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "../wire/wire.rs"]
mod wire;

mod coverage;
mod real;
mod scenario;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviours")
}

/// All files below the folder with this ending, in order.
fn files(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![home()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn short(file: &Path) -> String {
    file.strip_prefix(home()).unwrap_or(file).display().to_string()
}

#[test]
fn every_behaviour_of_the_logic_holds() {
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        .args(["test", "-o", "json"])
        .args(files(".test.yaml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let cases: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        for miss in case["misses"].as_array().unwrap() {
            let file = short(Path::new(miss["file"].as_str().unwrap()));
            let word = |key: &str| miss[key].as_str().unwrap_or_default().to_owned();
            wrong.push(format!(
                "{file}:{} ({}) {}\n  expected {}\n  actual   {}",
                miss["line"],
                case["name"],
                word("what"),
                word("expected"),
                word("actual"),
            ));
        }
        assert_ne!(case["outcome"], "skipped", "a behaviour that is not tried is not shown: {case}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn every_behaviour_of_processes_holds() {
    real::all(".process.yaml", real::process);
}

#[test]
fn every_behaviour_of_commands_holds() {
    real::all(".command.yaml", real::commands);
}
