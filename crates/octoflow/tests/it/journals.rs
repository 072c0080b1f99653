//! Data directories of earlier versions with open runs are resumed by this one: every run ends. And of a later version:
//! a database or a run of it is refused by name, and other runs continue. The fixtures are
//! `crates/control/tests/fixtures`, whose README says how they are made.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use octoflow_engine::{
    dialect::{Dialect, PhaseClass},
    kinds,
};
use serde_json::{Map, Value, json};

use crate::{
    stage::{Stage, eventually, suspended},
    wire::{http::call, server::Server, waiting::within},
};

const WORKFLOWS: &str = "/api/v1/workflows/default";

/// As in the tests of the fold: results are written instead of compared.
const WRITE: &str = "OCTOFLOW_WRITE_EXPECTATIONS";

/// Pauses and deadlines in a fixture are at most 200 s long, so all of them are over unless it was written just now.
const PATIENCE: Duration = Duration::from_secs(300);

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../control/tests/fixtures")
}

/// Every fixture by its name, such as `7` or `7-jobs`, with its format.
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

/// Every kind that runs, with the path of its list.
fn run_lists() -> impl Iterator<Item = (&'static Dialect, String)> {
    kinds::of_runs().filter_map(|kind| {
        let path = format!("/apis/{}/{}/namespaces/default/{}", kind.group, kind.version, kind.plural);
        Some((kind.dialect()?, path))
    })
}

/// A stage whose data directory is the one of a fixture.
fn unpacked(format: &str) -> Stage {
    let stage = Stage::new();
    let archive = fixtures().join(format!("format-{format}/written.tar.gz"));
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(stage.path("")).status().unwrap();
    assert!(unpacked.success(), "{}", archive.display());
    stage
}

/// Summarises how a run ended: without times and ids, which differ each time it is resumed.
fn end(object: &Value) -> Value {
    let status = &object["status"];
    let mut nodes = Map::new();
    for node in status["nodes"].as_object().into_iter().flatten().map(|(_, node)| node) {
        let outputs = &node["outputs"];
        let end = json!([node["type"], node["phase"], node["message"], outputs["result"], outputs["parameters"]]);
        nodes.insert(node["name"].as_str().unwrap().to_owned(), end);
    }
    for role in status["roleStatus"].as_array().into_iter().flatten() {
        for replica in role["replicaStatus"].as_array().into_iter().flatten() {
            let name = format!("{}-{}", role["name"].as_str().unwrap(), replica["index"]);
            let end = json!([replica["phase"], replica["podReason"], replica["terminatedInfo"]["exitCode"]]);
            nodes.insert(name, end);
        }
    }
    let mut end = json!({
        "name": object["metadata"]["name"], "phase": status["phase"], "message": status["message"],
        "state": status["state"], "stateMessage": status["stateMessage"], "nodes": nodes,
    });
    // Jobs and flows count instead of naming every node. The states of some have a time, which differs each time.
    if status["state"].is_object() {
        end["phase"] = kinds::dialect_of(object).unwrap().phase_of(object).into();
        end["state"] = json!({ "message": status["state"]["message"] });
    }
    for field in ["succeeded", "failed", "retryCount", "completedIndexes", "completedJobs", "failedJobs"] {
        if !status[field].is_null() {
            end[field] = status[field].clone();
        }
    }
    end
}

/// One line for each run, so that a difference can be read.
fn compare(format: &str, ends: &[Value]) {
    let path = fixtures().join(format!("format-{format}/ended.jsonl"));
    let lines: Vec<String> = ends.iter().map(Value::to_string).collect();
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let kept: Vec<&str> = kept.lines().collect();
    assert_eq!(kept.len(), lines.len(), "format {format}");
    for (kept, line) in kept.into_iter().zip(&lines) {
        assert_eq!(line, kept, "a run of format {format} does not end as it did");
    }
}

#[test]
fn what_earlier_versions_left_comes_to_its_end() {
    for (number, format) in formats() {
        let format = format.as_str();
        let stage = unpacked(format);
        let mut server = Server::start(&stage.data_dir(), &["--parallelism", "50"]);
        let ask = |method: &str, path: &str, body: Option<&Value>| {
            let answer = call(server.address, method, path, body).unwrap();
            assert_eq!(answer.status, 200, "format {format}: {method} {path}: {}", answer.body);
            answer.body
        };
        let mut held = vec!["suspended"];
        if ask("GET", &format!("{WORKFLOWS}/loop"), None)["spec"]["suspend"] == true {
            held.push("loop");
        }
        for name in held {
            ask("PUT", &format!("{WORKFLOWS}/{name}/resume"), Some(&json!({})));
        }
        let over = |(dialect, path): &(&Dialect, String)| {
            let listed = ask("GET", path, None);
            let class = |run: &Value| dialect.phase_class(dialect.phase_of(run));
            listed["items"].as_array().unwrap().iter().all(|run| class(run).is_some_and(PhaseClass::is_final))
        };
        let lists: Vec<(&Dialect, String)> = run_lists().collect();
        let done = within(PATIENCE, || lists.iter().all(over));
        let mut runs: Vec<Value> = Vec::new();
        for (_, path) in &lists {
            let listed = ask("GET", path, None);
            for run in listed["items"].as_array().unwrap() {
                runs.push(end(&ask("GET", &format!("{path}/{}", run["metadata"]["name"].as_str().unwrap()), None)));
            }
        }
        runs.sort_by_key(|run| run["name"].to_string());
        assert!(done, "runs of format {format} do not come to their end: {runs:#?}");
        compare(format, &runs);

        // `octoflow run` keeps it as it is written.
        let secret = ask("GET", "/api/v1/namespaces/default/secrets/credentials", None);
        assert_eq!(secret["stringData"]["password"], "not-a-real-one", "format {format}: {secret}");
        // Earlier versions had no commands for schedules and templates.
        if number > 3 {
            ask("GET", "/api/v1/workflow-templates/default/shared", None);
            let nightly = ask("GET", "/api/v1/cron-workflows/default/nightly", None);
            assert_eq!(nightly["spec"]["suspend"], true, "format {format}: {nightly}");
        }
        server.stop();
        // What steps wrote before and after: with artifacts, parameters and Secrets of the time before.
        for (words, written) in [
            (["succeeded", "read"], "hello\n"),
            (["dag", "read"], "20 bytes from the first life\n"),
            (["configured", "configured"], "green 14\n"),
            (["loop", "all"], "[\"1\",\"4\",\"9\",\"16\",\"25\",\"36\"]\n"),
        ] {
            let logs = stage.good(&["logs", words[0], words[1], "--no-prefix"]);
            assert_eq!(logs.out, written, "format {format}: {words:?}");
        }
    }
}

/// Runs some SQL on a database that nobody has open.
fn change(stage: &Stage, sql: &str) {
    let python = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()";
    let path = stage.data_dir().join("octoflow.db");
    let changed = Command::new("python3").args(["-c", python, path.to_str().unwrap(), sql]).status();
    assert!(changed.unwrap().success(), "{sql}");
}

#[test]
fn runs_of_a_newer_version_are_refused_by_name_and_the_others_go_on() {
    let stage = Stage::new();
    let mut server = Server::start(&stage.data_dir(), &[]);
    for name in ["good", "fact", "field", "dialect"] {
        assert_eq!(call(server.address, "POST", WORKFLOWS, Some(&suspended(name))).unwrap().status, 200);
    }
    server.stop();
    let last = |name: &str, line: &str| {
        format!(
            "UPDATE facts SET lines = CAST(CAST(lines AS TEXT) || '{line}' || char(10) AS BLOB), count = count + 1 WHERE rowid =
             (SELECT max(facts.rowid) FROM facts JOIN runs USING (run) WHERE name = '{name}');"
        )
    };
    change(&stage, &last("fact", r#"{"Teleported":{"node":0,"to":"the moon"}}"#));
    change(&stage, &last("field", r#"{"Suspended":{"at":1,"because":"of the moon"}}"#));
    change(
        &stage,
        "UPDATE facts SET lines = CAST(replace(CAST(lines AS TEXT), '\"kind\":\"Workflow\"', '\"kind\":\"MoonFlow\"') AS BLOB)
         WHERE run = (SELECT run FROM runs WHERE name = 'dialect');
         UPDATE runs SET kind = 'MoonFlow' WHERE name = 'dialect';",
    );

    let mut server = Server::start(&stage.data_dir(), &[]);
    let ask = |method: &str, path: &str, body: Option<&Value>| call(server.address, method, path, body).unwrap();
    for (name, told) in [("fact", "is `Teleported`"), ("field", "`Suspended`, has the field `because`")] {
        let shown = ask("GET", &format!("{WORKFLOWS}/{name}"), None).body;
        assert_eq!(shown["status"]["conditions"][0]["type"], "Unreadable", "{shown}");
        let message = shown["status"]["message"].as_str().unwrap();
        assert!(message.contains(told) && message.contains("a newer version of octoflow"), "{message}");
    }
    let resumed = ask("PUT", &format!("{WORKFLOWS}/good/resume"), Some(&json!({})));
    assert_eq!(resumed.status, 200, "{}", resumed.body);
    eventually("the other one goes on", || {
        ask("GET", &format!("{WORKFLOWS}/good"), None).body["status"]["phase"] == "Succeeded"
    });
    let told = stage.octoflow(&["doctor"]);
    for words in ["`fact`", "`Teleported`", "and 2 more"] {
        assert!(told.out.contains(words), "{words}: {told}");
    }
    let said = server.stop();
    for words in ["`Teleported`", "`because`", "`MoonFlow`"] {
        assert!(said.err.contains(words), "{words}: {said}");
    }
    // They are unchanged for the version that knows them.
    let listed = stage.good(&["list", "--running", "-o", "name"]);
    assert!(listed.out.contains("fact") && listed.out.contains("field"), "{listed}");
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let stage = Stage::new();
    Server::start(&stage.data_dir(), &[]).stop();
    change(&stage, "PRAGMA user_version = 1000");
    let before = fs::read(stage.data_dir().join("octoflow.db")).unwrap();
    let manifest = stage.file("w.yaml", crate::stage::one_step("w", "true"));
    for words in [vec!["server", "--listen", "127.0.0.1:0"], vec!["run", manifest.as_str()], vec!["list"]] {
        let said = stage.octoflow(&words);
        assert_ne!(said.code, 0, "{words:?}: {said}");
        assert!(said.err.contains("1000") && said.err.contains("newer"), "{words:?}: {said}");
    }
    assert_eq!(fs::read(stage.data_dir().join("octoflow.db")).unwrap(), before);
}
