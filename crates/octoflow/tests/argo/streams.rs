//! Streams: their form, what comes first, and when they end.

use std::collections::VecDeque;

use serde_json::Value;

use crate::{host::Host, wire::http::Coming};

const EVENTS: &str = "/api/v1/workflow-events/default";
const SSE: (&str, &str) = ("Accept", "text/event-stream");

/// What clients make of a stream: they skip short lines and cut six letters off all others.
struct Client {
    stream: Coming,
    ready: VecDeque<Value>,
}

impl Client {
    fn new(stream: Coming) -> Self {
        Self { stream, ready: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Value> {
        while self.ready.is_empty() {
            let piece = String::from_utf8(self.stream.piece().unwrap()?).unwrap();
            assert!(piece.ends_with('\n'), "pieces are whole lines: {piece:?}");
            for line in piece.lines() {
                assert!(line.len() <= 5 || line.starts_with("data: "), "a line that clients would break at: {line:?}");
                if line.len() > 6 {
                    self.ready.push_back(serde_json::from_str(&line[6..]).unwrap());
                }
            }
        }
        self.ready.pop_front()
    }
}

#[test]
fn a_watch_of_one_workflow_begins_with_how_it_stands_and_tells_its_end() {
    let host = Host::start();
    let name = host.submit("w-", "sleep 1");
    let query = format!("listOptions.fieldSelector=metadata.name%3D{name}&listOptions.resourceVersion=0");
    let stream = host.open(&format!("{EVENTS}?{query}"), &[SSE]);
    assert_eq!(stream.reply.status, 200);
    assert_eq!(stream.reply.header("content-type"), Some("text/event-stream"));
    let mut client = Client::new(stream);
    let first = client.next().unwrap();
    assert_eq!(first["result"]["type"], "ADDED");
    assert_eq!(first["result"]["object"]["metadata"]["name"], name.as_str());
    loop {
        let event = client.next().unwrap();
        assert_eq!(event["result"]["object"]["metadata"]["name"], name.as_str());
        if event["result"]["object"]["status"]["finishedAt"].is_string() {
            break;
        }
    }
    host.good("DELETE", &format!("/api/v1/workflows/default/{name}"), &Value::Null);
    assert_eq!(client.next().unwrap()["result"]["type"], "DELETED");
}

#[test]
fn a_watch_that_has_nothing_to_tell_has_begun_already_and_ends_with_the_server() {
    let mut host = Host::start();
    let streams: Vec<Coming> =
        [&[SSE][..], &[]].iter().map(|headers| host.open("/api/v1/workflow-events/", headers)).collect();
    assert!(streams.iter().all(|stream| stream.reply.status == 200));
    host.server.signal("TERM");
    for stream in streams {
        assert!(stream.whole().unwrap().bytes.iter().all(u8::is_ascii_whitespace));
    }
    assert_eq!(host.server.ended().code, 0);
}

#[test]
fn without_the_wish_for_events_a_stream_is_lines_of_json_with_the_fields_that_are_wanted() {
    let host = Host::start();
    let name = host.submit("w-", "true");
    host.finished(&name);
    let query = "listOptions.fieldSelector=metadata.name%3D@latest&fields=result.object.status.phase";
    let mut stream = host.open(&format!("{EVENTS}?{query}"), &[]);
    assert_eq!(stream.reply.header("content-type"), Some("application/json"));
    let line = String::from_utf8(stream.piece().unwrap().unwrap()).unwrap();
    assert_eq!(line, "{\"result\":{\"object\":{\"status\":{\"phase\":\"Succeeded\"}},\"type\":\"ADDED\"}}\n");
}

#[test]
fn a_watch_from_a_revision_tells_only_what_came_after() {
    let host = Host::start();
    let old = host.submit("old-", "true");
    host.finished(&old);
    let revision = host.get("/api/v1/workflows/default")["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut client = Client::new(host.open(&format!("{EVENTS}?listOptions.resourceVersion={revision}"), &[SSE]));
    let new = host.submit("new-", "true");
    assert_eq!(client.next().unwrap()["result"]["object"]["metadata"]["name"], new.as_str());
    host.bad("GET", &format!("{EVENTS}?listOptions.resourceVersion=x"), &Value::Null, 400, 3);
}

#[test]
fn logs_are_followed_to_the_end_and_filtered() {
    let host = Host::start();
    let name = host.submit("w-", "echo one; echo two; sleep 1; echo three");
    let log = format!("/api/v1/workflows/default/{name}/log");
    let mut client = Client::new(host.open(&format!("{log}?logOptions.follow=true&logOptions.container=main"), &[SSE]));
    let mut lines = Vec::new();
    while let Some(entry) = client.next() {
        assert!(entry["result"]["podName"].as_str().unwrap().starts_with(&name));
        lines.push(entry["result"]["content"].as_str().unwrap().to_owned());
    }
    assert_eq!(lines, ["one", "two", "three"]);
    let said = |query: &str| -> Vec<String> {
        let whole = host.open(&format!("{log}?{query}"), &[]).whole().unwrap();
        let lines = whole.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
        lines.iter().map(|line| line["result"]["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(said("grep=t"), ["two", "three"]);
    assert_eq!(said("logOptions.tailLines=1"), ["three"]);
    let pod = host.finished(&name)["status"]["nodes"][&name]["id"].as_str().unwrap().to_owned();
    let by_path = host.open(&format!("/api/v1/workflows/default/{name}/{pod}/log"), &[]).whole().unwrap();
    assert_eq!(by_path.text().lines().count(), 3);
    host.bad("GET", "/api/v1/workflows/default/none/log", &Value::Null, 404, 5);
    host.bad("GET", &format!("{log}?grep=("), &Value::Null, 400, 3);
}

#[test]
fn a_silent_stream_shows_that_it_lives_in_two_bytes() {
    let host = Host::start();
    let mut stream = host.open(EVENTS, &[SSE]);
    assert_eq!(stream.piece().unwrap().unwrap(), b":\n");
}
