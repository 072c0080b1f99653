//! The cells of one row, in the order of the kind's columns.

use std::time::Duration;

use octoflow_control::registry::{Kind, RunRow};
use octoflow_model::Time;
use serde_json::{Value, json};

/// What a cell says when there is nothing to say.
const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

pub(super) fn of(kind: &Kind, object: &Value, now: Time) -> Vec<Value> {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let name = metadata["name"].clone();
    let age = json!(since(&metadata["creationTimestamp"], now));
    match kind.name {
        "Workflow" => workflow(object, now),
        "TaskSet" => task_set(object, name, age),
        "PodGroup" => vec![name, json!(spec["minMember"].as_i64().unwrap_or(0)), age],
        "WorkflowTemplate" | "ClusterWorkflowTemplate" => {
            let templates = spec["templates"].as_array().map_or(0, Vec::len);
            vec![name, text(&spec["entrypoint"]), json!(templates), age]
        }
        "CronWorkflow" => {
            let schedules = match spec["schedules"].as_array() {
                Some(several) => json!(joined(several, ";")),
                None => text(&spec["schedule"]),
            };
            let active = status["active"].as_array().map_or(0, Vec::len);
            let suspended = spec["suspend"].as_bool().unwrap_or(false).to_string();
            let last = json!(
                status["lastScheduledTime"]
                    .as_str()
                    .map_or(NONE.to_owned(), |_| since(&status["lastScheduledTime"], now))
            );
            let (zone, concurrency) = (text(&spec["timezone"]), text(&spec["concurrencyPolicy"]));
            vec![name, schedules, zone, json!(suspended), json!(active), last, age, concurrency]
        }
        "WorkflowEventBinding" => {
            vec![name, text(&spec["event"]["selector"]), text(&spec["submit"]["workflowTemplateRef"]["name"]), age]
        }
        "ConfigMap" => vec![name, json!(entries(object, &["data", "binaryData"])), age],
        "Secret" => {
            let kind = object["type"].as_str().unwrap_or("Opaque");
            vec![name, json!(kind), json!(entries(object, &["data", "stringData"])), age]
        }
        "PersistentVolumeClaim" => {
            let capacity = match &status["capacity"]["storage"] {
                Value::Null => &spec["resources"]["requests"]["storage"],
                given => given,
            };
            let modes =
                spec["accessModes"].as_array().map(|modes| modes.iter().map(mode).collect::<Vec<_>>().join(","));
            vec![
                name,
                text(&status["phase"]),
                blank(&spec["volumeName"]),
                blank(capacity),
                json!(modes.unwrap_or_default()),
                blank(&spec["storageClassName"]),
                age,
            ]
        }
        "Namespace" => {
            let phase = match (&metadata["deletionTimestamp"], status["phase"].as_str()) {
                (Value::String(_), _) => "Terminating",
                (_, Some(phase)) => phase,
                (_, None) => "Active",
            };
            vec![name, json!(phase), age]
        }
        "Pod" => pod(object, name, age),
        "Event" => event(object, name, now),
        "Node" => node(object, name, age),
        _ => vec![name, age],
    }
}

/// A run that was not read whole.
pub(super) fn of_run(row: &RunRow, now: Time) -> Vec<Value> {
    let (phase, progress) = (row.phase.as_str(), row.progress.as_str());
    let duration = row.started.map(|start| human(row.finished.unwrap_or(now).since(start)));
    let finished = row.finished.map(|end| human(now.since(end)));
    let age = human(now.since(row.created));
    let said = |text: &str| text.to_owned();
    vec![
        json!(row.name),
        json!(if phase.is_empty() { "Pending" } else { phase }),
        json!(said(progress)),
        json!(duration.unwrap_or_default()),
        json!(age),
        json!(short(&row.message)),
        json!(row.priority),
        json!(finished.unwrap_or_default()),
    ]
}

fn workflow(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
    let time = |value: &Value| value.as_str().and_then(Time::parse);
    let (started, finished) = (time(&status["startedAt"]), time(&status["finishedAt"]));
    let duration = started.map(|start| human(finished.unwrap_or(now).since(start)));
    vec![
        metadata["name"].clone(),
        json!(status["phase"].as_str().filter(|phase| !phase.is_empty()).unwrap_or("Pending")),
        json!(status["progress"].as_str().unwrap_or_default()),
        json!(duration.unwrap_or_default()),
        json!(since(&metadata["creationTimestamp"], now)),
        json!(short(status["message"].as_str().unwrap_or_default())),
        json!(object["spec"]["priority"].as_i64().unwrap_or(0)),
        json!(finished.map(|end| human(now.since(end))).unwrap_or_default()),
    ]
}

fn task_set(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let status = &object["status"];
    let succeeded = |replica: &&Value| {
        replica["phase"] == "TaskRoleReplicaCompleted"
            && replica["terminatedInfo"]["exitCode"] == 0
            && replica["podReason"].as_str().is_none_or(str::is_empty)
            && replica["stopped"] != true
    };
    let roles = status["roleStatus"].as_array().into_iter().flatten().map(|role| {
        let replicas = role["replicaStatus"].as_array().map_or(&[][..], Vec::as_slice);
        let good = replicas.iter().filter(succeeded).count();
        format!("{} {good}/{}", role["name"].as_str().unwrap_or_default(), replicas.len())
    });
    vec![
        name,
        text(&status["state"]),
        text(&status["phase"]),
        json!(short(&roles.collect::<Vec<_>>().join(","))),
        json!(status["totalRetriedCount"].as_i64().unwrap_or(0)),
        age,
        text(&status["stateMessage"]),
        text(&status["startAt"]),
        text(&status["finishAt"]),
    ]
}

fn pod(object: &Value, name: Value, age: Value) -> Vec<Value> {
    let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
    let empty = Vec::new();
    let containers = status["containerStatuses"].as_array().unwrap_or(&empty);
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    let all = spec["containers"].as_array().map_or(containers.len(), Vec::len);
    let restarts: i64 = containers.iter().filter_map(|container| container["restartCount"].as_i64()).sum();
    // What a container says about its end tells more than the phase of the whole.
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
    let of = labels.get("workflows.argoproj.io/workflow").unwrap_or(&labels["TaskSet"]);
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
    let about = match &object["involvedObject"] {
        Value::Null => &object["regarding"],
        about => about,
    };
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

/// A text, or the word for none.
fn text(value: &Value) -> Value {
    match value {
        Value::Null => json!(NONE),
        Value::String(text) if text.is_empty() => json!(NONE),
        Value::String(text) => json!(short(text)),
        other => json!(other.to_string()),
    }
}

/// A text, or nothing.
fn blank(value: &Value) -> Value {
    match value {
        Value::Null => json!(""),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

fn joined(values: &[Value], between: &str) -> String {
    values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(between)
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

/// One line that does not fill the screen.
fn short(text: &str) -> String {
    const SHOWN: usize = 200;
    let line: String = text.chars().take(SHOWN).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if text.chars().nth(SHOWN).is_some() { format!("{line}…") } else { line }
}

fn since(time: &Value, now: Time) -> String {
    time.as_str().and_then(Time::parse).map_or_else(|| UNKNOWN.to_owned(), |time| human(now.since(time)))
}

/// A span as people say it: the longer, the less exact.
pub(super) fn human(span: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let seconds = span.as_secs();
    let two = |big: u64, big_word: &str, small: u64, small_word: &str| match seconds % big / small {
        0 => format!("{}{big_word}", seconds / big),
        rest => format!("{}{big_word}{rest}{small_word}", seconds / big),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use octoflow_control::registry::find;

    use super::*;

    #[test]
    fn spans_get_less_exact_as_they_get_longer() {
        let said: Vec<String> = [5, 119, 120, 125, 700, 11_000, 50_000, 200_000, 800_000, 70_000_000]
            .map(|seconds| human(Duration::from_secs(seconds)))
            .to_vec();
        assert_eq!(said, ["5s", "119s", "2m", "2m5s", "11m", "3h3m", "13h", "2d7h", "9d", "2y80d"]);
    }

    #[test]
    fn a_pod_says_how_its_containers_ended() {
        let pod = json!({
            "metadata": {"name": "p"}, "spec": {"containers": [{}, {}]},
            "status": {"phase": "Failed", "containerStatuses": [
                {"ready": true, "restartCount": 1, "state": {"running": {}}},
                {"ready": false, "restartCount": 2, "state": {"terminated": {"reason": "Error"}}},
            ]},
        });
        let cells = of(find("Pod").unwrap(), &pod, Time(0));
        assert_eq!(cells[1..4], [json!("1/2"), json!("Error"), json!(3)]);
    }

    #[test]
    fn ts01_a_task_set_tells_how_many_replicas_of_each_role_succeeded() {
        let replica = |phase: &str, code: Option<i64>| {
            let info = code.map(|code| json!({"exitCode": code}));
            json!({"phase": phase, "terminatedInfo": info, "podReason": "", "stopped": false})
        };
        let done = "TaskRoleReplicaCompleted";
        let set = json!({
            "metadata": {"name": "demo"},
            "status": {"state": "Running", "phase": "TaskSetAttemptRunning", "totalRetriedCount": 1, "roleStatus": [
                {"name": "ps", "replicaStatus": [replica("TaskRoleReplicaAttemptRunning", None)]},
                {"name": "worker", "replicaStatus": [replica(done, Some(0)), replica(done, Some(0)), replica(done, Some(1))]},
            ]},
        });
        let cells = of(find("TaskSet").unwrap(), &set, Time(0));
        let wanted =
            [json!("demo"), json!("Running"), json!("TaskSetAttemptRunning"), json!("ps 0/1,worker 2/3"), json!(1)];
        assert_eq!(cells[..5], wanted);
    }
}
