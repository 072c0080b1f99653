//! Views of a run's object that need no knowledge of its dialect: pods, events, logs and nodes. Owns what both dialects
//! render the same way. Reads objects and stores nothing.

use std::{borrow::Cow, fmt};

use octoflow_model::{AttemptId, Time};
use serde_json::{Value, json};

use crate::expr::digest::sha256;

/// Name of a step's main container.
pub const MAIN: &str = "main";

/// Type of a node that groups pods: those that have it as boundary.
pub const GROUP: &str = "Role";

/// The pods of a run at a point in time.
#[derive(Debug, Default)]
pub struct Pods {
    /// Pods by name, in order of their names.
    pub items: Vec<(String, Value)>,
    /// Time at which one of them disappears although nothing happens to the run.
    pub until: Option<Time>,
}

/// A pod that has a log, or will have one.
#[derive(Clone, Debug)]
pub struct PodLog {
    pub pod: String,
    pub attempt: AttemptId,
    /// Start time, if known.
    pub began: Option<Time>,
    pub over: bool,
    /// Name of its main container.
    pub main: String,
    /// True if it has a main container.
    pub has_main: bool,
}

/// Selects the pods whose logs are requested.
#[derive(Default)]
pub struct LogFilter<'a> {
    /// One pod, by any of its names.
    pub pod: Option<&'a str>,
    /// A predicate over pod metadata.
    pub selects: Option<&'a dyn Fn(&Value) -> bool>,
}

/// A part of a run that has a log, by the id people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPart {
    pub id: String,
    pub attempt: AttemptId,
    /// Start time; nothing was written before it.
    pub began: Time,
}

/// Renders views of the object of a run, open or over.
pub trait RunView: fmt::Debug + Sync {
    /// Reports whether the run is over, so that its object no longer changes by itself.
    fn is_over(&self, object: &Value) -> bool;

    /// Returns the pods that exist. `host` is this machine.
    fn pods(&self, object: &Value, now: Time, host: Option<&str>) -> Pods;

    /// Reports whether the run has or had a pod of this name.
    fn has_pod(&self, object: &Value, attempts: &[(String, AttemptId)], pod: &str) -> bool;

    /// Returns the events of the run and its parts, each with its sort key.
    fn events(&self, object: &Value) -> Vec<(String, Value)>;

    /// Returns every pod that has a log, or may get one.
    fn pod_logs(&self, object: &Value, attempts: &[(String, AttemptId)], filter: &LogFilter<'_>) -> Vec<PodLog>;

    /// Returns the parts with logs that match these names; all if no names are given.
    fn log_parts(&self, object: &Value, attempts: &[(String, AttemptId)], names: &[String]) -> Vec<LogPart>;

    /// Reports whether one of these names matches the id of a part with a log, as far as that is decidable without the
    /// object.
    fn is_meant(&self, id: &str, names: &[String]) -> bool {
        let _ = (id, names);
        true
    }

    /// Returns the object with `status.nodes`, the tree to display.
    fn with_nodes<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        Cow::Borrowed(object)
    }

    /// Returns the name of a node's pod; empty if it has none.
    fn pod_name(&self, object: &Value, node: &Value) -> String {
        let _ = object;
        node["podName"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns additional rows for the block above its nodes.
    fn heading(&self, object: &Value) -> Heading {
        Heading { before: vec![("Kind:", object["kind"].as_str().unwrap_or_default().to_owned())], after: Vec::new() }
    }

    /// Reports whether explanations of an open run include its finished parts.
    fn explains_all(&self) -> bool {
        false
    }

    /// Reports whether runs of this kind consist of the runs that they make, and have no pods of their own.
    fn consists_of_runs(&self) -> bool {
        false
    }

    /// Returns the runs that it has made, whose nodes and logs are shown with its own.
    fn runs_below(&self, object: &Value) -> Vec<RunBelow> {
        let _ = object;
        Vec::new()
    }

    /// Returns the naming of pods, if logs are labelled by pod because a node may have had several. `None`: by node.
    fn pod_names(&self) -> Option<&dyn PodNames> {
        None
    }
}

/// A run that another one has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunBelow {
    /// Key of its kind in the database.
    pub kind: &'static str,
    pub name: String,
    /// The id of the node that has made it, and the name people know it by.
    pub node: String,
    pub label: String,
}

/// Rows of the block above a run's nodes.
#[derive(Debug, Default)]
pub struct Heading {
    /// Before its phase and message.
    pub before: Vec<(&'static str, String)>,
    /// After them.
    pub after: Vec<(&'static str, String)>,
}

/// Maps between pods and their names in a dialect with structured pod names.
pub trait PodNames {
    /// Returns the prefix of a pod's log lines.
    fn label(&self, pod: &str) -> String;

    /// Reports whether a pod of this name is, or may have been, one of the run.
    fn is_pod_of(&self, object: &Value, name: &str) -> bool;

    /// Resolves a user's pod name to the name of a log; on error returns what to print.
    fn named(&self, object: &Value, wanted: &str) -> Result<String, NoSuchPod>;

    /// Returns the display name of a container in logs.
    fn container(&self, object: &Value, name: &str) -> String;
}

/// The error for a name that matches none of a run's pods.
#[derive(Debug)]
pub struct NoSuchPod {
    pub message: String,
    pub help: String,
    /// Names that would have matched.
    pub known: Vec<String>,
}

/// Replaces the quoted id of a child, as in `child 'w-12' failed`, by its name. Whatever else is quoted stays: it may be
/// named like a node.
pub fn readable(message: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let mut parts = message.split('\'').enumerate();
    let mut shown = parts.next().map_or(String::new(), |(_, first)| first.to_owned());
    for (place, part) in parts {
        // Every second part is quoted.
        let is_child = place % 2 == 1 && shown.ends_with("child ");
        shown.push('\'');
        match is_child.then(|| name(part)).flatten() {
            Some(name) => shown.push_str(&name),
            None => shown.push_str(part),
        }
    }
    shown
}

/// Derives a stable UID for an object that is not stored.
pub fn uid(parts: &[&str]) -> String {
    let message: Vec<u8> = parts.iter().flat_map(|part| part.bytes().chain([0])).collect();
    let hex = sha256(&message);
    let variant = u8::from_str_radix(&hex[16..17], 16).unwrap_or_default() & 0b0011 | 0b1000;
    format!("{}-{}-8{}-{variant:x}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// Returns the owner reference of a view of a run.
pub(crate) fn owner(run: &Value) -> Value {
    json!({
        "apiVersion": run["apiVersion"], "kind": run["kind"], "name": run["metadata"]["name"],
        "uid": run["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

/// The content of an event.
pub(crate) struct EventDetails<'a> {
    pub reason: &'a str,
    /// The part of the run it is about; empty for the whole.
    pub about: &'a str,
    pub message: &'a str,
    pub at: &'a Value,
    pub bad: bool,
    pub count: u64,
    /// The reporting component.
    pub source: &'a str,
}

/// Renders one event. Its key sorts by time; at equal times, events of the whole come before and after those of its
/// parts, and what was made comes before what became of it.
pub(crate) fn event(run: &Value, told: &EventDetails<'_>) -> (String, Value) {
    let EventDetails { reason, about, message, at, bad, count, source } = told;
    let metadata = &run["metadata"];
    let id = uid(&[metadata["uid"].as_str().unwrap_or_default(), reason, about]);
    let name = format!("{}.{}", metadata["name"].as_str().unwrap_or_default(), &id.replace('-', "")[..16]);
    // Event names are hashes; within a second, acceptance must sort before execution.
    let rank = match reason {
        reason if reason.ends_with("Created") => 0,
        reason if reason.ends_with("Made") => 1,
        _ => 2,
    };
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
