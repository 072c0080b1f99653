//! HTTP and plugin templates through the real program.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use crate::stage::{Stage, signal};

/// Answers every request with what the rule makes of its first line; keeps the heads it saw.
pub(crate) fn server(rule: impl Fn(&str) -> String + Send + 'static) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while reader.read_line(&mut head).unwrap_or(0) > 2 && !head.ends_with("\r\n\r\n") {}
            let answer = rule(head.lines().next().unwrap_or_default());
            keep.lock().unwrap().push(head);
            let _ = reader.into_inner().write_all(answer.as_bytes());
        }
    });
    (base, seen)
}

pub(crate) fn response(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

const ASK: &str = "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: ask}
spec:
  entrypoint: main
  arguments: {parameters: [{name: url}]}
  templates:
  - name: main
    steps:
    - - {name: ask, template: ask}
    - - name: tell
        template: tell
        arguments: {parameters: [{name: text, value: '{{steps.ask.outputs.result}}'}]}
  - name: ask
    http:
      url: '{{workflow.parameters.url}}'
      headers:
      - {name: Authorization, valueFrom: {secretKeyRef: {name: token, key: value}}}
      successCondition: response.statusCode == 200
  - name: tell
    inputs: {parameters: [{name: text}]}
    container: {image: busybox, command: [echo], args: ['{{inputs.parameters.text}}']}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {value: hush-hush}
";

#[test]
fn j26_a_workflow_asks_over_http_and_uses_the_answer() {
    let stage = Stage::new();
    let (base, seen) = server(|_| response("200 OK", "from afar"));
    let file = stage.file("ask.yaml", ASK);
    let object = stage.json(&["run", &file, "-p", &format!("url={base}/x"), "-o", "json"]);
    assert_eq!(object["status"]["phase"], "Succeeded");
    assert!(seen.lock().unwrap()[0].to_ascii_lowercase().contains("authorization: hush-hush"));
    assert_eq!(stage.good(&["logs", "ask", "tell", "--no-prefix"]).out.trim(), "from afar");
    assert!(!object.to_string().contains("hush-hush"), "a secret is in the status");
    let nodes = object["status"]["nodes"].as_object().unwrap();
    let node = nodes.values().find(|node| node["displayName"] == "ask" && node["type"] == "HTTP").unwrap();
    assert_eq!((&node["outputs"]["result"], &node["phase"]), (&"from afar".into(), &"Succeeded".into()));
    for file in walk(&stage.data_dir()) {
        // The object itself is kept as it was given; the journal and everything else must not have it.
        let bytes = std::fs::read(&file).unwrap();
        let found = bytes.windows(9).filter(|part| part == b"hush-hush").count();
        assert!(found == 0 || file.to_string_lossy().contains("octoflow.db"), "{}", file.display());
    }
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(walk(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

#[test]
fn the_egress_guard_stands_before_every_request_and_redirect() {
    let stage = Stage::new();
    let file = stage.file("ask.yaml", ASK.replace("name: ask}\nspec", "generateName: ask-}\nspec"));
    let ask = |url: &str, rules: Option<&str>| {
        let mut command = stage.command(&["run", &file, "-p", &format!("url={url}"), "-o", "json"]);
        if let Some(rules) = rules {
            command.env("OCTOFLOW_EGRESS", rules);
        }
        let said: crate::stage::Said = command.output().unwrap().into();
        assert_eq!(said.code, 1, "{said}");
        said.out
    };
    assert!(ask("http://169.254.169.254/latest", None).contains("not allowed"));
    let (base, _) = server(|line| {
        assert!(line.starts_with("GET "));
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            .to_owned()
    });
    assert!(ask(&base, None).contains("not allowed"));
    let (base, seen) = server(|_| response("200 OK", ""));
    assert!(ask(&base, Some("strict")).contains("not allowed"));
    assert!(seen.lock().unwrap().is_empty());
    let mut command = stage.command(&["run", &file, "-p", "url=http://x"]);
    let said: crate::stage::Said = command.env("OCTOFLOW_EGRESS", "anything").output().unwrap().into();
    assert_eq!(said.code, 2, "{said}");
}

/// Starts a run whose request the server never answers, and kills the engine meanwhile.
fn killed_while_asking(stage: &Stage, method: &str) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("url=http://{}/", listener.local_addr().unwrap());
    let file = stage.file("ask.yaml", ASK.replace("    http:\n", &format!("    http:\n      method: {method}\n")));
    let mut run = stage.start(&["run", &file, "-p", &url]);
    let (stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    assert!(line.starts_with(method), "{line}");
    signal(&run, "KILL");
    run.wait().unwrap();
    listener
}

#[test]
fn a_request_that_must_not_be_repeated_is_lost_with_the_engine() {
    let stage = Stage::new();
    let _listener = killed_while_asking(&stage, "POST");
    let said = stage.octoflow(&["run", "--resume", "ask", "-o", "json"]);
    assert_eq!(said.code, 1, "{said}");
    assert!(said.out.contains("lost: the engine went down while a POST was under way"), "{said}");
}

#[test]
fn a_request_that_may_be_repeated_is_sent_again_after_a_crash() {
    let stage = Stage::new();
    let listener = killed_while_asking(&stage, "GET");
    let again = stage.start(&["run", "--resume", "ask"]);
    let (stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).unwrap() > 2 {}
    reader.into_inner().write_all(response("200 OK", "at last").as_bytes()).unwrap();
    let output = again.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stage.good(&["logs", "ask", "tell", "--no-prefix"]).out.trim(), "at last");
}
