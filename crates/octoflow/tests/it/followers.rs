//! Many who follow logs at one time, through every face: they cost no thread each, all of them get every line and the end,
//! and others are answered as if nobody followed anything.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    stage::Stage,
    wire::{
        http::{TOKEN, ask},
        server::Server,
        waiting::{PATIENCE, eventually},
    },
};

/// Four times as many as there can be blocking threads.
const MANY: usize = 2000;
/// Far more than an answer takes, and far less than one that waits behind followers would.
const ANSWERED: Duration = Duration::from_secs(10);

const WORKFLOWS: &str = "/api/v1/workflows/default";

/// Says a line, and another one when it is told to stop.
fn talker() -> Vec<u8> {
    let script = "trap 'echo last words; exit 0' TERM; echo first words; while :; do sleep 0.1; done";
    let container = json!({"image": "busybox", "command": ["sh", "-c"], "args": [script]});
    let spec = json!({"entrypoint": "talk", "templates": [{"name": "talk", "container": container}]});
    let workflow = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "talker"}, "spec": spec,
    });
    json!({ "workflow": workflow }).to_string().into_bytes()
}

struct Follower {
    stream: TcpStream,
    path: &'static str,
    heard: Vec<u8>,
    over: bool,
}

impl Follower {
    fn new(to: SocketAddr, path: &'static str) -> Self {
        let mut stream = TcpStream::connect(to).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer {TOKEN}\r\n\r\n").unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, path, heard: Vec::new(), over: false }
    }

    /// Takes what is there. An answer in pieces ends with an empty one.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => panic!("{} broke off: {}", self.path, self.text()),
                Ok(count) => self.heard.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{}: {error}: {}", self.path, self.text()),
            }
        }
        self.over = self.heard.ends_with(b"\r\n0\r\n\r\n");
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }

    fn heard(&self, words: &str) -> bool {
        self.text().contains(words)
    }
}

/// Until all of them are satisfied.
fn all(followers: &mut [Follower], what: &str, satisfied: impl Fn(&Follower) -> bool) {
    let give_up = Instant::now() + PATIENCE;
    loop {
        followers.iter_mut().filter(|one| !one.over).for_each(Follower::listen);
        let left = followers.iter().filter(|one| !satisfied(one)).count();
        if left == 0 {
            return;
        }
        let first = followers.iter().find(|one| !satisfied(one)).map(|one| format!("{}: {}", one.path, one.text()));
        assert!(Instant::now() < give_up, "{left} of {} never got {what}, such as {first:?}", followers.len());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_thousand_followers_get_every_line_and_others_do_not_notice() {
    let stage = Stage::new();
    let limits = ["--max-watches", "4000", "--max-watches-per-token", "4000", "--max-connections-per-address", "4000"];
    let mut server = Server::start(&stage.data_dir(), &limits);
    let to = server.address;
    assert_eq!(ask(to, "POST", WORKFLOWS, &[], &talker()).status, 200);
    let faces = [
        "/api/octoflow/v1/runs/default/talker/lines?follow=true",
        "/api/v1/namespaces/default/pods/talker/log?follow=true",
        "/api/v1/workflows/default/talker/log?logOptions.follow=true",
        "/api/v1/workflows/default/talker/log?logOptions.follow=true&grep=words&podName=talker",
    ];
    eventually("the pod runs", || ask(to, "GET", faces[1].split('?').next().unwrap(), &[], b"").status == 200);
    let mut followers: Vec<Follower> = (0..MANY).map(|at| Follower::new(to, faces[at % faces.len()])).collect();
    all(&mut followers, "the first line", |one| one.heard("first words"));

    // While all of them wait, everything else works.
    let asked = |method: &str, path: &str, body: &[u8]| {
        let began = Instant::now();
        let reply = ask(to, method, path, &[], body);
        assert!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.text());
        assert!(began.elapsed() < ANSWERED, "{method} {path} took {:?}", began.elapsed());
    };
    for round in 0..5 {
        let spec = json!({"entrypoint": "a", "templates": [{"name": "a", "suspend": {"duration": "0s"}}]});
        let other = json!({"workflow": {"metadata": {"name": format!("other-{round}")}, "spec": spec}}).to_string();
        asked("GET", "/version", b"");
        asked("POST", WORKFLOWS, other.as_bytes());
        asked("GET", WORKFLOWS, b"");
        asked("GET", "/apis/argoproj.io/v1alpha1/namespaces/default/workflows", b"");
    }
    asked("PUT", "/api/v1/workflows/default/talker/stop", b"{}");
    all(&mut followers, "the last line and the end", |one| one.over && one.heard("last words"));
    server.stop();
}
