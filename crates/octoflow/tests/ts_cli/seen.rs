//! The environment of replicas, and the reported ends of replicas.

use serde_json::{Value, json};

use crate::stage::{Stage, replica, role, with};

#[test]
fn ts26_every_container_knows_who_it_is_and_the_users_own_words_win() {
    let stage = Stage::new();
    let show = "env | grep -E '^(TASKSET|TASKROLE)_' | sort";
    let mut one = role("worker", 2, show);
    let spec = &mut one["template"]["spec"];
    spec["initContainers"] = json!([{"name": "prepare", "image": "busybox", "command": ["sh", "-c", show]}]);
    spec["containers"][0]["env"] = json!([{"name": "TASKROLE_NAME", "value": "mine"}]);
    let object = stage.run(0, &stage.set("who", json!([one, role("ps", 1, "true")])));
    let variables = |container: &str| -> Vec<(String, String)> {
        let said = stage.ends(0, &["logs", "who", "worker-1", "-c", container, "--no-prefix"]);
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        said.out.lines().filter_map(pair).collect()
    };
    for (container, name) in [("prepare", "worker"), ("main", "mine")] {
        let found = variables(container);
        let get = |name: &str| {
            let one = found.iter().find(|(known, _)| known == name);
            one.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("{container} has no {name}: {found:?}"))
        };
        assert_eq!(get("TASKSET_NAMESPACE"), "default");
        assert_eq!(get("TASKSET_NAME"), "who");
        assert_eq!(get("TASKSET_ATTEMPT"), "0");
        assert_eq!(get("TASKROLE_NAME"), name, "{container}");
        assert_eq!(get("TASKROLE_REPLICA_INDEX"), "1");
        assert_eq!(get("TASKROLE_REPLICA_ATTEMPT"), "0");
        assert_eq!((get("TASKROLE_WORKER_REPLICAS"), get("TASKROLE_PS_REPLICAS")), ("2".into(), "1".into()));
        let addresses = get("TASKROLE_WORKER_ADDRESSES");
        let addresses: Vec<&str> = addresses.split(',').collect();
        assert_eq!((addresses.len(), addresses[1]), (2, get("TASKROLE_REPLICA_ADDRESS").as_str()));
        assert_eq!(replica(&object, 0, 1)["podIP"], addresses[1]);
    }
    assert_eq!(replica(&object, 0, 1)["podName"], "who-worker-0-0-1");
}

#[test]
fn ts27_the_end_of_the_log_says_why_a_replica_failed() {
    let stage = Stage::new();
    let object = stage.run(1, &stage.set("bad", json!([role("w", 1, "echo no disk left >&2; exit 3")])));
    let info = &replica(&object, 0, 0)["terminatedInfo"];
    assert_eq!((&info["exitCode"], &info["reason"]), (&json!(3), &json!("Error")), "{info:#}");
    assert!(info["exitMessage"].as_str().unwrap().contains("no disk left"), "{info:#}");
    let shown = stage.ends(0, &["get", "bad"]).out;
    crate::stage::shows(&shown, &["w-0", "Failed", "3", "bad-w-0-0-0", "Error (exit code 3): no disk left"]);
    let why = stage.ends(0, &["explain", "bad"]).out;
    crate::stage::shows(&why, &["TaskSet bad is Failed", "w-0", "no disk left"]);
}

#[test]
fn ts27_a_termination_message_wins_over_the_log() {
    let stage = Stage::new();
    let command = "echo chatter >&2; printf 'the model is too large' > /dev/termination-log; exit 4";
    let object = stage.run(1, &stage.set("said", json!([role("w", 1, command)])));
    assert_eq!(replica(&object, 0, 0)["terminatedInfo"]["exitMessage"], "the model is too large");
}

/// Peers find each other by name, whether through `/etc/hosts` or the file whose path they are given.
#[test]
fn peers_are_found_by_name() {
    let stage = Stage::new();
    let look = "for name in ps-0 worker-0 worker-1 worker-0.peers; do \
                grep -w \"$name\" \"${OCTOFLOW_HOSTS_FILE:-/etc/hosts}\" >/dev/null || { echo missing $name; exit 1; }; done; \
                echo found all; getent hosts worker-1 || true";
    let hold = with(role("ps", 1, "sleep 60"), json!({}));
    let end: Value = json!({"eventPolicy": [{"event": "RoleSucceeded", "action": "TaskSetSucceeded"}]});
    let object = stage.run(0, &stage.set("peers", json!([hold, with(role("worker", 2, look), end)])));
    let said = stage.ends(0, &["logs", "peers", "worker", "--no-prefix"]).out;
    assert_eq!(said.matches("found all").count(), 2, "{said}");
    let address = replica(&object, 1, 1)["podIP"].as_str().unwrap();
    assert!(said.contains(address) || !said.contains("worker-1"), "{said}");
}
