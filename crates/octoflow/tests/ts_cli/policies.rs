//! Retries, verdicts and gangs with real processes.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use crate::stage::{Stage, replica, role, set, shows, with};

/// A volume of the machine, for what must outlive a pod.
fn shared(stage: &Stage, mut role: Value) -> Value {
    let spec = &mut role["template"]["spec"];
    spec["volumes"] = json!([{"name": "out", "hostPath": {"path": stage.path("").display().to_string()}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "out", "mountPath": "/out"}]);
    role
}

#[test]
fn ts16_a_replica_is_tried_again_by_itself_and_then_counted_once() {
    let stage = Stage::new();
    let command = "echo $(date +%s%N) $TASKROLE_REPLICA_ATTEMPT >> /out/r$TASKROLE_REPLICA_INDEX; \
                   test $TASKROLE_REPLICA_INDEX != 1";
    let policy = json!({"retryPolicy": {"retry": true, "delay": 1, "maxRetryCount": 2},
                        "completionPolicy": {"maxFailed": 1, "minSucceeded": 3}});
    let object = stage.run(1, &stage.set("again", json!([with(shared(&stage, role("w", 3, command)), policy)])));
    let one = replica(&object, 0, 1);
    assert_eq!(one["totalRetriedCount"], 2, "{one:#}");
    assert_eq!(one["podName"], "again-w-0-2-1", "{one:#}");
    assert_eq!(replica(&object, 0, 0)["totalRetriedCount"], 0);
    assert_eq!(object["status"]["totalRetriedCount"], 0);
    let tries = |index: u32| -> Vec<(u64, u32)> {
        let text = fs::read_to_string(stage.path(&format!("r{index}"))).unwrap();
        let pair = |line: &str| line.split_once(' ').map(|(at, n)| (at.parse().unwrap(), n.parse().unwrap())).unwrap();
        text.lines().map(pair).collect()
    };
    assert_eq!((tries(0).len(), tries(2).len()), (1, 1), "the others are left alone");
    let times = tries(1);
    assert_eq!(times.iter().map(|(_, attempt)| *attempt).collect::<Vec<_>>(), [0, 1, 2]);
    let apart = Duration::from_millis(900);
    assert!(times.windows(2).all(|two| Duration::from_nanos(two[1].0 - two[0].0) >= apart), "{times:?}");
    // The logs of earlier tries are still there, by the names of their pods.
    stage.ends(0, &["logs", "again", "again-w-0-1-1"]);
}

#[test]
fn only_exit_codes_worth_it_are_tried_again() {
    let stage = Stage::new();
    let command = "test $TASKROLE_REPLICA_ATTEMPT = 0 && exit $((TASKROLE_REPLICA_INDEX + 10))";
    let policy = json!({"retryPolicy": {"retry": true, "maxRetryCount": 3, "retryableExitCodes": ["10-11"],
                                        "permanentExitCodes": [11]},
                        "completionPolicy": {"maxFailed": -1, "minSucceeded": -1}});
    let command = format!("{command}; exit 0");
    let object = stage.run(0, &stage.set("codes", json!([with(role("w", 3, &command), policy)])));
    let retried = |index| replica(&object, 0, index)["totalRetriedCount"].clone();
    assert_eq!([retried(0), retried(1), retried(2)], [json!(1), json!(0), json!(0)], "{object:#}");
}

#[test]
fn ts21_the_whole_is_tried_again_and_starts_afresh() {
    let stage = Stage::new();
    let mut manifest = set("whole", json!([role("w", 2, "sleep 0.2; exit 1")]));
    manifest["spec"]["retryPolicy"] = json!({"retry": true, "delay": 1, "maxRetryCount": 2});
    let file = stage.file("whole.yaml", manifest.to_string());
    let said = stage.ends(1, &["run", &file, "--timeout", "60s"]);
    let words =
        ["TaskSet whole started", "is tried again in 1.0s", "begins attempt 1", "is tried again", "begins attempt 2"];
    shows(&said.err, &words);
    let object = stage.object("whole");
    let status = &object["status"];
    assert_eq!((&status["totalRetriedCount"], &status["state"]), (&json!(2), &json!("Failed")), "{status:#}");
    assert_eq!(status["controlUnitName"], "c-whole-2");
    assert_eq!(replica(&object, 0, 0)["totalRetriedCount"], 0, "statuses are those of the last attempt");
    assert!(replica(&object, 0, 0)["podName"].as_str().unwrap().starts_with("whole-w-2-0-"), "{object:#}");
    assert!(status["startAt"].as_str() < status["finishAt"].as_str(), "{status:#}");
}

#[test]
fn a_role_waits_for_those_it_depends_on() {
    let stage = Stage::new();
    let first = shared(&stage, role("first", 2, "sleep 0.5; touch /out/first-$TASKROLE_REPLICA_INDEX"));
    let second = shared(&stage, role("second", 1, "ls /out/first-0 /out/first-1"));
    let depends = json!({"dependsOn": [{"role": "first", "condition": "Succeeded"}]});
    stage.run(0, &stage.set("after", json!([first, with(second, depends)])));
    assert_eq!(stage.ends(0, &["logs", "after", "second"]).out, "second-0 | /out/first-0\nsecond-0 | /out/first-1\n");
}

#[test]
fn a_gang_starts_together_or_not_at_all() {
    let stage = Stage::new();
    let mut member = role("member", 2, "sleep 0.2");
    member["template"]["metadata"] = json!({"annotations": {"scheduling.k8s.io/group-name": "pair"}});
    let group = json!({"apiVersion": "scheduling.incubator.k8s.io/v1alpha1", "kind": "PodGroup",
                       "metadata": {"name": "pair"}, "spec": {"minMember": 3}});
    let text = format!("{group}\n---\n{}\n", set("gang", json!([member])));
    let child = stage.start(&["run", &stage.file("gang.yaml", text), "--timeout", "3s"]);
    crate::stage::eventually("it says what it waits for", || {
        let said = stage.octoflow(&["explain", "gang"]);
        said.code == 0 && said.out.contains("waits for")
    });
    let said: crate::stage::Said = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, 124, "{said}");
    shows(&said.err, &["warning[OF1081]", "wants 3 members together", "the time limit is reached"]);
    assert_eq!(replica(&stage.object("gang"), 0, 0)["podName"], "", "nothing was started");
}
