//! A thread of the real server panics: the process ends loudly and at once, its spawner and its tasks go on, and the next
//! server takes them up. The panic is a real one: a clock that fails (`break_thread.c`), for one thread of that process alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    stage::{Stage, eventually},
    wire::{
        http::call,
        processes::naming,
        server::{ANYWHERE, Server},
    },
};

const RUNS: &str = "/api/v1/workflows/default";

/// Builds the library that makes a thread panic; `None` if there is no compiler.
#[expect(clippy::print_stderr, reason = "nobody should miss that this was skipped")]
fn library(dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/break_thread.c");
    let library = dir.join("break_thread.so");
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").output();
    match built {
        Ok(said) if said.status.success() => return Some(library),
        why => {
            eprintln!("SKIPPED: no C compiler here, so no thread can be made to panic: {why:?}");
            assert!(std::env::var_os("CI").is_none(), "CI has no C compiler");
        }
    }
    None
}

/// A step that counts how often it began, and ends when a file is there.
fn workflow(stage: &Stage) -> Value {
    let (began, go) = (stage.path("seen/began"), stage.path("seen/go"));
    let script =
        format!("echo began >> {}; until [ -e {} ]; do sleep 0.1; done; echo done", began.display(), go.display());
    json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"},
        "spec": {"entrypoint": "main",
            "volumes": [{"name": "place", "hostPath": {"path": stage.path("seen")}}],
            "templates": [{"name": "main", "container": {
                "image": "busybox", "command": ["sh", "-c"], "args": [script],
                "volumeMounts": [{"name": "place", "mountPath": stage.path("seen")}]}}]},
    }})
}

fn other() -> Value {
    json!({"workflow": {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "other"},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "busybox", "command": ["true"]}}]},
    }})
}

/// Starts a server, lets this thread of it panic, and checks what is left.
fn panics(thread: &str) {
    let stage = Stage::new();
    let Some(library) = library(&stage.path("")) else { return };
    let order = stage.path("break");
    fs::create_dir(stage.path("seen")).unwrap();
    let mut command = Server::command(ANYWHERE, &stage.data_dir(), &[]);
    let mut server = Server::launch(command.env("LD_PRELOAD", library).env("BREAK_THREAD", &order));
    let submitted = call(server.address, "POST", RUNS, Some(&workflow(&stage))).unwrap();
    assert_eq!(submitted.status, 200, "{}", submitted.body);
    let began = || fs::read_to_string(stage.path("seen/began")).unwrap_or_default();
    eventually("its task runs", || began() == "began\n");

    fs::write(&order, thread).unwrap();
    // Another run gives every thread something to do.
    let _ = call(server.address, "POST", RUNS, Some(&other()));
    let said = server.ended();
    assert!(!order.exists(), "the thread `{thread}` never asked for the time: {said}");
    assert!(said.code > 0, "it ended well: {said}");
    for words in ["OF1114", &format!("thread '{thread}'"), "panicked", "running tasks go on"] {
        assert!(said.err.contains(words), "`{words}` is missing: {said}");
    }
    let left = naming(&stage.path("seen/go").display().to_string());
    assert!(!left.is_empty(), "the task went with the server");

    let mut server = Server::start(&stage.data_dir(), &[]);
    stage.file("seen/go", "");
    let run = || call(server.address, "GET", &format!("{RUNS}/w"), None).unwrap().body;
    eventually("it is over", || !["Running", "Pending"].map(Some).contains(&run()["status"]["phase"].as_str()));
    assert_eq!(run()["status"]["phase"], "Succeeded", "{:#}", run());
    assert_eq!(began(), "began\n", "the task was taken up, and not started again");
    server.stop();
}

#[test]
fn a_panic_of_the_event_loop_ends_the_server_loudly_and_its_tasks_go_on() {
    panics("event-loop");
}

#[test]
fn a_panic_of_the_stores_writer_ends_the_server_loudly_and_its_tasks_go_on() {
    panics("store-writer");
}

#[test]
fn a_panic_of_the_maintenance_ends_the_server_loudly_and_its_tasks_go_on() {
    panics("maintenance");
}
