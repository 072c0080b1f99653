//! The server as a process: where it refuses to start, how it ends, and that what it ran goes on after any end.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::Child,
    time::Duration,
};

use serde_json::Value;

use crate::stage::{Said, Stage, eventually, signal};

/// Starts a server and waits until it says where it is.
fn serve(stage: &Stage, words: &[&str]) -> Child {
    let beacon = stage.data_dir().join("server.json");
    let mut child = stage.start(&[&["server", "--listen", "127.0.0.1:0"], words].concat());
    let pid = child.id();
    eventually("the server answers", || {
        assert!(child.try_wait().unwrap().is_none(), "the server ended");
        fs::read(&beacon).is_ok_and(|text| serde_json::from_slice::<Value>(&text).unwrap()["pid"] == pid)
    });
    child
}

fn beacon(stage: &Stage) -> Value {
    serde_json::from_slice(&fs::read(stage.data_dir().join("server.json")).unwrap()).unwrap()
}

fn connect(stage: &Stage) -> TcpStream {
    let stream = TcpStream::connect(beacon(stage)["address"].as_str().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn get(stage: &Stage, path: &str) -> String {
    let mut stream = connect(stage);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\ntoken: admin\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn ended(child: Child) -> Said {
    child.wait_with_output().unwrap().into()
}

/// Three steps, each of which notes that it runs and then waits until it may end.
fn three(stage: &Stage) -> String {
    let step = |name: &str| {
        format!(
            "    - - {{name: {name}, template: leaf, arguments: {{parameters: [{{name: which, value: {name}}}]}}}}\n"
        )
    };
    let wait =
        "echo ran >> /out/ran-$WHICH; touch /out/began-$WHICH; while [ ! -e /out/go-$WHICH ]; do sleep 0.05; done";
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: w}}
spec:
  entrypoint: main
  volumes: [{{name: out, hostPath: {{path: {out}}}}}]
  templates:
  - name: main
    steps:
{steps}
  - name: leaf
    inputs: {{parameters: [{{name: which}}]}}
    container:
      image: busybox
      volumeMounts: [{{name: out, mountPath: /out}}]
      env: [{{name: WHICH, value: '{{{{inputs.parameters.which}}}}'}}]
      command: [sh, -c]
      args: [{wait}]
",
        out = stage.path("").display(),
        steps = ["one", "two", "three"].map(step).concat(),
        wait = serde_json::to_string(wait).unwrap(),
    )
}

#[test]
fn a_run_goes_on_after_kill_9_and_after_sigterm_and_every_step_runs_once() {
    let stage = Stage::new();
    let began = |name: &str| eventually("the step is under way", || stage.path(&format!("began-{name}")).exists());
    let go = |name: &str| fs::write(stage.path(&format!("go-{name}")), "").unwrap();
    let run = stage.start(&["run", &stage.file("w.yaml", three(&stage))]);
    began("one");
    signal(&run, "KILL");
    ended(run);

    let server = serve(&stage, &[]);
    go("one");
    began("two");
    signal(&server, "KILL");
    ended(server);
    assert!(stage.data_dir().join("server.json").exists(), "nobody could put it away");

    let server = serve(&stage, &[]);
    go("two");
    began("three");
    signal(&server, "TERM");
    let said = ended(server);
    assert_eq!(said.code, 0, "{said}");
    assert!(!stage.data_dir().join("server.json").exists());

    let server = serve(&stage, &[]);
    go("three");
    eventually("the run is over", || stage.good(&["get", "w", "-o", "jsonpath={.status.phase}"]).out == "Succeeded");
    signal(&server, "TERM");
    assert_eq!(ended(server).code, 0);
    for name in ["one", "two", "three"] {
        assert_eq!(fs::read_to_string(stage.path(&format!("ran-{name}"))).unwrap(), "ran\n", "{name} ran once");
    }
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let stage = Stage::new();
    let server = serve(&stage, &[]);
    let mut stuck = connect(&stage);
    stuck
        .write_all(b"POST /api/octoflow/v1/tokens HTTP/1.1\r\nhost: x\r\ntoken: admin\r\ncontent-length: 99\r\n\r\n{")
        .unwrap();
    // Answered on another connection, so the first request has been taken up by now or soon.
    assert!(get(&stage, "/readyz").starts_with("HTTP/1.1 200"));
    let metrics = || get(&stage, "/metrics");
    eventually("the request is open", || metrics().contains("octoflow_http_connections 2"));
    signal(&server, "TERM");
    let address = beacon(&stage)["address"].as_str().unwrap().to_owned();
    eventually("nobody else is let in", || TcpStream::connect(&address).is_err());
    signal(&server, "INT");
    assert_eq!(ended(server).code, 130);
    assert!(!stage.data_dir().join("server.json").exists());
}

#[test]
fn beyond_this_machine_it_listens_only_with_a_password_of_its_own_and_tls() {
    let stage = Stage::new();
    let outside = ["server", "--listen", "0.0.0.0:0"];
    let said = stage.octoflow(&outside);
    assert_eq!(said.code, 2, "{said}");
    assert!(said.err.contains("password everybody knows") && said.err.contains("--admin-token-file"), "{said}");
    let file = stage.file("token", "a-long-enough-token\n");
    let said = stage.octoflow(&[&outside[..], &["--admin-token-file", &file]].concat());
    assert_eq!(said.code, 2, "{said}");
    assert!(said.err.contains("--tls-cert"), "{said}");
    let short = stage.file("short", "x");
    let said = stage.octoflow(&[&outside[..], &["--admin-token-file", &short, "--tls"]].concat());
    assert!(said.code == 5 && said.err.contains("at least 8"), "{said}");
    let said = stage.octoflow(&["server", "--listen", "127.0.0.1:0", "--tls-cert", &file, "--tls-key", &file]);
    assert!(said.code == 5 && said.err.contains("certificate"), "{said}");
    let said = stage.octoflow(&["server", "--listen", "127.0.0.1:0", "--log-filter", "a=b=c"]);
    assert!(said.code == 2 && said.err.contains("a=b=c"), "{said}");

    let mut child = stage.start(&[&outside[..], &["--admin-token-file", &file, "--tls"]].concat());
    let note = stage.data_dir().join("server.json");
    eventually("the server answers", || {
        assert!(child.try_wait().unwrap().is_none(), "the server ended");
        note.exists()
    });
    let told = beacon(&stage);
    assert!(told["url"].as_str().unwrap().starts_with("https://"), "{told}");
    assert_eq!(told["fingerprint"].as_str().unwrap().len(), 64);
    signal(&child, "TERM");
    let said = ended(child);
    assert!(said.code == 0 && said.err.contains("fingerprint"), "{said}");
}

#[test]
fn the_log_of_a_server_is_json_if_asked_for_and_names_requests() {
    let stage = Stage::new();
    let server = serve(&stage, &["--log-format", "json", "--log-filter", "debug", "--metrics-open"]);
    assert!(get(&stage, "/api/octoflow/v1/whoami").contains("\"admin\""));
    signal(&server, "TERM");
    let said = ended(server);
    let lines: Vec<Value> = said.err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let request = lines.iter().find(|line| line["path"] == "/api/octoflow/v1/whoami");
    let request = request.unwrap_or_else(|| panic!("no line tells of the request: {said}"));
    assert_eq!((&request["status"], &request["who"]), (&serde_json::json!(200), &serde_json::json!("admin")));
    assert!(!said.err.contains("Bearer"), "{said}");
}

#[test]
fn the_doctor_tells_how_a_server_is_and_what_keeps_us_out() {
    let stage = Stage::new();
    let server = serve(&stage, &[]);
    let url = beacon(&stage)["url"].as_str().unwrap().to_owned();
    let found = stage.json(&["doctor", "--server", &url, "-o", "json"]);
    let verdict = |check: &str| {
        let one = found.as_array().unwrap().iter().find(|one| one["check"] == check);
        one.unwrap_or_else(|| panic!("{check} was not looked at: {found}"))["verdict"].as_str().unwrap().to_owned()
    };
    for check in ["server", "version", "clock"] {
        assert_eq!(verdict(check), "ok", "{found}");
    }
    assert_eq!(verdict("token"), "warn", "the first password is still there");
    let said = stage.octoflow(&["doctor", "--server", &url, "--token", "nobody"]);
    assert!(said.code == 1 && said.out.contains("does not let us in"), "{said}");
    signal(&server, "TERM");
    assert_eq!(ended(server).code, 0);
    let said = stage.octoflow(&["doctor", "--server", &url]);
    assert!(said.code == 1 && said.out.contains("fail"), "{said}");
}

#[test]
fn tokens_are_made_listed_and_taken_away_from_the_command_line() {
    let stage = Stage::new();
    let server = serve(&stage, &[]);
    let url = beacon(&stage)["url"].as_str().unwrap().to_owned();
    let made = stage.good(&["token", "create", "ann", "--privilege", "read_job", "--server", &url]);
    let token = made.out.trim();
    assert_eq!(token.len(), 24, "{made}");
    let list = stage.good(&["token", "list", "--server", &url]);
    assert!(list.out.contains("ann") && list.out.contains("read_job") && !list.out.contains(token), "{list}");
    stage.good(&["list", "--server", &url, "--token", token]);
    let denied = stage.octoflow(&["token", "list", "--server", &url, "--token", token]);
    assert_eq!(denied.code, 4, "{denied}");
    stage.good(&["token", "delete", "ann", "--server", &url]);
    assert_eq!(stage.octoflow(&["list", "--server", &url, "--token", token]).code, 4);
    stage.good(&["token", "set-admin", "x1-for-tests", "--server", &url]);
    assert_eq!(stage.octoflow(&["token", "list", "--server", &url]).code, 4, "the first password is gone");
    stage.good(&["token", "list", "--server", &url, "--token", "x1-for-tests"]);
    signal(&server, "TERM");
    assert_eq!(ended(server).code, 0);
}
