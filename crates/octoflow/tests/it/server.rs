//! The server as a process: when it refuses to start, how it ends, and that its runs continue after any end.

use std::{fs, io::Write, net::TcpStream};

use serde_json::Value;

use crate::{
    stage::{Said, Stage, eventually, signal},
    wire::{
        http::{Reply, ask},
        server::Server,
    },
};

fn serve(stage: &Stage, words: &[&str]) -> Server {
    Server::start(&stage.data_dir(), words)
}

fn server_file(stage: &Stage) -> Value {
    serde_json::from_slice(&fs::read(stage.data_dir().join("server.json")).unwrap()).unwrap()
}

/// Some clients name their token in a header of its own.
fn get(server: &Server, path: &str) -> Reply {
    ask(server.address, "GET", path, &[("authorization", ""), ("token", "admin")], b"")
}

#[test]
fn a_server_calls_nobody_of_its_own_network_for_others() {
    let stage = Stage::new();
    let file = stage.file(
        "ask.yaml",
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: ask}
spec: {entrypoint: ask, templates: [{name: ask, http: {url: 'http://127.0.0.1:9/'}}]}
",
    );
    let mut server = serve(&stage, &[]);
    let said: Said = stage.command(&["submit", &file, "--wait"]).output().unwrap().into();
    assert_eq!(said.code, 1, "{said}");
    let object = get(&server, "/api/v1/workflows/default/ask").text();
    assert!(object.contains("not allowed"), "{object}");
    server.stop();
}

#[test]
fn paths_of_the_machine_are_mounted_only_where_the_server_allows_it() {
    let stage = Stage::new();
    let manifest = |name: &str, path: &str| {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}}}
spec:
  entrypoint: main
  arguments: {{parameters: [{{name: path, value: '{path}'}}]}}
  volumes: [{{name: host, hostPath: {{path: '{path}'}}}}]
  templates:
  - name: main
    container: {{image: busybox, command: [ls, /host], volumeMounts: [{{name: host, mountPath: /host}}]}}
"
        );
        stage.file(&format!("{name}.yaml"), text)
    };
    let open = stage.path("open");
    fs::create_dir(&open).unwrap();
    let mut server = serve(&stage, &["--allow-host-path", open.to_str().unwrap()]);
    stage.good(&["submit", "--wait", &manifest("fine", open.to_str().unwrap())]);
    let data = stage.data_dir();
    let catalog = data.parent().unwrap().to_str().unwrap();
    for (name, path, advice) in [
        ("etc", "/etc", "--allow-host-path"),
        ("all", "/", "--data-dir"),
        ("around", catalog, "--data-dir"),
        ("data", data.to_str().unwrap(), "data directory"),
    ] {
        let said = stage.octoflow(&["submit", &manifest(name, path)]);
        assert_ne!(said.code, 0, "{said}");
        assert!(said.err.contains("OF1130") && said.err.contains("hostPath"), "{said}");
        assert!(said.err.contains(advice), "it says what to do: {said}");
    }
    // What is only known later is refused then.
    let late = fs::read_to_string(manifest("late", "/etc")).unwrap();
    let late = late.replace("{path: '/etc'}", "{path: '{{workflow.parameters.path}}'}");
    let said = stage.octoflow(&["submit", "--wait", &stage.file("later.yaml", late)]);
    assert_eq!(said.code, 1, "{said}");
    let object = get(&server, "/api/v1/workflows/default/late").text();
    assert!(object.contains("--allow-host-path"), "{object}");
    server.stop();
    let said = stage.octoflow(&["run", &manifest("own", stage.data_dir().to_str().unwrap())]);
    assert!(said.code != 0 && said.to_string().contains("data directory"), "nor by a person: {said}");
    stage.good(&["run", &manifest("mine", "/etc")]);
    // A person may mount what lies around the data directory; that is hidden in it.
    let text = fs::read_to_string(manifest("home", catalog)).unwrap();
    let name = data.file_name().unwrap().to_str().unwrap();
    let text = text.replace("[ls, /host]", &format!("[sh, -c, 'ls -A /host/{name}; ls -d /host/open']"));
    let said = stage.good(&["run", "--log", &stage.file("hidden.yaml", text)]);
    assert!(said.out.contains("/host/open") && !said.out.contains("octoflow.db"), "{said}");
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
        out = stage.path("out").display(),
        steps = ["one", "two", "three"].map(step).concat(),
        wait = serde_json::to_string(wait).unwrap(),
    )
}

#[test]
fn a_run_goes_on_after_kill_9_and_after_sigterm_and_every_step_runs_once() {
    let stage = Stage::new();
    fs::create_dir(stage.path("out")).unwrap();
    let began = |name: &str| eventually("the step is under way", || stage.path(&format!("out/began-{name}")).exists());
    let go = |name: &str| fs::write(stage.path(&format!("out/go-{name}")), "").unwrap();
    let run = stage.start(&["run", &stage.file("w.yaml", three(&stage))]);
    began("one");
    signal(&run, "KILL");
    run.wait_with_output().unwrap();

    let mut server = serve(&stage, &[]);
    go("one");
    began("two");
    server.kill();
    assert!(stage.data_dir().join("server.json").exists(), "nobody could put it away");

    let mut server = serve(&stage, &[]);
    go("two");
    began("three");
    server.stop();
    assert!(!stage.data_dir().join("server.json").exists());

    let mut server = serve(&stage, &[]);
    go("three");
    eventually("the run is over", || stage.good(&["get", "w", "-o", "jsonpath={.status.phase}"]).out == "Succeeded");
    server.stop();
    for name in ["one", "two", "three"] {
        assert_eq!(fs::read_to_string(stage.path(&format!("out/ran-{name}"))).unwrap(), "ran\n", "{name} ran once");
    }
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let stage = Stage::new();
    let mut server = serve(&stage, &[]);
    let mut stuck = TcpStream::connect(server.address).unwrap();
    stuck
        .write_all(
            b"POST /api/octoflow/v1/tokens HTTP/1.1\r\nhost: localhost\r\ntoken: admin\r\ncontent-length: 99\r\n\r\n{",
        )
        .unwrap();
    // Answered on another connection, so the first request is being handled by now or soon.
    assert_eq!(get(&server, "/readyz").status, 200);
    let metrics = || get(&server, "/metrics").text();
    eventually("the request is open", || metrics().contains("octoflow_http_connections 2"));
    assert_eq!(server_file(&stage)["address"], server.address.to_string());
    server.signal("TERM");
    eventually("nobody else is let in", || TcpStream::connect(server.address).is_err());
    server.signal("INT");
    assert_eq!(server.ended().code, 130);
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
    assert!(said.err.contains("1 characters and is guessed soon"), "{said}");
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
    let told = server_file(&stage);
    assert!(told["url"].as_str().unwrap().starts_with("https://"), "{told}");
    assert_eq!(told["fingerprint"].as_str().unwrap().len(), 64);
    signal(&child, "TERM");
    let said: Said = child.wait_with_output().unwrap().into();
    assert!(said.code == 0 && said.err.contains("fingerprint"), "{said}");
}

#[test]
fn the_log_of_a_server_is_json_if_asked_for_and_names_requests() {
    let stage = Stage::new();
    let mut server = serve(&stage, &["--log-format", "json", "--log-filter", "debug", "--metrics-open"]);
    assert!(get(&server, "/api/octoflow/v1/whoami").text().contains("\"admin\""));
    let said = server.stop();
    let lines: Vec<Value> = said.err.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let request = lines.iter().find(|line| line["path"] == "/api/octoflow/v1/whoami");
    let request = request.unwrap_or_else(|| panic!("no line tells of the request: {said}"));
    assert_eq!((&request["status"], &request["who"]), (&serde_json::json!(200), &serde_json::json!("admin")));
    assert!(!said.err.contains("Bearer"), "{said}");
}

#[test]
fn the_doctor_tells_how_a_server_is_and_what_keeps_us_out() {
    let stage = Stage::new();
    let mut server = serve(&stage, &[]);
    let url = server_file(&stage)["url"].as_str().unwrap().to_owned();
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
    server.stop();
    let said = stage.octoflow(&["doctor", "--server", &url]);
    assert!(said.code == 1 && said.out.contains("fail"), "{said}");
}

#[test]
fn tokens_are_made_listed_and_taken_away_from_the_command_line() {
    let stage = Stage::new();
    let mut server = serve(&stage, &[]);
    let url = server_file(&stage)["url"].as_str().unwrap().to_owned();
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
    server.stop();
}
