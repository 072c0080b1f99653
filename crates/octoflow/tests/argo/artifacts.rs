//! Artifacts downloaded in every way there is.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::host::{Host, one_step};

#[test]
fn artifacts_come_as_files_directories_as_tarballs_and_nothing_leads_out() {
    let host = Host::start();
    let mut workflow = one_step(
        "a-",
        "mkdir -p /tmp/d/sub; echo one > /tmp/d/a.txt; echo two > /tmp/d/sub/b.txt; cat /tmp/in > /tmp/f.txt",
    );
    workflow["spec"]["templates"][0]["inputs"] =
        json!({"artifacts": [{"name": "in", "path": "/tmp/in", "raw": {"data": "given"}}]});
    workflow["spec"]["templates"][0]["outputs"] = json!({"artifacts": [
        {"name": "packed", "path": "/tmp/d"},
        {"name": "tree", "path": "/tmp/d", "archive": {"none": {}}},
        {"name": "file", "path": "/tmp/f.txt", "archive": {"none": {}}},
        {"name": "missing", "path": "/tmp/none", "optional": true}]});
    let made = host.good("POST", "/api/v1/workflows/default", &json!({"workflow": workflow}));
    let (name, uid) = (made["metadata"]["name"].as_str().unwrap(), made["metadata"]["uid"].as_str().unwrap());
    let over = host.finished(name);
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    let node = name;
    let fetch = |path: &str| {
        let reply = host.ask("GET", path, &Value::Null);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply
    };
    let file = fetch(&format!("/artifacts/default/{name}/{node}/file"));
    assert_eq!(file.text(), "given");
    assert_eq!(file.header("content-disposition"), Some("filename=\"f.txt\""));
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(fetch(&format!("/artifacts-by-uid/{uid}/{node}/file")).text(), "given");
    assert_eq!(fetch(&format!("/input-artifacts/default/{name}/{node}/in")).text(), "given");
    assert_eq!(fetch(&format!("/input-artifacts-by-uid/{uid}/{node}/in")).text(), "given");
    for artifact in ["packed", "tree"] {
        let whole = fetch(&format!("/artifacts/default/{name}/{node}/{artifact}"));
        assert!(whole.header("content-disposition").unwrap().ends_with(".tgz\""));
        let names = names_in(&whole.bytes);
        assert!(names.iter().any(|name| name.ends_with("sub/b.txt")), "{artifact}: {names:?}");
        for files in [format!("workflows/{name}"), format!("archived-workflows/{uid}")] {
            let inner = format!("/artifact-files/default/{files}/{node}/outputs/{artifact}/sub/b.txt");
            assert_eq!(fetch(&inner).text(), "two\n");
        }
    }
    assert_eq!(fetch(&format!("/artifact-files/default/workflows/{name}/{node}/inputs/in")).text(), "given");
    for absent in [
        format!("/artifacts/default/{name}/{node}/missing"),
        format!("/artifacts/default/{name}/{node}/unknown"),
        format!("/artifacts/default/{name}/other/file"),
        format!("/artifacts/elsewhere/{name}/{node}/file"),
        format!("/artifact-files/elsewhere/archived-workflows/{uid}/{node}/outputs/file"),
        format!("/artifact-files/default/workflows/{name}/{node}/outputs/tree/..%2f..%2f..%2fetc%2fpasswd"),
        format!("/artifact-files/default/workflows/{name}/{node}/outputs/tree/%2fetc%2fpasswd"),
        format!("/artifacts/default/{name}/..%2f..%2f/file"),
        format!("/artifacts/default/{name}/{node}/..%2f..%2fetc%2fpasswd"),
    ] {
        host.bad("GET", &absent, &Value::Null, 404, 5);
    }
    host.bad("GET", &format!("/artifact-files/default/workflows/{name}/{node}/sideways/file"), &Value::Null, 400, 3);
    host.bad("POST", "/upload-artifacts/default/x", &Value::Null, 501, 12);
}

fn names_in(tarball: &[u8]) -> Vec<String> {
    use std::io::Write;
    let mut tar = Command::new("tar").args(["-tzf", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    tar.stdin.take().unwrap().write_all(tarball).unwrap();
    let said = tar.wait_with_output().unwrap();
    assert!(said.status.success());
    String::from_utf8(said.stdout).unwrap().lines().map(str::to_owned).collect()
}
