//! Data directories of earlier versions with open runs: they open, and their journals fold to the same state as before.
//! `tests/fixtures` has one of every format and of every dialect; its README says how they are made.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use octoflow_control::read;
use octoflow_engine::{dialect::StatusFields, kinds};
use octoflow_model::Fact;
use octoflow_store::{Filter, Page, Reader, Store};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Set to write the results instead of comparing them: for the fixture of a new format, and for intended changes in how
/// runs are shown. Read every changed line.
const WRITE: &str = "OCTOFLOW_WRITE_EXPECTATIONS";

/// Position of the format number in a SQLite file: four bytes, big endian.
const USER_VERSION: std::ops::Range<usize> = 60..64;

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every fixture by its name, such as `7` or `7-jobs`, with its format; oldest first.
fn formats() -> Vec<(u32, String)> {
    let names = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<(u32, String)> = names
        .filter_map(|name| {
            let name = name.strip_prefix("format-")?;
            let format = name.split('-').next()?.parse().ok()?;
            Some((format, name.to_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// A fixture in a place of its own: `data` and `told.json`.
fn unpack(format: &str) -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let archive = fixtures().join(format!("format-{format}/written.tar.gz"));
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(place.path()).status().unwrap();
    assert!(unpacked.success(), "{}", archive.display());
    place
}

fn format_of(data: &std::path::Path) -> u32 {
    let head = fs::read(data.join("octoflow.db")).unwrap();
    u32::from_be_bytes(head[USER_VERSION].try_into().unwrap())
}

/// All runs as they are shown, by kind and name, without what the manifest says anyway.
fn shown(reader: &Reader) -> Map<String, Value> {
    let (rows, more) = reader.list(&Filter::default(), Page { limit: 1000, after: None }).unwrap();
    assert!(more.is_none());
    let mut shown = Map::new();
    for row in rows {
        let mut object = read::object(reader, row.run).unwrap();
        object.as_object_mut().unwrap().remove("spec");
        shown.insert(format!("{}/{}", row.kind, row.name), object);
    }
    shown
}

/// One line for each run, so that a difference can be read.
fn compare(format: &str, found: &Map<String, Value>) {
    let path = fixtures().join(format!("format-{format}/folded.jsonl"));
    let lines: Vec<String> = found.values().map(Value::to_string).collect();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let kept: Vec<&str> = kept.lines().collect();
    assert_eq!(kept.len(), lines.len(), "format {format} has other runs than before");
    for (kept, line) in kept.into_iter().zip(&lines) {
        assert_eq!(line, kept, "a journal of format {format} folds to another state than before");
    }
}

/// Extracts what matters about a run, whichever version shows it: its state, and every node with its state, inputs and
/// outputs.
fn essence(object: &Value) -> Value {
    let status = &object["status"];
    let nodes = status["nodes"].as_object().into_iter().flatten().map(|(id, node)| {
        let mut kept = Map::new();
        for field in [
            "name",
            "type",
            "phase",
            "message",
            "inputs",
            "outputs",
            "startedAt",
            "finishedAt",
            "children",
            "boundaryID",
        ] {
            kept.insert(field.to_owned(), node[field].clone());
        }
        (id.clone(), Value::Object(kept))
    });
    json!({
        "uid": object["metadata"]["uid"], "created": object["metadata"]["creationTimestamp"],
        "phase": status["phase"], "message": status["message"], "nodes": nodes.collect::<Map<_, _>>(),
        "state": status["state"], "roles": status["roleStatus"],
        "tasks": status["taskStatusCount"], "retries": status["retryCount"], "version": status["version"],
        "indexes": status["completedIndexes"], "active": status["active"], "done": status["succeeded"],
        "failed": status["failed"], "conditions": status["conditions"], "jobs": status["jobStatusList"],
    })
}

#[test]
fn every_format_has_a_fixture() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(dir.path()).unwrap());
    let newest = format_of(dir.path());
    let all: BTreeSet<u32> = (1..=newest).collect();
    let found: BTreeSet<u32> = formats().into_iter().map(|(format, _)| format).collect();
    assert_eq!(found, all, "`cargo xtask fixture` writes the one of this format");
}

#[test]
fn every_dialect_has_runs_that_are_open_and_runs_that_are_over_in_a_fixture() {
    let mut seen = BTreeSet::new();
    for (_, name) in formats() {
        let place = unpack(&name);
        let told: Vec<Value> = serde_json::from_slice(&fs::read(place.path().join("told.json")).unwrap()).unwrap();
        for object in told {
            let dialect = kinds::dialect_of(&object).unwrap();
            let ended = StatusFields::value(&object["status"], dialect.status.finished).is_string();
            seen.insert((dialect.kind.key, dialect.is_decided(&object) && ended));
        }
    }
    for kind in kinds::of_runs() {
        for over in [false, true] {
            assert!(
                seen.contains(&(kind.key, over)),
                "no fixture has a {} that is {}: add it to the manifests, then `cargo xtask fixture --name {}`",
                kind.name,
                if over { "over" } else { "open" },
                kind.plural
            );
        }
    }
}

#[test]
fn what_earlier_versions_left_folds_to_the_same_state() {
    for (number, format) in formats() {
        let format = format.as_str();
        let place = unpack(format);
        let data = place.path().join("data");
        assert_eq!(format_of(&data), number, "the fixture is of another format than its folder says");
        let store = Store::open(&data).unwrap();
        let found = shown(&store.reader().unwrap());
        let told: Vec<Value> = serde_json::from_slice(&fs::read(place.path().join("told.json")).unwrap()).unwrap();
        assert_eq!(told.len(), found.len(), "format {format}");
        for before in told {
            let kind = kinds::dialect_of(&before).unwrap().kind;
            let name = format!("{}/{}", kind.key, before["metadata"]["name"].as_str().unwrap());
            let now = &found[&name];
            assert_eq!(essence(now), essence(&before), "{name} of format {format} is not what it was then");
        }
        compare(format, &found);
        store.reader().unwrap().check_integrity().unwrap();
        store.close().unwrap();
    }
}

#[test]
fn facts_of_earlier_versions_are_written_again_as_they_were() {
    for (_, format) in formats() {
        let place = unpack(&format);
        let store = Store::open(&place.path().join("data")).unwrap();
        let reader = store.reader().unwrap();
        let mut facts = 0;
        for row in reader.unfinished().unwrap() {
            let read = reader.facts(row.run, 0, |rows| {
                for line in rows.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    let written: Value = serde_json::from_slice(line).unwrap();
                    let fact: Fact = serde_json::from_slice(line)
                        .unwrap_or_else(|error| panic!("{error}: {written} of format {format}"));
                    assert_eq!(serde_json::to_value(&fact).unwrap(), written, "format {format}");
                    facts += 1;
                }
                Ok::<(), octoflow_store::Error>(())
            });
            read.unwrap();
        }
        assert!(facts > 100, "only {facts} facts in format {format}");
    }
}
