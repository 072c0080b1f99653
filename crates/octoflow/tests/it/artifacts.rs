//! Artifacts through the real command: kept by key, packed as zip, fetched from and sent to servers, and deleted in time.

#![expect(clippy::print_stderr, reason = "a skipped test is told loudly")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::stage::Stage;

/// A workflow of these templates, starting at `main`.
pub(crate) fn workflow(name: &str, spec: &str, templates: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: {name}}}\nspec:\n  entrypoint: main\n{spec}  templates:\n{templates}"
    )
}

/// A template that runs a shell command.
pub(crate) fn shell(name: &str, command: &str, rest: &str) -> String {
    let command = serde_json::to_string(command).unwrap();
    format!("  - name: {name}\n    container: {{image: busybox, command: [sh, -c], args: [{command}]}}\n{rest}")
}

pub(crate) fn node<'v>(object: &'v Value, name: &str) -> &'v Value {
    let nodes = object["status"]["nodes"].as_object().unwrap();
    nodes.values().find(|node| node["displayName"] == name).unwrap_or_else(|| panic!("no node {name}"))
}

pub(crate) fn artifact<'v>(object: &'v Value, node_name: &str, name: &str) -> &'v Value {
    let artifacts = node(object, node_name)["outputs"]["artifacts"].as_array().unwrap();
    artifacts.iter().find(|artifact| artifact["name"] == name).unwrap_or_else(|| panic!("no artifact {name}"))
}

/// Files below a directory of the data directory.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found
}

#[test]
fn every_archive_strategy_comes_back_as_it_went_i16() {
    let stage = Stage::new();
    let make = "mkdir -p /tmp/d/sub && echo one > /tmp/d/a && echo two > /tmp/d/sub/b && chmod 755 /tmp/d/a && echo x > /tmp/f";
    let mut outputs = String::from("    outputs:\n      artifacts:\n");
    let mut inputs = String::from("    inputs:\n      artifacts:\n");
    let mut arguments = String::new();
    for (kind, archive) in [("zip", "{zip: {}}"), ("tar", "{tar: {}}"), ("none", "{none: {}}")] {
        for (what, path) in [("d", "/tmp/d"), ("f", "/tmp/f")] {
            outputs += &format!("      - {{name: {kind}-{what}, path: {path}, archive: {archive}}}\n");
            inputs += &format!("      - {{name: {kind}-{what}, path: /in/{kind}-{what}, archive: {archive}}}\n");
            arguments += &format!(
                "          - {{name: {kind}-{what}, from: \"{{{{steps.make.outputs.artifacts.{kind}-{what}}}}}\"}}\n"
            );
        }
    }
    let use_all = "for kind in zip tar none; do cat /in/$kind-d/a /in/$kind-d/sub/b /in/$kind-f || exit 1; test -x /in/$kind-d/a || exit 2; done";
    let main = format!(
        "  - name: main\n    steps:\n    - - {{name: make, template: make}}\n    - - name: use\n        template: use\n        arguments:\n          artifacts:\n{arguments}"
    );
    let text = workflow("strategies", "", &(main + &shell("make", make, &outputs) + &shell("use", use_all, &inputs)));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    let object = stage.json(&["get", "strategies", "-o", "json"]);
    let key = |name: &str| artifact(&object, "make", name)["local"]["key"].as_str().unwrap().to_owned();
    assert!(key("zip-d").ends_with("/zip-d.zip") && key("tar-f").ends_with("/tar-f.tgz"), "{}", key("zip-d"));
    assert!(key("none-f").ends_with("/f"));
    let logs = stage.good(&["logs", "strategies"]).out;
    assert_eq!(logs.matches("use: one").count(), 3, "{logs}");
}

#[test]
fn a_key_is_found_again_by_a_later_step_and_a_later_run() {
    let stage = Stage::new();
    let make = shell(
        "make",
        "echo kept > /tmp/out",
        "    inputs: {parameters: [{name: who}]}\n    outputs:\n      artifacts: [{name: out, path: /tmp/out, s3: {key: \"shared/{{inputs.parameters.who}}/out\"}}]\n",
    );
    let take = |key: &str, more: &str| {
        shell(
            "take",
            "cat /tmp/in; ls /tmp",
            &format!("    inputs:\n      artifacts: [{{name: in, path: /tmp/in, s3: {{key: \"{key}\"}}{more}}}]\n"),
        )
    };
    let main = "  - name: main\n    steps:\n    - - {name: make, template: make, arguments: {parameters: [{name: who, value: me}]}}\n    - - {name: take, template: take}\n";
    let first = workflow("first", "", &(main.to_owned() + &make + &take("shared/me/out", "")));
    stage.good(&["run", &stage.file("first.yaml", first)]);
    let only = "  - name: main\n    steps:\n    - - {name: take, template: take}\n";
    let second = workflow("second", "", &(only.to_owned() + &take("shared/me/out", "")));
    stage.good(&["run", &stage.file("second.yaml", second)]);
    assert!(stage.good(&["logs", "second"]).out.contains("take: kept"));
    let object = stage.json(&["get", "second", "-o", "json"]);
    let input = &node(&object, "take")["inputs"]["artifacts"][0];
    assert_eq!(input["s3"]["key"], "shared/me/out");
    assert!(input["fetched"]["digest"].as_str().unwrap().starts_with("sha256:"), "{input}");
    // Another namespace has keys of its own, and a missing key is an error unless it may be missing.
    let third = workflow("third", "", &(only.to_owned() + &take("shared/me/out", "")));
    let said = stage.octoflow(&["run", "-n", "other", &stage.file("third.yaml", third)]);
    assert_eq!(said.code, 1, "{said}");
    assert!(said.err.contains("there is no artifact with the key `shared/me/out`"), "{said}");
    let fourth = workflow("fourth", "", &(only.to_owned() + &take("nothing", ", optional: true")));
    stage.good(&["run", &stage.file("fourth.yaml", fourth)]);
    assert!(!stage.good(&["logs", "fourth"]).out.contains("kept"), "it ran without its optional input");
}

const THREE: &str = "    outputs:\n      artifacts:\n      - {name: soon, path: /tmp/o, artifactGC: {strategy: OnWorkflowCompletion}}\n      - {name: later, path: /tmp/o}\n      - {name: never, path: /tmp/o, artifactGC: {strategy: Never}}\n";

#[test]
fn artifacts_are_deleted_at_the_end_of_the_run_or_with_it() {
    let stage = Stage::new();
    let spec = "  artifactGC: {strategy: OnWorkflowDeletion, forceFinalizerRemoval: true}\n";
    let text = workflow("gc", spec, &shell("main", "echo same > /tmp/o", THREE));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    let object = stage.json(&["get", "gc", "-o", "json"]);
    assert_eq!(object["status"]["artifactGCStatus"]["strategiesProcessed"]["OnWorkflowCompletion"], true);
    let deleted = |name: &str| artifact(&object, "gc", name)["deleted"] == true;
    assert_eq!((deleted("soon"), deleted("later"), deleted("never")), (true, false, false));
    // The three have the same bytes; they stay as long as one of them does.
    let bytes = || files(&stage.data_dir().join("artifacts/sha256")).len();
    let keys = || files(&stage.data_dir().join("artifacts/keys")).len();
    assert_eq!((bytes(), keys()), (1, 2));
    stage.good(&["delete", "gc"]);
    assert_eq!((bytes(), keys()), (1, 1));
    assert!(files(&stage.data_dir().join("artifacts/doomed")).is_empty());
    let text = workflow(
        "gc2",
        spec,
        &shell("main", "echo other > /tmp/o", &THREE.replace("strategy: Never", "strategy: \"\"")),
    );
    stage.good(&["run", &stage.file("w.yaml", text)]);
    stage.good(&["delete", "gc2"]);
    assert_eq!((bytes(), keys()), (1, 1), "nothing of the second run is left");
}

#[test]
fn the_log_becomes_an_artifact_where_it_is_wanted() {
    let stage = Stage::new();
    let main = "  - name: main\n    steps:\n    - - {name: kept, template: kept}\n      - {name: not, template: plain}\n      - {name: elsewhere, template: elsewhere}\n";
    let kept = shell("kept", "echo out; echo err >&2", "");
    let plain = shell("plain", "echo quiet", "    archiveLocation: {archiveLogs: false}\n");
    let place = "    archiveLocation: {s3: {key: \"mine/{{workflow.name}}\"}}\n";
    let elsewhere = shell("elsewhere", "echo there", place);
    let text = workflow("logs", "  archiveLogs: true\n", &(main.to_owned() + &kept + &plain + &elsewhere));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    let object = stage.json(&["get", "logs", "-o", "json"]);
    let log = artifact(&object, "kept", "main-logs");
    let key = log["local"]["key"].as_str().unwrap();
    assert!(key.starts_with("logs/logs-kept-") && key.ends_with("/main.log"), "{key}");
    assert_eq!(log["local"]["size"], 8);
    assert!(node(&object, "not")["outputs"]["artifacts"].is_null());
    assert_eq!(artifact(&object, "elsewhere", "main-logs")["local"]["key"], "mine/logs/main.log");
}

#[test]
fn a_repository_that_nobody_described_is_this_machines_own_and_warned_of() {
    let stage = Stage::new();
    let output = "    outputs: {artifacts: [{name: out, path: /tmp/o}]}\n";
    let refer = |name: &str, reference: &str| {
        let spec = format!("  artifactRepositoryRef: {reference}\n");
        stage.file("w.yaml", workflow(name, &spec, &shell("main", "echo 1 > /tmp/o", output)))
    };
    let said = stage.good(&["run", &refer("named", "{configMap: my-repositories, key: x}")]);
    assert!(said.err.contains("ConfigMap 'my-repositories' is not here, so artifacts are kept in the local"), "{said}");
    let said = stage.good(&["run", &refer("unnamed", "{key: x}")]);
    assert!(said.err.contains("ConfigMap 'artifact-repositories' is not here"), "{said}");
    let said = stage.good(&["run", &refer("usual", "{configMap: artifact-repositories}")]);
    assert!(!said.err.contains("is not here"), "{said}");
    let map = stage.file(
        "map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: artifact-repositories}\ndata: {bad: \"gcs: {bucket: b}\"}\n",
    );
    let said = stage.good(&["run", &map, &refer("missing", "{key: x}")]);
    assert!(said.err.contains("has no key 'x', so artifacts are kept in the local store"), "{said}");
    let said = stage.octoflow(&["run", &refer("foreign", "{key: bad}")]);
    assert!(said.code == 1 && said.err.contains("no other kind is supported"), "{said}");
}

/// Answers every request for a path with what `answer` says, until the test ends.
pub(crate) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let _ = stream.write_all(&answer(first.split(' ').nth(1).unwrap_or_default()));
        }
    });
    port
}

pub(crate) fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn inputs_come_from_the_web_and_traps_in_them_are_errors_of_the_node() {
    let stage = Stage::new();
    let mut bad = vec![0u8; 512];
    bad[..9].copy_from_slice(b"../escape");
    bad[100..107].copy_from_slice(b"0000644");
    bad[124..135].copy_from_slice(b"00000000000");
    bad[148..156].copy_from_slice(b"        ");
    bad[156] = b'0';
    bad[257..262].copy_from_slice(b"ustar");
    let sum: u32 = bad.iter().map(|byte| u32::from(*byte)).sum();
    bad[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bad.extend([0; 1024]);
    let port = serve(move |path| match path {
        "/data.txt" => ok(b"from the web"),
        "/bad.tar" => ok(&bad),
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
    });
    let input = |file: &str, more: &str| {
        let text = format!(
            "    inputs:\n      parameters: [{{name: file, value: {file}}}]\n      artifacts:\n      - name: in\n        path: /tmp/in{more}\n        http: {{url: \"http://127.0.0.1:{port}/{{{{inputs.parameters.file}}}}\"}}\n"
        );
        workflow(&format!("web-{}", file.replace('.', "-")), "", &shell("main", "cat /tmp/in || echo nothing", &text))
    };
    stage.good(&["run", &stage.file("w.yaml", input("data.txt", "\n        mode: 0600"))]);
    assert!(stage.good(&["logs", "web-data-txt"]).out.contains("from the web"));
    let said = stage.octoflow(&["run", &stage.file("w.yaml", input("bad.tar", ""))]);
    assert_eq!(said.code, 1, "{said}");
    let object = stage.json(&["get", "web-bad-tar", "-o", "json"]);
    assert_eq!(object["status"]["phase"], "Error");
    assert!(node(&object, "web-bad-tar")["message"].as_str().unwrap().contains("leads out"), "{said}");
    let said = stage.octoflow(&["run", &stage.file("w.yaml", input("gone.txt", ""))]);
    assert!(said.code == 1 && said.err.contains("answered 404"), "{said}");
    stage.good(&["run", "--name", "fine", &stage.file("w.yaml", input("gone.txt", "\n        optional: true"))]);
    assert!(stage.good(&["logs", "fine"]).out.contains("nothing"));
    let refused = stage
        .command(&["run", "--name", "strict", &stage.file("w.yaml", input("data.txt", ""))])
        .env("OCTOFLOW_EGRESS", "strict")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("not allowed"), "{refused:?}");
    let refused =
        stage.command(&["run", &stage.file("w.yaml", input("data.txt", ""))]).env("OCTOFLOW_EGRESS", "x").output();
    assert!(String::from_utf8_lossy(&refused.unwrap().stderr).contains("OCTOFLOW_EGRESS"));
}

pub(crate) struct S3 {
    pub(crate) dir: tempfile::TempDir,
    child: Child,
    pub(crate) port: u16,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that checks signatures; `cargo xtask setup` installs it, and in CI it must be there.
pub(crate) fn s3() -> Option<S3> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = var("OCTOFLOW_CI_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("octoflow-ci")))
        .or_else(|| var("HOME").map(|dir| dir.join(".cache/octoflow-ci")));
    let program = cache.map(|dir| dir.join("tools/bin/s3s-fs")).filter(|path| path.is_file());
    let Some(program) = program else {
        assert!(std::env::var_os("CI").is_none(), "CI has no S3 server: run `cargo xtask setup`");
        eprintln!("SKIPPED: there is no S3 server to test with; `cargo xtask setup` installs one");
        return None;
    };
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("bucket")).unwrap();
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut child = Command::new(&program)
            .args(["--host", "127.0.0.1", "--access-key", "ACCESS", "--secret-key", SECRET, "--port"])
            .arg(port.to_string())
            .arg(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patience = Instant::now() + Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() && Instant::now() < patience {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(S3 { dir, child, port });
            }
            thread::yield_now();
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    panic!("the S3 server does not start");
}

pub(crate) const SECRET: &str = "a-secret-nobody-may-see";

#[test]
fn a_repository_in_a_bucket_is_used_and_its_secrets_stay_secret() {
    let Some(server) = s3() else { return };
    let stage = Stage::new();
    let port = server.port;
    let catalog = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: cred}}\nstringData: {{access: ACCESS, secret: {SECRET}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: artifact-repositories\n  annotations: {{workflows.argoproj.io/default-artifact-repository: here}}\ndata:\n  here: |\n    archiveLogs: true\n    s3:\n      bucket: bucket\n      endpoint: 127.0.0.1:{port}\n      insecure: true\n      keyFormat: \"runs/{{{{workflow.name}}}}/{{{{pod.name}}}}\"\n      accessKeySecret: {{name: cred, key: access}}\n      secretKeySecret: {{name: cred, key: secret}}\n---\n"
    );
    let main =
        "  - name: main\n    steps:\n    - - {name: make, template: make}\n    - - {name: take, template: take}\n";
    let outputs = "    outputs:\n      artifacts:\n      - {name: usual, path: /tmp/f, artifactGC: {strategy: OnWorkflowCompletion}}\n      - {name: keyed, path: /tmp/d, archive: {none: {}}, s3: {key: \"by/key\"}}\n";
    let make = shell("make", "mkdir /tmp/d; echo in a bucket > /tmp/d/a; echo f > /tmp/f", outputs);
    let take = shell(
        "take",
        "cat /tmp/in/a",
        "    inputs:\n      artifacts: [{name: in, path: /tmp/in, s3: {key: \"by/key/\"}}]\n",
    );
    let text = catalog
        + &workflow("bucket", "  artifactGC: {strategy: OnWorkflowDeletion}\n", &(main.to_owned() + &make + &take));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    assert!(stage.good(&["logs", "bucket"]).out.contains("take: in a bucket"));
    let object = stage.json(&["get", "bucket", "-o", "json"]);
    let usual = artifact(&object, "make", "usual");
    let key = usual["s3"]["key"].as_str().unwrap();
    assert!(key.starts_with("runs/bucket/bucket-make-") && key.ends_with("/usual.tgz"), "{key}");
    assert_eq!((&usual["s3"]["bucket"], &usual["deleted"]), (&Value::from("bucket"), &Value::from(true)));
    let there = |key: &str| server.dir.path().join("bucket").join(key).exists();
    assert!(!there(key) && there("by/key/a"), "deleted in the bucket, too");
    let log = artifact(&object, "take", "main-logs")["s3"]["key"].as_str().unwrap().to_owned();
    assert!(there(&log), "{log}");
    for words in [["get", "bucket", "-o", "yaml"], ["get", "bucket", "-o", "json"]] {
        assert!(!stage.good(&words).out.contains(SECRET));
    }
    assert!(!stage.good(&["describe", "bucket"]).out.contains(SECRET));
    stage.good(&["delete", "bucket"]);
    assert!(!there("by/key/a") && !there(&log), "{:?}", files(server.dir.path()));
}

#[test]
fn a_bucket_that_is_gone_never_keeps_a_run_from_being_deleted() {
    let Some(server) = s3() else { return };
    let stage = Stage::new();
    let port = server.port;
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: cred}}\nstringData: {{access: ACCESS, secret: {SECRET}}}\n---\n"
    );
    let outputs = format!(
        "    outputs:\n      artifacts:\n      - name: out\n        path: /tmp/f\n        s3: {{bucket: bucket, endpoint: \"127.0.0.1:{port}\", insecure: true, key: out, accessKeySecret: {{name: cred, key: access}}, secretKeySecret: {{name: cred, key: secret}}}}\n"
    );
    let text = secret
        + &workflow(
            "gone",
            "  artifactGC: {strategy: OnWorkflowDeletion}\n",
            &shell("main", "echo f > /tmp/f", &outputs),
        );
    stage.good(&["run", &stage.file("w.yaml", text)]);
    drop(server);
    let said = stage.good(&["delete", "gone"]);
    assert!(said.err.contains("the artifact `out` could not be deleted") && !said.err.contains(SECRET), "{said}");
    assert_eq!(files(&stage.data_dir().join("artifacts/doomed")).len(), 1, "it is written down for another try");
}

#[test]
fn a_place_is_handed_down_to_the_task_that_needs_it() {
    let stage = Stage::new();
    let origin = stage.path("origin");
    fs::create_dir(&origin).unwrap();
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(words).current_dir(&origin);
        assert!(command.env("GIT_CONFIG_GLOBAL", "/dev/null").status().unwrap().success(), "{words:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main", "."]);
    fs::create_dir(origin.join("docs")).unwrap();
    fs::write(origin.join("docs/read.me"), "checked out").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    let port = serve(|_| ok(b"from an argument"));
    let arguments = format!(
        "  arguments:\n    parameters: [{{name: branch, value: main}}]\n    artifacts:\n    - {{name: web, http: {{url: \"http://127.0.0.1:{port}/x\"}}}}\n    - {{name: code, subPath: docs, git: {{repo: \"file://{}\", revision: \"{{{{workflow.parameters.branch}}}}\"}}}}\n",
        origin.display()
    );
    let main = "  - name: main\n    inputs: {artifacts: [{name: web}, {name: code}]}\n    steps:\n    - - name: inner\n        template: inner\n        arguments: {artifacts: [{name: web, from: \"{{inputs.artifacts.web}}\"}, {name: code, from: \"{{inputs.artifacts.code}}\"}]}\n";
    let inner = "  - name: inner\n    inputs: {artifacts: [{name: web}, {name: code}]}\n    dag:\n      tasks:\n      - name: use\n        template: use\n        arguments: {artifacts: [{name: web, from: \"{{inputs.artifacts.web}}\"}, {name: code, from: \"{{inputs.artifacts.code}}\"}]}\n      - name: again\n        depends: use\n        template: again\n        arguments: {artifacts: [{name: all, fromExpression: \"tasks.use.outputs.result != '' ? tasks.use.outputs.artifacts.all : tasks.use.outputs.artifacts.none\"}]}\n";
    let used = shell(
        "use",
        "cat /in/web /in/code/read.me; mkdir /out; cp /in/web /in/code/read.me /out",
        "    inputs: {artifacts: [{name: web, path: /in/web}, {name: code, path: /in/code, mode: 0755}]}\n    outputs:\n      artifacts: [{name: all, path: /out, globalName: everything, archive: {zip: {}}}, {name: none, path: /none, optional: true}]\n",
    );
    let again =
        shell("again", "cat /in/all/*", "    inputs: {artifacts: [{name: all, path: /in/all, archive: {zip: {}}}]}\n");
    let text = workflow("handed", &arguments, &format!("{main}{inner}{used}{again}"));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    let logs = stage.good(&["logs", "handed"]).out;
    assert_eq!(logs.matches("from an argument").count(), 2, "{logs}");
    assert_eq!(logs.matches("checked out").count(), 2, "{logs}");
    let object = stage.json(&["get", "handed", "-o", "json"]);
    let inputs = node(&object, "use")["inputs"]["artifacts"].as_array().unwrap();
    let code = inputs.iter().find(|input| input["name"] == "code").unwrap();
    assert!(code["fetched"]["digest"].as_str().unwrap().starts_with("git:"), "{code}");
    assert_eq!(code["git"]["revision"], "main");
    assert_eq!(object["status"]["outputs"]["artifacts"][0]["name"], "everything");
}
