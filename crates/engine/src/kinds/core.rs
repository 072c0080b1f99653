//! The kinds of the core group: ConfigMaps, Secrets, claims and namespaces, and views of runs and of this machine.

use octoflow_manifest::{Path, Problem};
use octoflow_model::Time;
use serde_json::{Value, json};

use super::{
    AGE, Column, ErrorsAndWarnings, Kind, NAME, Rows, Storage,
    cell::{NONE, UNKNOWN},
    number, of_runs, since, text, text_column, wide,
};
use crate::admit::code;
use crate::dialects::argo::fields::{CLAIM, CONFIG_MAP as CONFIG_MAP_FIELDS, SECRET as SECRET_FIELDS};

pub(super) static ROWS: Rows =
    Rows { kinds: &[&CONFIG_MAP, &SECRET, &VOLUME_CLAIM, &SERVICE, &NAMESPACE, &POD, &EVENT, &NODE], refused: &[] };

const fn core(
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
) -> Kind {
    Kind { plural, singular, short, schema_prefix: "io.k8s.api.core.v1.", ..Kind::new("", "v1", name) }
}

pub static CONFIG_MAP: Kind = Kind {
    shape: Some(&CONFIG_MAP_FIELDS),
    columns: &[NAME, number("Data", "How many entries it has"), AGE],
    cells: |object, now| vec![name(object), json!(entries(object, &["data", "binaryData"])), age(object, now)],
    ..core("ConfigMap", "configmaps", "configmap", &["cm"])
};

pub static SECRET: Kind = Kind {
    shape: Some(&SECRET_FIELDS),
    columns: &[NAME, text_column("Type", "What the entries are for"), number("Data", "How many entries it has"), AGE],
    cells: |object, now| {
        let kind = object["type"].as_str().unwrap_or("Opaque");
        vec![name(object), json!(kind), json!(entries(object, &["data", "stringData"])), age(object, now)]
    },
    ..core("Secret", "secrets", "secret", &[])
};

pub static VOLUME_CLAIM: Kind = Kind {
    shape: Some(&CLAIM),
    has_status: true,
    columns: &[
        NAME,
        text_column("Status", "Whether it got its room"),
        text_column("Volume", "What it got"),
        text_column("Capacity", "How much it got"),
        text_column("Access Modes", "Who may use it at one time"),
        text_column("StorageClass", "What kind of storage"),
        AGE,
    ],
    cells: claim,
    ..core("PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", &["pvc"])
};

/// Only runs bring Services along. Names of pods resolve through hosts files, so one of a user would do nothing.
pub static SERVICE: Kind = Kind {
    has_status: true,
    check: Some(only_of_runs),
    columns: &[
        NAME,
        text_column("Type", "How it is reached"),
        text_column("Cluster-IP", "Its address; none here"),
        text_column("Port(s)", "The ports it names"),
        AGE,
    ],
    cells: service,
    ..core("Service", "services", "service", &["svc"])
};

fn only_of_runs(_: &Value) -> ErrorsAndWarnings {
    let message = "a Service cannot be created or changed here: only runs bring some along";
    let problem = Problem::error(code::KIND, message).path(Path::root().join("kind"));
    (vec![problem.help("pods of one run find each other by name without it")], Vec::new())
}

fn service(object: &Value, now: Time) -> Vec<Value> {
    let spec = &object["spec"];
    let port = |port: &Value| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"));
    let ports = spec["ports"].as_array().map(|ports| ports.iter().map(port).collect::<Vec<_>>().join(","));
    let address = spec["clusterIP"].as_str().unwrap_or(NONE);
    vec![
        name(object),
        json!(spec["type"].as_str().unwrap_or("ClusterIP")),
        json!(address),
        json!(ports.filter(|ports| !ports.is_empty()).unwrap_or_else(|| NONE.to_owned())),
        age(object, now),
    ]
}

pub static NAMESPACE: Kind = Kind {
    namespaced: false,
    has_status: true,
    columns: &[NAME, text_column("Status", "Whether it is in use or on its way out"), AGE],
    cells: namespace,
    ..core("Namespace", "namespaces", "namespace", &["ns"])
};

pub static POD: Kind = Kind {
    storage: Storage::View,
    categories: &["all"],
    has_status: true,
    columns: &[
        NAME,
        text_column("Ready", "Containers that are ready, of all"),
        text_column("Status", "What it is doing, or how it ended"),
        number("Restarts", "How often containers were started again"),
        AGE,
        wide(text_column("IP", "Its address")),
        wide(text_column("Node", "Where it runs")),
        wide(text_column("Workflow", "Which workflow or TaskSet it is a task of")),
    ],
    cells: |object, now| pod(object, name(object), age(object, now)),
    ..core("Pod", "pods", "pod", &["po"])
};

const EVENT_COLUMNS: &[Column] = &[
    text_column("Last Seen", "How long ago it happened last"),
    text_column("Type", "Normal or Warning"),
    text_column("Reason", "What happened, in a word"),
    text_column("Object", "To what it happened"),
    wide(text_column("Source", "The reporting component")),
    text_column("Message", "What happened"),
    wide(text_column("First Seen", "How long ago it happened first")),
    wide(number("Count", "How often it happened")),
    wide(NAME),
];

pub static EVENT: Kind = Kind {
    storage: Storage::View,
    columns: EVENT_COLUMNS,
    cells: |object, now| event(object, name(object), now),
    ..core("Event", "events", "event", &["ev"])
};

pub static NODE: Kind = Kind {
    namespaced: false,
    storage: Storage::View,
    has_status: true,
    columns: &[
        NAME,
        text_column("Status", "Whether it takes tasks"),
        text_column("Roles", "What it is for"),
        AGE,
        text_column("Version", "The version of its agent"),
        wide(text_column("Internal-IP", "Its address")),
        wide(text_column("OS-Image", "Its system")),
        wide(text_column("Kernel-Version", "Its kernel")),
        wide(text_column("Container-Runtime", "How it runs tasks")),
    ],
    cells: |object, now| node(object, name(object), age(object, now)),
    ..core("Node", "nodes", "node", &["no"])
};

fn name(object: &Value) -> Value {
    object["metadata"]["name"].clone()
}

fn age(object: &Value, now: Time) -> Value {
    json!(since(&object["metadata"]["creationTimestamp"], now))
}

fn claim(object: &Value, now: Time) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let granted = &status["capacity"]["storage"];
    let capacity = if granted.is_null() { &spec["resources"]["requests"]["storage"] } else { granted };
    let modes = spec["accessModes"].as_array().map(|modes| modes.iter().map(mode).collect::<Vec<_>>().join(","));
    vec![
        name(object),
        text(&status["phase"]),
        blank(&spec["volumeName"]),
        blank(capacity),
        json!(modes.unwrap_or_default()),
        blank(&spec["storageClassName"]),
        age(object, now),
    ]
}

fn namespace(object: &Value, now: Time) -> Vec<Value> {
    let phase = match (&object["metadata"]["deletionTimestamp"], object["status"]["phase"].as_str()) {
        (Value::String(_), _) => "Terminating",
        (_, Some(phase)) => phase,
        (_, None) => "Active",
    };
    vec![name(object), json!(phase), age(object, now)]
}

fn pod(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let empty = Vec::new();
    let containers = status["containerStatuses"].as_array().unwrap_or(&empty);
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    let all = spec["containers"].as_array().map_or(containers.len(), Vec::len);
    let restarts: i64 = containers.iter().filter_map(|container| container["restartCount"].as_i64()).sum();
    // A container's reason is more specific than the phase of the pod.
    let reason = containers.iter().rev().find_map(|container| {
        let state = &container["state"];
        state["waiting"]["reason"].as_str().or_else(|| state["terminated"]["reason"].as_str())
    });
    let word = match (&metadata["deletionTimestamp"], status["reason"].as_str().or(reason), status["phase"].as_str()) {
        (Value::String(_), _, Some("Running" | "Pending")) => "Terminating",
        (_, Some(reason), _) => reason,
        (_, None, Some(phase)) => phase,
        (_, None, None) => UNKNOWN,
    };
    let labels = &metadata["labels"];
    let owners = of_runs().filter_map(|kind| kind.dialect());
    let of = owners.filter_map(|dialect| labels.get(dialect.pod_label)).next().unwrap_or(&Value::Null);
    vec![
        name,
        json!(format!("{ready}/{all}")),
        json!(word),
        json!(restarts),
        age,
        text(&status["podIP"]),
        text(&spec["nodeName"]),
        text(of),
    ]
}

fn event(object: &Value, name: Value, now: Time) -> Vec<Value> {
    let involved = &object["involvedObject"];
    let about = if involved.is_null() { &object["regarding"] } else { involved };
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    let target = format!("{kind}/{}", about["name"].as_str().unwrap_or_default());
    let first_of = |fields: &[&str]| {
        let found = fields.iter().map(|field| &object[*field]).find(|value| value.is_string());
        found.map_or(UNKNOWN.to_owned(), |value| since(value, now))
    };
    let created = &object["metadata"]["creationTimestamp"];
    let or_created = |age: String| if age == UNKNOWN { since(created, now) } else { age };
    vec![
        json!(or_created(first_of(&["lastTimestamp", "eventTime"]))),
        text(&object["type"]),
        text(&object["reason"]),
        json!(target),
        text(&object["source"]["component"]),
        json!(object["message"].as_str().unwrap_or_default().trim()),
        json!(or_created(first_of(&["firstTimestamp", "eventTime"]))),
        json!(object["count"].as_i64().unwrap_or(1)),
        name,
    ]
}

fn node(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let (spec, info) = (&object["spec"], &object["status"]["nodeInfo"]);
    let empty = Vec::new();
    let conditions = object["status"]["conditions"].as_array().unwrap_or(&empty);
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    let mut word = match ready.map(|condition| condition["status"] == "True") {
        Some(true) => "Ready".to_owned(),
        Some(false) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if spec["unschedulable"] == true {
        word.push_str(",SchedulingDisabled");
    }
    let role = |label: &String| label.strip_prefix("node-role.kubernetes.io/").map(str::to_owned);
    let labels = object["metadata"]["labels"].as_object();
    let roles: Vec<String> = labels.into_iter().flat_map(|labels| labels.keys().filter_map(role)).collect();
    let addresses = object["status"]["addresses"].as_array().unwrap_or(&empty);
    let address = addresses.iter().find(|address| address["type"] == "InternalIP").map(|address| &address["address"]);
    vec![
        name,
        json!(word),
        json!(if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }),
        age,
        text(&info["kubeletVersion"]),
        text(address.unwrap_or(&Value::Null)),
        text(&info["osImage"]),
        text(&info["kernelVersion"]),
        text(&info["containerRuntimeVersion"]),
    ]
}

/// Returns the text, or an empty one.
fn blank(value: &Value) -> Value {
    match value {
        Value::Null => json!(""),
        Value::String(text) => json!(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => json!(value.to_string()),
    }
}

fn entries(object: &Value, fields: &[&str]) -> usize {
    fields.iter().filter_map(|field| object[*field].as_object()).map(serde_json::Map::len).sum()
}

fn mode(mode: &Value) -> &str {
    match mode.as_str().unwrap_or_default() {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_says_how_its_containers_ended() {
        let pod = json!({
            "metadata": {"name": "p"}, "spec": {"containers": [{}, {}]},
            "status": {"phase": "Failed", "containerStatuses": [
                {"ready": true, "restartCount": 1, "state": {"running": {}}},
                {"ready": false, "restartCount": 2, "state": {"terminated": {"reason": "Error"}}},
            ]},
        });
        let cells = (POD.cells)(&pod, Time(0));
        assert_eq!(cells[1..4], [json!("1/2"), json!("Error"), json!(3)]);
    }
}
