//! The corpus through one server for all rows: each has a namespace of its own, so that names, maps and locks do not meet.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use octoflow_manifest::{Limits, read};
use serde_json::json;

use crate::{
    PATIENCE, SHORT_PATIENCE, ending,
    table::{Case, Ending, WAITING},
    wire::{
        http::{TOKEN, call},
        processes::left_behind,
        server::{ANYWHERE, Server},
    },
};

/// The server does the work of all; a row here only waits.
const AT_ONCE: usize = 24;

pub(crate) fn endings(corpus: &Path, cases: &[Case], scratch: &Path, path: &str) -> BTreeMap<usize, Ending> {
    let data_dir = scratch.join("server");
    let mut command = Server::command(ANYWHERE, &data_dir, &["--parallelism", "64"]);
    // Some rows ask a web server that another of their steps starts.
    let mut server =
        Server::launch(command.env("PATH", path).env("OCTOFLOW_EGRESS", "local").env("OCTOFLOW_ALLOW_HOST_PATH", "/"));
    let found = crate::endings(corpus, cases, AT_ONCE, |case, at, again| {
        let namespace = format!("row-{at}-{again}");
        let limits = scratch.join(format!("{namespace}.limits.yaml"));
        let files = case.files(corpus, &limits);
        let waits = WAITING.contains(&case.file.as_str());
        match (submit(&server, &files, &namespace, waits), case.expected.as_str()) {
            // The command judges before it sends anything; the server must come to the same end by itself.
            (Ending::Rejected, "rejected") => refused(&server, &files, &namespace),
            (Ending::Phase(phase), _) if waits && phase == "Running" => stopped(&server, &namespace),
            (ended, _) => ended,
        }
    });
    server.stop();
    let left = left_behind(&data_dir);
    assert!(left.is_empty(), "the server left processes behind: {left:?}");
    found
}

fn submit(server: &Server, files: &[PathBuf], namespace: &str, waits: bool) -> Ending {
    let patience = if waits { SHORT_PATIENCE } else { PATIENCE };
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        .args(["submit", "--wait", "-o", "json", "--timeout", patience, "--namespace", namespace])
        .args(files)
        .env("OCTOFLOW_SERVER", format!("http://{}", server.address))
        .env("OCTOFLOW_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be started");
    ending(&output)
}

/// Ends the one workflow of the namespace, as its timeout would have done locally.
fn stopped(server: &Server, namespace: &str) -> Ending {
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        .args(["terminate", "@latest", "--namespace", namespace])
        .env("OCTOFLOW_SERVER", format!("http://{}", server.address))
        .env("OCTOFLOW_TOKEN", TOKEN)
        .output()
        .expect("the command can be started");
    let found = call(server.address, "GET", &format!("/api/v1/workflows/{namespace}/@latest"), None);
    let found = found.expect("the server answers").body;
    match found["status"]["phase"].as_str() {
        Some(phase) => Ending::Phase(phase.to_owned()),
        None => Ending::Broken(format!("{}: {found}", output.status)),
    }
}

/// Sends every document of the files as it is; the server must refuse one of them, and in its words.
fn refused(server: &Server, files: &[PathBuf], namespace: &str) -> Ending {
    let mut answers = Vec::new();
    for file in files {
        let text = fs::read(file).expect("the corpus has its files");
        // What is no YAML cannot be sent as JSON either.
        let Ok(documents) = read(&file.to_string_lossy(), &text, &Limits::default()) else { return Ending::Rejected };
        for document in documents {
            let mut object = document.value;
            let (path, key) = match object["kind"].as_str().unwrap_or_default() {
                "Workflow" => (format!("/api/v1/workflows/{namespace}"), "workflow"),
                "WorkflowTemplate" => (format!("/api/v1/workflow-templates/{namespace}"), "template"),
                "ClusterWorkflowTemplate" => ("/api/v1/cluster-workflow-templates".to_owned(), "template"),
                "CronWorkflow" => (format!("/api/v1/cron-workflows/{namespace}"), "cronWorkflow"),
                _ => continue,
            };
            if key != "template" || path.ends_with(namespace) {
                object["metadata"]["namespace"] = json!(namespace);
            }
            let answer = call(server.address, "POST", &path, Some(&json!({key: object}))).expect("the server answers");
            if matches!(answer.status, 400 | 422) && answer.body["message"].is_string() {
                return Ending::Rejected;
            }
            answers.push((answer.status, answer.body));
        }
    }
    Ending::Broken(format!("the command refuses it, and the server answers {answers:?}"))
}
