//! How the object of a run looks to those who do not know its dialect: as pods, events, logs and nodes. What both dialects
//! write the same way is here. It reads objects and keeps nothing.

use std::{borrow::Cow, fmt};

use octoflow_model::{AttemptId, Time};
use serde_json::{Value, json};

use crate::expr::digest::sha256;

/// A step's own container.
pub const MAIN: &str = "main";

/// The type of a node whose pods are those that have it as boundary.
pub const GROUP: &str = "Role";

/// The pods of a run at some time.
#[derive(Debug, Default)]
pub struct Pods {
    /// Each with its name, which gives their order.
    pub items: Vec<(String, Value)>,
    /// One of them goes at this time though nothing happens to the run.
    pub until: Option<Time>,
}

/// A pod that has a log, or will have one.
#[derive(Clone, Debug)]
pub struct PodLog {
    pub pod: String,
    pub attempt: AttemptId,
    /// When it began, where that is known.
    pub began: Option<Time>,
    pub over: bool,
    /// What its main container is called.
    pub main: String,
    /// It has one.
    pub has_main: bool,
}

/// Which pods' logs are meant.
#[derive(Default)]
pub struct LogFilter<'a> {
    /// One pod, in any of the ways it is called.
    pub pod: Option<&'a str>,
    /// Those whose metadata fit.
    pub selects: Option<&'a dyn Fn(&Value) -> bool>,
}

/// A part of a run that has a log, by the id people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    pub id: String,
    pub attempt: AttemptId,
    /// Nothing was written before.
    pub began: Time,
}

/// What is asked of the object of a run, open or over.
pub trait RunView: fmt::Debug + Sync {
    /// It will not change by itself any more.
    fn is_over(&self, object: &Value) -> bool;

    /// The pods that are there, by their names. `host` is this machine.
    fn pods(&self, object: &Value, now: Time, host: Option<&str>) -> Pods;

    /// The run has, or had, a pod of this name.
    fn has_pod(&self, object: &Value, attempts: &[(String, AttemptId)], pod: &str) -> bool;

    /// What happened to it and to its parts, each with the key that gives the order.
    fn events(&self, object: &Value) -> Vec<(String, Value)>;

    /// Every pod that wrote something, or may yet.
    fn pod_logs(&self, object: &Value, attempts: &[(String, AttemptId)], filter: &LogFilter<'_>) -> Vec<PodLog>;

    /// The parts with logs that these names mean; all when there are none.
    fn log_parts(&self, object: &Value, attempts: &[(String, AttemptId)], names: &[String]) -> Vec<LogPart>;

    /// The id of a part with a log is meant by one of these names, where that can be told without the object.
    fn is_meant(&self, id: &str, names: &[String]) -> bool {
        let _ = (id, names);
        true
    }

    /// The object with `status.nodes`, the tree that people are shown.
    fn with_nodes<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        Cow::Borrowed(object)
    }

    /// The name of the pod of a node; empty for one that has none.
    fn pod_name(&self, object: &Value, node: &Value) -> String {
        let _ = object;
        node["podName"].as_str().unwrap_or_default().to_owned()
    }

    /// What the block above its nodes tells beside what every run has: names and values.
    fn heading(&self, object: &Value) -> Heading {
        Heading { before: vec![("Kind:", object["kind"].as_str().unwrap_or_default().to_owned())], after: Vec::new() }
    }

    /// Explanations of an open run tell of its parts that are over as well.
    fn explains_all(&self) -> bool {
        false
    }

    /// How pods are named, where logs are told by them: a node may have had several. Without it they are told by nodes.
    fn pod_names(&self) -> Option<&dyn PodNames> {
        None
    }
}

/// Rows of the block above a run's nodes.
#[derive(Debug, Default)]
pub struct Heading {
    /// Before its phase and message.
    pub before: Vec<(&'static str, String)>,
    /// After them.
    pub after: Vec<(&'static str, String)>,
}

/// Names of pods that say whose they are.
pub trait PodNames {
    /// What lines of a pod begin with.
    fn label(&self, pod: &str) -> String;

    /// A pod of this name is, or may have been, one of the run.
    fn is_pod_of(&self, object: &Value, name: &str) -> bool;

    /// The name by which logs are asked for; what to say when it is nobody's.
    fn named(&self, object: &Value, wanted: &str) -> Result<String, NoSuchPod>;

    /// What a container is called in the logs.
    fn container(&self, object: &Value, name: &str) -> String;
}

/// A name that is none of a run's pods.
#[derive(Debug)]
pub struct NoSuchPod {
    pub message: String,
    pub help: String,
    /// Names that would have been understood.
    pub known: Vec<String>,
}

/// Puts names where a message has ids of nodes in quotes.
pub fn readable(message: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let mut parts = message.split('\'').enumerate();
    let mut shown = parts.next().map_or(String::new(), |(_, first)| first.to_owned());
    for (place, part) in parts {
        shown.push('\'');
        // Every second part stands between quotes.
        match (place % 2 == 1).then(|| name(part)).flatten() {
            Some(name) => shown.push_str(&name),
            None => shown.push_str(part),
        }
    }
    shown
}

/// An id that belongs to something nobody keeps, always the same for the same thing.
pub fn uid(parts: &[&str]) -> String {
    let message: Vec<u8> = parts.iter().flat_map(|part| part.bytes().chain([0])).collect();
    let hex = sha256(&message);
    let variant = u8::from_str_radix(&hex[16..17], 16).unwrap_or_default() & 0b0011 | 0b1000;
    format!("{}-{}-8{}-{variant:x}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// Who a view of a run belongs to.
pub(crate) fn owner(run: &Value) -> Value {
    json!({
        "apiVersion": run["apiVersion"], "kind": run["kind"], "name": run["metadata"]["name"],
        "uid": run["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// What is told.
pub(crate) struct Told<'a> {
    pub reason: &'a str,
    /// The part of the run it happened to; empty for the whole.
    pub about: &'a str,
    pub message: &'a str,
    pub at: &'a Value,
    pub bad: bool,
    pub count: u64,
    /// Who says so.
    pub source: &'a str,
}

/// One event; its key sorts by time, and what happened to the whole before and after what happened to its parts.
pub(crate) fn event(run: &Value, told: &Told<'_>) -> (String, Value) {
    let Told { reason, about, message, at, bad, count, source } = told;
    let metadata = &run["metadata"];
    let id = uid(&[metadata["uid"].as_str().unwrap_or_default(), reason, about]);
    let name = format!("{}.{}", metadata["name"].as_str().unwrap_or_default(), &id.replace('-', "")[..16]);
    // Names are drawn; within a second, what was accepted was accepted before it ran.
    let rank = u8::from(!reason.ends_with("Created"));
    let key = format!("{}/{about}/{rank}/{name}", at.as_str().unwrap_or_default());
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "name": name, "namespace": metadata["namespace"], "uid": id,
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": at,
        },
        "involvedObject": {
            "apiVersion": run["apiVersion"], "kind": run["kind"], "namespace": metadata["namespace"],
            "name": metadata["name"], "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"],
        },
        "reason": reason, "message": message, "type": if *bad { "Warning" } else { "Normal" },
        "source": {"component": source}, "reportingComponent": source,
        "firstTimestamp": at, "lastTimestamp": at, "eventTime": null, "count": count,
    });
    (key, event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_for_the_same_thing_and_look_like_others() {
        let id = uid(&["namespace", "default"]);
        assert_eq!(id, "34ee96c0-7a5a-85d6-b90b-1bf9f73aeb1b", "what was told before is told again");
        assert_ne!(id, uid(&["namespacedefault"]));
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!((parts, &id[14..15]), (vec![8, 4, 4, 4, 12], "8"));
        assert!("89ab".contains(&id[19..20]), "{id}");
    }
}
