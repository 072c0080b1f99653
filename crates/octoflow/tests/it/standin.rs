//! The same manifest on a machine with nothing installed: the local store stands in for buckets without a Secret and
//! for plugin stores; buckets whose Secret exists are used as they are, listed and read from.

use serde_json::Value;

use crate::{
    artifacts::{S3, SECRET, artifact, files, node, ok, s3, serve, shell, workflow},
    stage::Stage,
};

/// A place in a bucket, with credentials in the Secret `cred`.
fn bucket(endpoint: &str, bucket: &str, key: &str) -> String {
    format!(
        "s3: {{bucket: {bucket}, endpoint: \"{endpoint}\", insecure: true, key: \"{key}\", accessKeySecret: {{name: cred, key: access}}, secretKeySecret: {{name: cred, key: secret}}}}"
    )
}

fn secret(access_key: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: cred}}\nstringData: {{{access_key}: ACCESS, secret: {SECRET}}}\n---\n"
    )
}

fn address(server: &S3) -> String {
    format!("127.0.0.1:{}", server.port)
}

fn writer(name: &str, place: &str) -> String {
    let outputs = format!(
        "    outputs:\n      artifacts:\n      - {{name: out, path: /tmp/o, archive: {{none: {{}}}}, {place}}}\n"
    );
    let spec = "  artifactGC: {strategy: OnWorkflowDeletion}\n";
    workflow(name, spec, &shell("main", "echo kept > /tmp/o", &outputs))
}

fn reader(name: &str, place: &str) -> String {
    let inputs = format!("    inputs:\n      artifacts:\n      - {{name: in, path: /tmp/in, {place}}}\n");
    workflow(name, "", &shell("main", "cat /tmp/in", &inputs))
}

fn keys(stage: &Stage) -> usize {
    files(&stage.data_dir().join("artifacts/keys")).len()
}

#[test]
fn a_bucket_without_its_secret_is_kept_here_and_its_readers_and_writers_meet() {
    let stage = Stage::new();
    // There is no server there, and none is contacted.
    let place = |name: &str| bucket("bucket.invalid:9000", name, "some/key");
    let said = stage.good(&["run", &stage.file("w.yaml", writer("write", &place("one")))]);
    assert_eq!(said.err.matches("warning[OF1067]").count(), 1, "{said}");
    assert!(
        said.err.contains("Secret 'cred' is not here, so the bucket s3://bucket.invalid:9000/one is kept"),
        "{said}"
    );
    let object = stage.json(&["get", "write", "-o", "json"]);
    let out = artifact(&object, "write", "out");
    assert_eq!((&out["s3"]["key"], &out["standIn"]), (&Value::from("some/key"), &Value::from(true)));
    assert_eq!(out["local"]["key"], "s3://bucket.invalid:9000/one/some/key");
    stage.good(&["run", &stage.file("w.yaml", reader("same", &place("one")))]);
    assert!(stage.good(&["logs", "same"]).out.contains("kept"));
    let said = stage.octoflow(&["run", &stage.file("w.yaml", reader("other", &place("two")))]);
    assert!(said.code == 1 && said.err.contains("there is no artifact with the key"), "{said}");
    // The Secret comes after the run: what was kept here is deleted here.
    assert_eq!(keys(&stage), 1);
    stage.good(&["run", &stage.file("w.yaml", secret("access") + &workflow("later", "", &shell("main", "true", "")))]);
    let said = stage.good(&["delete", "write"]);
    assert!(!said.err.contains("could not be deleted"), "{said}");
    assert_eq!(keys(&stage), 0);
}

#[test]
fn a_secret_that_is_there_without_its_key_is_an_error_as_before() {
    let stage = Stage::new();
    let text = secret("misspelled") + &writer("write", &bucket("bucket.invalid:9000", "one", "k"));
    let said = stage.octoflow(&["run", &stage.file("w.yaml", text)]);
    assert!(said.code == 1 && said.err.contains("Secret 'cred' with key 'access' not found"), "{said}");
    assert!(!said.err.contains("OF1067"), "{said}");
}

#[test]
fn the_store_of_a_plugin_is_kept_here_whether_a_template_or_a_repository_names_it() {
    let stage = Stage::new();
    let outputs = "    archiveLocation: {plugin: {name: mine, key: \"{{workflow.name}}\", configuration: \"bucket: b\"}}\n    outputs: {artifacts: [{name: out, path: /tmp/o, archive: {none: {}}}]}\n";
    let text = workflow("archived", "", &shell("main", "echo kept > /tmp/o", outputs));
    let said = stage.good(&["run", &stage.file("w.yaml", text)]);
    assert_eq!(said.err.matches("no plugin runs here").count(), 1, "{said}");
    let object = stage.json(&["get", "archived", "-o", "json"]);
    assert_eq!(artifact(&object, "archived", "out")["local"]["key"], "plugin://mine/archived/o");
    let place = "plugin: {name: mine, key: archived/o}";
    stage.good(&["run", &stage.file("w.yaml", reader("taken", place))]);
    assert!(stage.good(&["logs", "taken"]).out.contains("kept"));
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: artifact-repositories}\ndata: {p: \"plugin: {name: mine}\"}\n---\n";
    let text = reader("keyed", "s3: {key: archived/o}")
        .replace("  entrypoint: main\n", "  entrypoint: main\n  artifactRepositoryRef: {key: p}\n");
    let said = stage.good(&["run", &stage.file("w.yaml", map.to_owned() + &text)]);
    assert_eq!(said.err.matches("no plugin runs here").count(), 1, "{said}");
    assert!(stage.good(&["logs", "keyed"]).out.contains("kept"));
}

fn lister(name: &str, place: &str) -> String {
    workflow(
        name,
        "",
        &format!(
            "  - name: main\n    data:\n      source: {{artifactPaths: {{name: all, {place}}}}}\n      transformation: [{{expression: \"filter(data, {{not (# endsWith 'six')}})\"}}]\n"
        ),
    )
}

fn listed(stage: &Stage, name: &str) -> Value {
    let object = stage.json(&["get", name, "-o", "json"]);
    node(&object, name)["outputs"]["result"].clone()
}

#[test]
fn a_data_template_lists_the_bucket_it_names() {
    let Some(server) = s3() else { return };
    let stage = Stage::new();
    for name in ["logs/one", "logs/two", "logs/six", "others/one"] {
        let path = server.dir.path().join("bucket").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let text = secret("access") + &lister("real", &bucket(&address(&server), "bucket", "logs/"));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    assert_eq!(listed(&stage, "real"), "[\"logs/one\",\"logs/two\"]");
    stage.good(&["run", &stage.file("w.yaml", lister("whole", &bucket(&address(&server), "bucket", "")))]);
    assert_eq!(listed(&stage, "whole"), "[\"logs/one\",\"logs/two\",\"others/one\"]");
    let said =
        stage.octoflow(&["run", &stage.file("w.yaml", lister("gone", &bucket(&address(&server), "nothing", "logs/")))]);
    assert!(said.code == 1 && !said.err.contains(SECRET), "{said}");
}

#[test]
fn a_data_template_lists_what_is_kept_here_for_a_bucket_by_the_keys_it_has_there() {
    let stage = Stage::new();
    let place = |name: &str, key: &str| bucket("bucket.invalid:9000", name, key);
    for (name, store, key) in [("a", "one", "logs/one"), ("b", "one", "else/one"), ("c", "two", "logs/one")] {
        stage.good(&["run", &stage.file("w.yaml", writer(name, &place(store, key)))]);
    }
    stage.good(&["run", &stage.file("w.yaml", lister("part", &place("one", "logs/")))]);
    assert_eq!(listed(&stage, "part"), "[\"logs/one\"]");
    stage.good(&["run", &stage.file("w.yaml", lister("whole", &place("one", "")))]);
    assert_eq!(listed(&stage, "whole"), "[\"else/one\",\"logs/one\"]");
}

const MANIFEST: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: m-}, data: {a: found}}";

fn maker(name: &str, place: &str) -> String {
    workflow(
        name,
        "",
        &format!(
            "  - name: main\n    inputs:\n      artifacts: [{{name: text, path: /tmp/m, {place}}}]\n    resource: {{action: create, manifestFrom: {{artifact: {{name: text}}}}}}\n    outputs: {{parameters: [{{name: a, valueFrom: {{jsonPath: '{{.data.a}}'}}}}]}}\n"
        ),
    )
}

fn made(stage: &Stage, name: &str) -> Value {
    let object = stage.json(&["get", name, "-o", "json"]);
    node(&object, name)["outputs"]["parameters"][0]["value"].clone()
}

#[test]
fn a_manifest_may_lie_in_a_bucket() {
    let Some(server) = s3() else { return };
    let stage = Stage::new();
    std::fs::write(server.dir.path().join("bucket/m.yaml"), MANIFEST).unwrap();
    let text = secret("access") + &maker("make", &bucket(&address(&server), "bucket", "m.yaml"));
    stage.good(&["run", &stage.file("w.yaml", text)]);
    assert_eq!(made(&stage, "make"), "found");
    let said =
        stage.octoflow(&["run", &stage.file("w.yaml", maker("absent", &bucket(&address(&server), "bucket", "x")))]);
    assert!(said.code == 1 && said.err.contains("there is neither object nor directory `x`"), "{said}");
}

#[test]
fn a_manifest_may_lie_on_a_web_server_and_is_not_read_without_end() {
    let stage = Stage::new();
    let port =
        serve(|path| if path.contains("large") { ok(&vec![b' '; 5 * 1024 * 1024]) } else { ok(MANIFEST.as_bytes()) });
    let place = |path: &str| format!("http: {{url: \"http://127.0.0.1:{port}/{path}\"}}");
    stage.good(&["run", &stage.file("w.yaml", maker("make", &place("m.yaml")))]);
    assert_eq!(made(&stage, "make"), "found");
    let said = stage.octoflow(&["run", &stage.file("w.yaml", maker("large", &place("large.yaml")))]);
    assert!(said.code == 1 && said.err.contains("it is larger than"), "{said}");
}
