//! The kinds of the TaskSet dialect: their rows in the table of kinds, and their table columns.

use octoflow_model::{
    Time,
    taskset::{GROUP, GROUP_ALIAS, KIND},
};
use serde_json::{Value, json};

use super::{admit::advice, dialect::DIALECT, fields::TASK_SET as FIELDS};
use crate::kinds::{AGE, Kind, NAME, Rows, Storage, number, short, since, text, text_column, wide};

pub static ROWS: Rows = Rows { kinds: &[&TASK_SET], refused: &[] };

pub static TASK_SET: Kind = Kind {
    plural: "tasksets",
    singular: "taskset",
    short: &["ts"],
    categories: &["all"],
    storage: Storage::Run(&DIALECT),
    aliases: &[GROUP_ALIAS],
    schema_prefix: "cn.pcl.openi.octopus.v1alpha1.",
    shape: Some(&FIELDS),
    has_status: true,
    advise: Some(advice),
    columns: &[
        NAME,
        text_column("State", "The overall state"),
        text_column("Phase", "How far it is"),
        text_column("Roles", "Of each role, the replicas that succeeded, of all"),
        number("Retries", "How often it was tried again"),
        AGE,
        wide(text_column("Message", "Why it is in this state")),
        wide(text_column("Start", "When a replica ran for the first time")),
        wide(text_column("Finish", "When it ended")),
    ],
    cells: task_set,
    ..Kind::new(GROUP, "v1alpha1", KIND)
};

fn task_set(object: &Value, now: Time) -> Vec<Value> {
    let (metadata, status) = (&object["metadata"], &object["status"]);
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
        metadata["name"].clone(),
        text(&status["state"]),
        text(&status["phase"]),
        json!(short(&roles.collect::<Vec<_>>().join(","))),
        json!(status["totalRetriedCount"].as_i64().unwrap_or(0)),
        json!(since(&metadata["creationTimestamp"], now)),
        text(&status["stateMessage"]),
        text(&status["startAt"]),
        text(&status["finishAt"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let cells = task_set(&set, Time(0));
        let wanted =
            [json!("demo"), json!("Running"), json!("TaskSetAttemptRunning"), json!("ps 0/1,worker 2/3"), json!(1)];
        assert_eq!(cells[..5], wanted);
    }
}
