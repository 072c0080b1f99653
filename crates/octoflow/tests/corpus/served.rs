//! The corpus through one server for all rows: each has a namespace of its own, so that names, maps and locks do not meet.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use octoflow_manifest::{Limits, read};
use serde_json::{Value, json};

use crate::{
    PATIENCE, ending,
    http::{TOKEN, call},
    server::{Server, left_behind},
    table::{Case, Ending},
};

/// The server does the work of all; a row here is only somebody who waits.
const AT_ONCE: usize = 24;

pub(crate) fn endings(corpus: &Path, cases: &[Case], scratch: &Path, path: &str) -> BTreeMap<usize, Ending> {
    let data_dir = scratch.join("server");
    let server = Server::start(&data_dir, &["--parallelism", "64"], Some(path));
    let found = crate::endings(corpus, cases, AT_ONCE, |case, at, again| {
        let namespace = format!("row-{at}-{again}");
        let limits = scratch.join(format!("{namespace}.limits.yaml"));
        match (submit(&server, &case.files(corpus, &limits), &namespace), case.expected.as_str()) {
            // The command judges before it sends anything; the server must come to the same end by itself.
            (Ending::Rejected, "rejected") => refused(&server, &corpus.join("argo").join(&case.file), &namespace),
            (ended, _) => ended,
        }
    });
    server.stop();
    let left = left_behind(&data_dir);
    assert!(left.is_empty(), "the server left processes behind: {left:?}");
    found
}

fn submit(server: &Server, files: &[PathBuf], namespace: &str) -> Ending {
    let output = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        .args(["submit", "--wait", "-o", "json", "--quiet", "--timeout", PATIENCE, "--namespace", namespace])
        .args(files)
        .env("OCTOFLOW_SERVER", format!("http://{}", server.address))
        .env("OCTOFLOW_TOKEN", TOKEN)
        .stdin(Stdio::null())
        .output()
        .expect("the command can be started");
    ending(&output)
}

/// Sends every workflow of the file as it is; the server must refuse at least one, and in its words.
fn refused(server: &Server, file: &Path, namespace: &str) -> Ending {
    let text = fs::read(file).expect("the corpus has its files");
    // What is no YAML cannot be sent as JSON either.
    let Ok(documents) = read(&file.to_string_lossy(), &text, &Limits::default()) else { return Ending::Rejected };
    let workflows: Vec<Value> =
        documents.into_iter().map(|document| document.value).filter(|value| value["kind"] == "Workflow").collect();
    let answers = workflows.iter().map(|workflow| {
        let mut workflow = workflow.clone();
        workflow["metadata"]["namespace"] = json!(namespace);
        let path = format!("/api/v1/workflows/{namespace}");
        let answer = call(server.address, "POST", &path, Some(&json!({"workflow": workflow})));
        answer.expect("the server answers")
    });
    let answers: Vec<(u16, Value)> = answers.map(|answer| (answer.status, answer.body)).collect();
    match answers.iter().any(|(status, body)| matches!(status, 400 | 422) && body["message"].is_string()) {
        true => Ending::Rejected,
        false => Ending::Broken(format!("the command refuses it, and the server answers {answers:?}")),
    }
}
