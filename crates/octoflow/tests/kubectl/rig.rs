//! A server of ours in a place of its own, the real kubectl beside it, and a small HTTP client for what kubectl would
//! never send.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A test that waits longer than this has hung.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Rig {
    dir: TempDir,
    server: Child,
    pub(crate) address: String,
}

/// What a command left behind.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// What came back over HTTP.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Rig {
    /// None where there is no kubectl, which is said aloud; in CI that is a failure.
    pub(crate) fn with_kubectl() -> Option<Self> {
        static THERE: OnceLock<bool> = OnceLock::new();
        let there = THERE.get_or_init(|| {
            let asked = Command::new("kubectl").args(["version", "--client"]).output();
            asked.is_ok_and(|output| output.status.success())
        });
        if !there {
            assert!(std::env::var_os("CI").is_none(), "kubectl is not installed; `cargo xtask setup` does it");
            eprintln!("SKIPPED: kubectl is not installed, so nothing was tested; `cargo xtask setup` installs it");
            return None;
        }
        let rig = Self::start();
        let config = rig.octoflow(&["kubeconfig", "--server", &format!("http://{}", rig.address), "--token", "admin"]);
        assert_eq!(config.code, 0, "{config}");
        fs::write(rig.path("kubeconfig"), config.out).unwrap();
        Some(rig)
    }

    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (server, address) = serve(&dir.path().join("data"), "127.0.0.1:0");
        Self { dir, server, address }
    }

    /// Ends the server and starts another one in its place.
    pub(crate) fn restart(&mut self) {
        assert_eq!(self.stop(), Some(0));
        (self.server, self.address) = serve(&self.path("data"), &self.address);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and gives its path as an argument.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn octoflow(&self, words: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_octoflow"));
        command.args(words).env("OCTOFLOW_DATA_DIR", self.path("elsewhere")).stdin(Stdio::null());
        command.env_remove("OCTOFLOW_SERVER").env_remove("OCTOFLOW_TOKEN").env("HOME", self.dir.path());
        command.output().unwrap().into()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(words).env("KUBECONFIG", self.path("kubeconfig")).env("HOME", self.dir.path());
        command.env("EDITOR", "false").env_remove("KUBE_EDITOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn kubectl(&self, words: &[&str]) -> Said {
        self.command(words).output().unwrap().into()
    }

    /// What kubectl prints when it ends well, which it must.
    pub(crate) fn good(&self, words: &[&str]) -> String {
        let said = self.kubectl(words);
        assert_eq!(said.code, 0, "kubectl {}\n{said}", words.join(" "));
        said.out
    }

    /// What kubectl complains of, which it must.
    pub(crate) fn bad(&self, words: &[&str]) -> String {
        let said = self.kubectl(words);
        assert_ne!(said.code, 0, "kubectl {}\n{said}", words.join(" "));
        said.err
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let text = self.good(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The version of kubectl after the `1.`.
    pub(crate) fn minor(&self) -> u32 {
        let said = self.json(&["version", "--client"]);
        let minor = said["clientVersion"]["minor"].as_str().unwrap_or_default().to_owned();
        minor.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap()
    }

    /// One request; `body` is sent as JSON unless a header says otherwise.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut stream = self.send(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Reply::parse(&bytes)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], b"")
    }

    /// The lines of an answer that has no end of its own.
    pub(crate) fn lines(&self, path: &str) -> impl Iterator<Item = Value> + use<> {
        let stream = self.send("GET", path, &[], b"");
        BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", self.address);
        let given = |name: &str| headers.iter().any(|(known, _)| *known == name);
        if !given("authorization") {
            head.push_str("authorization: Bearer admin\r\n");
        }
        if !given("content-type") && !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !given("content-length") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // Whoever is refused for its head may find the door closed before its body is through.
        let _ = stream.write_all(body);
        stream
    }

    /// Asks the server to end, and says with which code it did.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        signal(&self.server, "TERM");
        self.server.wait().unwrap().code()
    }
}

fn serve(data: &Path, listen: &str) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_octoflow"))
        // Steps of these tests see files that the tests make.
        .args(["server", "--isolation", "none", "--listen", listen, "--data-dir"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.split_once("listens on http://").map(|(_, rest)| rest.to_owned()));
    let address = address.expect("the server says where it listens");
    // Somebody has to take what it says from now on, or it would wait for that.
    thread::spawn(move || lines.for_each(drop));
    (server, address.trim().to_owned())
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.server.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(&self.server, "TERM");
            let _ = self.server.wait();
        }
    }
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: HashMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let chunked = headers.get("transfer-encoding").is_some_and(|how| how == "chunked");
        Self { status, headers, body: if chunked { unchunked(rest) } else { rest.to_vec() } }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Insists on a Status of the Kubernetes API with this code and reason.
    pub(crate) fn is_status(&self, code: u16, reason: &str) -> Value {
        let body = self.json();
        assert_eq!(self.status, code, "{body}");
        assert_eq!((&body["kind"], &body["status"]), (&Value::from("Status"), &Value::from("Failure")), "{body}");
        assert_eq!((&body["code"], &body["reason"]), (&Value::from(code), &Value::from(reason)), "{body}");
        assert!(!body["message"].as_str().unwrap().is_empty(), "{body}");
        body
    }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        if length == 0 {
            break;
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
    whole
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// Waits for something the outside world does; fails the test when it never happens.
pub(crate) fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < give_up, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Lines contain these words in this order.
#[track_caller]
pub(crate) fn shows(text: &str, words: &[&str]) {
    let mut rest = text;
    for word in words {
        let at = rest.find(word).unwrap_or_else(|| panic!("`{word}` is missing, or not where it belongs, in\n{text}"));
        rest = &rest[at + word.len()..];
    }
}

/// A workflow with one step that runs a shell command.
pub(crate) fn one_step(name: &str, command: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  name: {name}
  labels:
    app: tests
spec:
  entrypoint: main
  templates:
  - name: main
    container:
      image: busybox
      command: [sh, -c]
      args: [{}]
",
        serde_json::to_string(command).unwrap()
    )
}
