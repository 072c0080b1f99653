//! A watcher of all workflows from the first to the last, across every restart: from the last revision it saw, or from
//! a new list if that is too old. What it has seen must be true in the end.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{
    load::RUNS,
    wire::http::{call, follow},
};

#[derive(Default)]
pub(crate) struct Seen {
    /// By uid.
    pub(crate) runs: BTreeMap<String, Heard>,
    pub(crate) revision: u64,
    pub(crate) events: u64,
    pub(crate) lists: u64,
    /// Violated guarantees, with the workflow.
    pub(crate) violations: Vec<(String, String)>,
    /// Ends that were reverted, with the workflow; allowed only after a retry.
    pub(crate) reopened: Vec<(String, String)>,
}

/// Last known state of a workflow.
pub(crate) struct Heard {
    pub(crate) name: String,
    pub(crate) phase: String,
    /// How its deletion was noticed, if it was.
    pub(crate) gone: Option<String>,
}

pub(crate) fn terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed" | "Error")
}

pub(crate) fn watch(address: &Mutex<SocketAddr>, over: &AtomicBool, seen: &Mutex<Seen>) {
    let mut listed = false;
    while !over.load(Ordering::Relaxed) {
        let to = *address.lock().unwrap();
        if !listed {
            listed = list(to, seen);
        } else {
            let revision = seen.lock().unwrap().revision;
            let path = format!("/api/v1/workflow-events/default?listOptions.resourceVersion={revision}");
            let status = follow(to, &path, |value| {
                if value.get("error").is_some() {
                    listed = false;
                    return false;
                }
                seen.lock().unwrap().event(&value["result"]);
                !over.load(Ordering::Relaxed)
            });
            // The revision is too old, in the format of this face.
            if matches!(status, Ok(400..500)) {
                listed = false;
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn list(to: SocketAddr, seen: &Mutex<Seen>) -> bool {
    let Ok(answer) = call(to, "GET", RUNS, None) else { return false };
    assert_eq!(answer.status, 200, "{}", answer.body);
    let revision = answer.body["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
    let revision: u64 = revision.unwrap_or_else(|| panic!("a list has a revision: {}", answer.body["metadata"]));
    let mut seen = seen.lock().unwrap();
    if revision < seen.revision {
        let text = format!("a list of revision {revision} came after revision {} was seen", seen.revision);
        seen.violations.push((String::new(), text));
    }
    seen.lists += 1;
    seen.revision = revision;
    let items = answer.body["items"].as_array().cloned().unwrap_or_default();
    let there: Vec<String> =
        items.iter().filter_map(|item| item["metadata"]["uid"].as_str().map(str::to_owned)).collect();
    items.iter().for_each(|item| seen.take(item, None));
    for (uid, run) in &mut seen.runs {
        if run.gone.is_none() && !there.contains(uid) {
            run.gone = Some(format!("it is not in the list of revision {revision}"));
        }
    }
    true
}

impl Seen {
    fn event(&mut self, event: &Value) {
        self.events += 1;
        let gone = (event["type"] == "DELETED").then(|| "an event said so".to_owned());
        self.take(&event["object"], gone);
        let revision = event["object"]["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let revision: u64 = revision.unwrap_or_else(|| panic!("an event has a revision: {event}"));
        if revision < self.revision {
            self.violations.push((String::new(), format!("revision {revision} came after {}", self.revision)));
        }
        self.revision = self.revision.max(revision);
    }

    fn take(&mut self, object: &Value, gone: Option<String>) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (uid, name) = (text(&object["metadata"]["uid"]), text(&object["metadata"]["name"]));
        let phase = text(&object["status"]["phase"]);
        if let Some(before) = self.runs.get(&uid) {
            if terminal(&before.phase) && before.phase != phase && gone.is_none() {
                self.reopened.push((name.clone(), format!("{name} was {} and became {phase}", before.phase)));
            }
            if let (Some(why), None) = (&before.gone, &gone) {
                let revision = &object["metadata"]["resourceVersion"];
                let told = format!("{name} was gone ({why}) and came back {phase} at {revision}");
                self.violations.push((name.clone(), told));
            }
        }
        self.runs.insert(uid, Heard { name, phase, gone });
    }
}
