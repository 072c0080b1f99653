//! Other users of the machine: who becomes admin of an ordinary server, and who does not.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    place::{Said, one_step, shows},
    wire::{
        http::ask,
        server::{ANYWHERE, Server},
    },
};

const WHOAMI: &str = "/api/octoflow/v1/whoami";

/// A server as a user starts it, in a folder that others may enter, so that only the data directory keeps them out.
struct Ordinary {
    server: Server,
    dir: TempDir,
}

impl Ordinary {
    fn start(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Server::command(ANYWHERE, &dir.path().join("data"), more);
        command.env_remove("OCTOFLOW_ALLOW_DEFAULT_PASSWORD");
        Self { server: Server::launch(&mut command), dir }
    }

    fn data(&self) -> std::path::PathBuf {
        self.dir.path().join("data")
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    fn octoflow(&self, data_dir: &Path, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).current_dir(self.dir.path()).env("OCTOFLOW_DATA_DIR", data_dir);
        command.env("OCTOFLOW_CONFIG", self.dir.path().join("config.json")).env("NO_COLOR", "1");
        for variable in ["OCTOFLOW_SERVER", "OCTOFLOW_TOKEN", "OCTOFLOW_CA_FILE"] {
            command.env_remove(variable);
        }
        command.output().unwrap().into()
    }

    fn status(&self, token: &str) -> u16 {
        let token = format!("Bearer {token}");
        ask(self.server.address, "GET", WHOAMI, &[("authorization", &token)], b"").status
    }
}

#[test]
fn the_owner_is_admin_without_a_token_and_the_default_password_opens_nothing_over_tcp() {
    let place = Ordinary::start(&[]);
    let (data, url) = (place.data(), place.url());
    assert_eq!(place.status("admin"), 401);
    let said = place.octoflow(&data, &["token", "list"]);
    assert_eq!((said.code, said.out.as_str()), (0, "No tokens found\n"), "{said}");
    let said = place.octoflow(&data, &["--token", "admin", "token", "list"]);
    assert_eq!(said.code, 0, "over the socket the owner may say `admin`\n{said}");

    // A client with the port but without the directory gets the possible ways.
    let said = place.octoflow(&place.dir.path().join("elsewhere"), &["list", "--server", &url]);
    assert_eq!(said.code, 4, "{said}");
    shows(&said.err, &["admin.token", "--allow-default-password", "--data-dir"]);
    // With the directory the first token is found; kubectl gets it, too.
    let said = place.octoflow(&data, &["list", "--server", &url]);
    assert_eq!(said.code, 0, "{said}");
    let token = fs::read_to_string(data.join("admin.token")).unwrap().trim().to_owned();
    shows(&place.octoflow(&data, &["kubeconfig"]).out, &[&format!("octoflow:{token}@")]);
    assert_eq!(place.status(&token), 200);

    let note: Value = serde_json::from_slice(&fs::read(data.join("server.json")).unwrap()).unwrap();
    let socket = Path::new(note["socket"].as_str().unwrap());
    assert_eq!(fs::metadata(socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(data.join("admin.token")).unwrap().permissions().mode() & 0o777, 0o600);
    let said = place.octoflow(&data, &["token", "set-admin", "admin"]);
    assert_eq!(said.code, 2, "{said}");
    let said = place.octoflow(&data, &["token", "set-admin", "short"]);
    assert!(said.code == 0 && said.err.contains("guessed soon"), "{said}");
    let said = place.octoflow(&data, &["token", "set-admin", "long enough"]);
    assert_eq!(said.code, 0, "{said}");
    assert_eq!((place.status(&token), place.status("long enough")), (401, 200));
    assert!(!data.join("admin.token").exists());
    assert_eq!(place.octoflow(&data, &["kubeconfig"]).code, 2, "nobody knows the token any more");
}

#[test]
fn a_task_finds_neither_the_socket_nor_the_first_token() {
    let place = Ordinary::start(&[]);
    let data = place.data();
    let look = format!(
        "for name in server.sock admin.token server.json octoflow.db; do \
         if [ -e {0}/$name ]; then echo found $name; exit 1; fi; done; echo nothing there",
        data.display()
    );
    let file = place.dir.path().join("look.yaml");
    fs::write(&file, one_step("look", &look)).unwrap();
    let said = place.octoflow(&data, &["submit", file.to_str().unwrap(), "--log"]);
    assert_eq!(said.code, 0, "{said}");
    shows(&said.out, &["nothing there"]);
}

#[test]
fn another_user_reaches_neither_the_directory_nor_the_socket() {
    let place = Ordinary::start(&[]);
    const NOBODY: u32 = 65_534;
    let data = place.data();
    let asked = |script: &str| -> Said {
        let mut command = Command::new("sh");
        command.args(["-c", script]).uid(NOBODY).gid(NOBODY).current_dir("/");
        command.output().unwrap().into()
    };
    let me = Command::new("id").arg("-u").output().unwrap();
    if me.stdout != b"0\n" {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    assert_eq!(asked(&format!("ls {}", place.dir.path().display())).code, 0, "only the data directory keeps it out");
    for name in ["", "octoflow.db", "octoflow.db-wal", "admin.token", "server.json", "audit/audit.jsonl"] {
        let said = asked(&format!("ls -l {0}/{name} && cat {0}/{name}", data.display()));
        assert_ne!(said.code, 0, "{name}: {said}");
    }
    let connect =
        format!("import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}/server.sock')", data.display());
    let said = asked(&format!("python3 -c \"{connect}\""));
    assert!(said.err.contains("PermissionError"), "{said}");
}

#[test]
fn with_the_flag_the_default_password_works_over_tcp_and_the_start_says_what_that_means() {
    let mut place = Ordinary::start(&["--allow-default-password"]);
    assert_eq!(place.status("admin"), 200);
    let said = place.octoflow(&place.dir.path().join("elsewhere"), &["list", "--server", &place.url()]);
    assert_eq!(said.code, 0, "{said}");
    shows(&place.octoflow(&place.data(), &["doctor"]).out, &["everybody knows"]);
    shows(&place.server.stop().err, &["everybody who reaches", "is admin", "tasks included"]);
}

/// Files and directories below, with their modes.
fn modes(dir: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), entry.metadata().unwrap().permissions().mode() & 0o777)
        })
        .collect()
}

#[test]
fn a_directory_from_before_is_tightened_and_tasks_have_the_usual_umask() {
    let mut place = Ordinary::start(&[]);
    let data = place.data();
    place.server.stop();
    for (name, _) in modes(&data) {
        let path = data.join(name);
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    shows(&place.octoflow(&data, &["doctor"]).out, &["permissions", "0755", "octoflow.db 0644"]);
    let mut command = Server::command(ANYWHERE, &data, &[]);
    place.server = Server::launch(&mut command);
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    for (name, mode) in modes(&data) {
        // What the spawner makes for tasks has the modes tasks expect; other users do not get that far.
        assert!(mode & 0o077 == 0 || name == "work", "{name} has mode {mode:o}");
    }
    shows(&place.octoflow(&data, &["doctor"]).out, &["only its owner"]);
    let file = place.dir.path().join("mask.yaml");
    let script = "umask; mkdir /tmp/made; touch /tmp/made/file; stat -c %a /tmp/made /tmp/made/file";
    fs::write(&file, one_step("mask", script)).unwrap();
    let said = place.octoflow(&data, &["submit", file.to_str().unwrap(), "--log"]);
    assert_eq!(said.code, 0, "{said}");
    shows(&said.out, &["0022", "755", "644"]);
}

/// A workflow of one resource template that reads a Secret of another namespace.
const REACHES_OUT: &str = "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: reach, namespace: team-a}
spec:
  entrypoint: main
  templates:
  - name: main
    resource: {action: get, flags: [secret/theirs, -n, team-b]}
    outputs: {parameters: [{name: found, valueFrom: {jsonPath: '{.data.k}'}}]}
";

const THEIRS: &str = "apiVersion: v1
kind: Secret
metadata: {name: theirs, namespace: team-b}
stringData: {k: canary-of-team-b}
";

#[test]
fn a_token_for_one_namespace_is_made_shown_and_reaches_no_other_not_even_through_a_run() {
    let place = Ordinary::start(&[]);
    let data = place.data();
    let file = |name: &str, text: &str| {
        let path = place.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (reach, theirs) = (file("reach.yaml", REACHES_OUT), file("theirs.yaml", THEIRS));
    let said = place.octoflow(&data, &["submit", &theirs, &reach, "--wait"]);
    assert_eq!(said.code, 0, "before anybody is confined to it, a namespace reaches others\n{said}");
    let said = place.octoflow(&data, &["delete", "reach", "-n", "team-a"]);
    assert_eq!(said.code, 0, "{said}");

    let words = ["token", "create", "ann", "--privilege", "read_job,write_job", "--namespace", "team-a"];
    let said = place.octoflow(&data, &words);
    assert_eq!(said.code, 0, "{said}");
    let token = said.out.trim().to_owned();
    shows(&place.octoflow(&data, &["token", "list"]).out, &["NAMESPACES", "ann", "team-a"]);
    let as_ann = |words: &[&str]| place.octoflow(&data, &[words, &["--token", &token]].concat());
    let said = as_ann(&["list", "-n", "team-a"]);
    assert_eq!(said.code, 0, "{said}");
    let said = as_ann(&["list", "-n", "team-b"]);
    assert_eq!(said.code, 4, "{said}");
    shows(&said.err, &["the namespace team-a only"]);
    assert_eq!(as_ann(&["list", "-A"]).code, 4);
    let said = as_ann(&["submit", &reach, "-n", "team-a", "--wait"]);
    assert_eq!(said.code, 1, "{said}");
    let said = as_ann(&["get", "reach", "-n", "team-a", "-o", "json"]);
    assert!(said.out.contains("act in other namespaces") && !said.out.contains("Y2FuYXJ5"), "{said}");
}

/// Every file below that holds the bytes.
fn holding(dir: &Path, bytes: &[u8], into: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().map_while(Result::ok) {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            holding(&path, bytes, into);
        } else if fs::read(&path).is_ok_and(|found| found.windows(bytes.len()).any(|window| window == bytes)) {
            into.push(path.display().to_string());
        }
    }
}

const USES_ITS_SECRET: &str = "apiVersion: v1
kind: Secret
metadata: {name: mine}
stringData: {k: a-canary-in-a-secret}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: uses}
spec:
  entrypoint: main
  volumes: [{name: v, secret: {secretName: mine}}]
  templates:
  - name: main
    container:
      image: busybox
      command: [sh, -c]
      args: ['echo ${#K} letters; wc -c < /mine/k']
      env: [{name: K, valueFrom: {secretKeyRef: {name: mine, key: k}}}]
      volumeMounts: [{name: v, mountPath: /mine}]
";

#[test]
fn secrets_are_used_and_found_in_no_file_and_a_key_file_closes_them() {
    let mut place = Ordinary::start(&[]);
    let data = place.data();
    let file = place.dir.path().join("uses.yaml");
    fs::write(&file, USES_ITS_SECRET).unwrap();
    let said = place.octoflow(&data, &["submit", file.to_str().unwrap(), "--log"]);
    assert_eq!(said.code, 0, "{said}");
    shows(&said.out, &["20 letters", "20"]);
    shows(&place.octoflow(&data, &["doctor"]).out, &["1 encrypted, 1 of them with keys that lie in the database"]);
    place.server.stop();
    for text in ["a-canary-in-a-secret", "YS1jYW5hcnktaW4tYS1zZWNyZXQ"] {
        let mut found = Vec::new();
        holding(&data, text.as_bytes(), &mut found);
        assert!(found.is_empty(), "{text} stands in {found:?}");
    }

    let key = place.dir.path().join("key");
    fs::write(&key, [9; 32]).unwrap();
    let key_text = key.to_str().unwrap().to_owned();
    let words = ["server", "--listen", ANYWHERE, "--secrets-key-file", &key_text];
    let said = place.octoflow(&data, &words);
    assert!(said.code == 2 && said.err.contains(&key_text) && said.err.contains("chmod 600"), "{said}");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = Server::command(ANYWHERE, &data, &["--secrets-key-file", &key_text]);
    place.server = Server::launch(command.env_remove("OCTOFLOW_ALLOW_DEFAULT_PASSWORD"));
    let said = place.octoflow(&data, &["resubmit", "uses", "--log"]);
    assert!(said.code == 0 && said.out.contains("20 letters"), "{said}");
    place.server.stop();
    let said = place.octoflow(&data, &words[..3]);
    assert!(said.code == 2 && said.err.contains("--secrets-key-file"), "{said}");
    fs::write(&key, [8; 32]).unwrap();
    let said = place.octoflow(&data, &words);
    assert!(said.code == 2 && said.err.contains("another key"), "{said}");
    let said = place.octoflow(&data, &["doctor", "--secrets-key-file", &key_text]);
    assert!(said.code == 1 && said.out.contains("another key"), "{said}");
    assert_eq!(place.octoflow(&data, &["list", "-o", "name"]).code, 0, "looking at runs needs no key");
}
