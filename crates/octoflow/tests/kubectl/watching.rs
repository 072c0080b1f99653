//! Watches: changes in order, from where the watcher stopped; and an explicit error if that is too long ago.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::rig::{Rig, eventually};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, label: &str) -> Vec<u8> {
    json!({"metadata": {"name": name, "labels": {"team": label}}, "data": {}}).to_string().into_bytes()
}

impl Rig {
    fn put(&self, name: &str, label: &str) -> Value {
        let reply = self.ask("POST", MAPS, &[], &map(name, label));
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()
    }

    fn relabel(&self, name: &str, label: &str) {
        let reply = self.ask("PUT", &format!("{MAPS}/{name}"), &[], &map(name, label));
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    fn remove(&self, name: &str) {
        assert_eq!(self.ask("DELETE", &format!("{MAPS}/{name}"), &[], b"").status, 200);
    }
}

fn told(event: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
}

fn pair(word: &str, name: &str) -> (String, String) {
    (word.to_owned(), name.to_owned())
}

#[test]
fn a_watch_tells_what_is_there_and_then_what_happens() {
    let rig = Rig::start();
    rig.put("a", "red");
    let mut events = rig.lines(&format!("{MAPS}?watch=1"));
    assert_eq!(told(&events.next().unwrap()), pair("ADDED", "a"));
    rig.put("b", "blue");
    rig.relabel("a", "blue");
    rig.remove("b");
    let mut last = Value::Null;
    let heard: Vec<_> = events
        .by_ref()
        .inspect(|event| last = event.clone())
        .take_while(|event| told(event) != pair("DELETED", "b"))
        .map(|event| told(&event))
        .collect();
    assert_eq!(heard, [pair("ADDED", "b"), pair("MODIFIED", "a")]);
    assert_eq!(last["object"]["metadata"]["labels"]["team"], "blue");
    drop(events);

    // A watcher that returns later gets what it missed, and nothing twice.
    let seen = last["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    rig.put("c", "red");
    let missed: Vec<_> = rig
        .lines(&format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={seen}"))
        .map(|event| told(&event))
        .collect();
    assert_eq!(missed, [pair("ADDED", "c")]);
}

#[test]
fn a_watch_with_a_selector_tells_who_enters_and_who_leaves() {
    let rig = Rig::start();
    rig.put("a", "red");
    rig.put("b", "blue");
    let mut events = rig.lines(&format!("{MAPS}?watch=1&labelSelector=team%3Dred"));
    assert_eq!(told(&events.next().unwrap()), pair("ADDED", "a"));
    rig.relabel("a", "blue");
    assert_eq!(told(&events.next().unwrap()), pair("DELETED", "a"));
    rig.relabel("b", "red");
    let entered = told(&events.next().unwrap());
    assert_eq!(entered.1, "b");
    assert_ne!(entered.0, "DELETED");
}

#[test]
fn bookmarks_mark_the_end_of_what_was_there_and_the_end_of_the_watch() {
    let rig = Rig::start();
    rig.put("a", "red");
    let query =
        "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    let events: Vec<Value> = rig.lines(&format!("{MAPS}?{query}")).collect();
    let words: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(words, ["ADDED", "BOOKMARK", "BOOKMARK"]);
    let marks = |event: &Value| event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
    assert!(marks(&events[1]) && !marks(&events[2]), "{events:?}");
    let revision =
        |event: &Value| event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(revision(&events[1]) >= revision(&events[0]));
    for wrong in
        ["sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "resourceVersion=x"]
    {
        rig.get(&format!("{MAPS}?watch=1&{wrong}")).is_status(400, "BadRequest");
    }
}

#[test]
fn who_comes_too_late_is_sent_back_to_the_list() {
    let mut rig = Rig::start();
    rig.put("a", "red");
    let begin = rig.get(MAPS).json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    // A list of exactly what is no more cannot be had either.
    rig.put("b", "red");
    rig.get(&format!("{MAPS}?resourceVersion={begin}&resourceVersionMatch=Exact")).is_status(410, "Expired");
    rig.get(&format!("{MAPS}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"))
        .is_status(400, "BadRequest");
    rig.restart();
    // What happened before the server was started anew is not remembered.
    rig.get(&format!("{MAPS}?watch=1&resourceVersion={begin}")).is_status(410, "Expired");
    let list = rig.get(MAPS).json();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
}

#[test]
fn pages_of_a_list_hold_everything_once_and_agree_on_where_to_watch_from() {
    let rig = Rig::start();
    (0..7).for_each(|index| drop(rig.put(&format!("m{index}"), "red")));
    let (mut names, mut revisions, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = rig.get(&format!("{MAPS}?limit=3&continue={token}")).json();
        names.extend(page["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()));
        revisions.push(page["metadata"]["resourceVersion"].clone());
        rig.put(&format!("later{}", revisions.len()), "blue");
        match page["metadata"]["continue"].as_str() {
            Some(next) => token = next.replace('/', "%2F").replace(':', "%3A"),
            None => break,
        }
    }
    let old: Vec<_> = names.iter().filter(|name| name.as_str().unwrap().starts_with('m')).collect();
    assert_eq!(old.len(), 7, "{names:?}");
    assert!(revisions.iter().all(|revision| *revision == revisions[0]), "{revisions:?}");
    rig.get(&format!("{MAPS}?continue=nonsense")).is_status(400, "BadRequest");
}

#[test]
fn kubectl_watches_until_it_is_stopped_and_a_closing_server_ends_watches() {
    let Some(mut rig) = Rig::with_kubectl() else { return };
    rig.put("a", "red");
    let mut kubectl = rig.command(&["get", "cm", "-w", "--no-headers"]).spawn().unwrap();
    let mut lines = BufReader::new(kubectl.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.next().unwrap().starts_with("a "));
    rig.put("b", "red");
    assert!(lines.next().unwrap().starts_with("b "));
    rig.remove("b");
    assert!(lines.next().unwrap().starts_with("b "));
    rig.server.stop();
    eventually("kubectl ends with its server", || kubectl.try_wait().unwrap().is_some());
}
