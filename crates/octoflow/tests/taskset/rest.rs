//! The REST interface of the seed, word for word, on the group as it is and on the name that the seed writes for it.

use std::thread;

use serde_json::{Value, json};

use crate::rig::{Rig, eventually};

const GROUPS: [&str; 2] = ["octopus.openi.pcl.cn", "tasksets.octopus.openi.pcl.cn"];

fn collection(group: &str) -> String {
    format!("/apis/{group}/v1alpha1/namespaces/default/tasksets")
}

/// One worker that runs this command; the API version is the one of this group.
fn set(group: &str, name: &str, command: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": "TaskSet", "metadata": {"name": name},
        "spec": {"roles": [{
            "name": "worker", "replicas": 1, "completionPolicy": {"maxFailed": 1, "minSucceeded": 1},
            "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "worker", "image": "busybox", "command": ["sh", "-c", command]},
            ]}},
        }]},
    })
}

fn state(rig: &Rig, group: &str, name: &str) -> String {
    let reply = rig.get(&format!("{}/{name}", collection(group)));
    reply.json()["status"]["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn ts32_every_request_of_the_seed_is_answered_as_it_says_on_both_groups() {
    let rig = Rig::start();
    for (group, other) in [(GROUPS[0], GROUPS[1]), (GROUPS[1], GROUPS[0])] {
        let (all, one) = (collection(group), format!("{}/demo", collection(group)));
        let everywhere = format!("/apis/{group}/v1alpha1/tasksets");
        rig.get(&one).is_status(404, "NotFound");
        rig.get(&format!("{one}?watch=true")).is_status(404, "NotFound");
        rig.ask("DELETE", &one, &[], b"").is_status(404, "NotFound");

        // 6.1, as JSON.
        let body = set(group, "demo", "sleep 600").to_string();
        let made = rig.ask("POST", &all, &[], body.as_bytes());
        assert_eq!(made.status, 201, "{}", made.text());
        let made = made.json();
        assert_eq!((&made["kind"], &made["metadata"]["name"]), (&json!("TaskSet"), &json!("demo")));
        assert_eq!(made["apiVersion"], "octopus.openi.pcl.cn/v1alpha1");
        let taken = rig.ask("POST", &all, &[], body.as_bytes()).is_status(409, "AlreadyExists");
        assert_eq!(taken["details"]["kind"], "tasksets");

        // 6.3 and 6.4, and what was made on one group is there on the other.
        eventually("it runs", || state(&rig, group, "demo") == "Running");
        assert_eq!(state(&rig, other, "demo"), "Running");
        for path in [&all, &everywhere] {
            let list = rig.get(path).json();
            assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("TaskSetList"), 1));
            assert_eq!(list["items"][0]["metadata"]["name"], "demo");
        }

        // 6.2, while it runs: the TaskSet that is being deleted.
        let options = br#"{"propagationPolicy": "Foreground"}"#;
        let deleting = rig.ask("DELETE", &one, &[], options);
        assert_eq!(deleting.status, 200);
        let deleting = deleting.json();
        assert_eq!(deleting["kind"], "TaskSet", "{deleting}");
        assert!(deleting["metadata"]["deletionTimestamp"].is_string(), "{deleting}");
        eventually("it is gone", || rig.get(&one).status == 404);
        rig.get(&one).is_status(404, "NotFound");

        // 6.1 and 6.2, as YAML, of one that is over: the Status of a deletion that is done.
        let yaml = "metadata: {name: short}\nspec:\n  roles:\n  - name: worker\n    replicas: 1\n    completionPolicy: \
                    {maxFailed: 1, minSucceeded: 1}\n    template:\n      spec:\n        containers:\n        - {name: \
                    worker, image: busybox, command: ['true']}\n";
        let made = rig.ask("POST", &all, &[("content-type", "application/yaml")], yaml.as_bytes());
        assert_eq!(made.status, 201, "{}", made.text());
        eventually("it is over", || state(&rig, group, "short") == "Succeeded");
        let headers = [("content-type", "application/yaml")];
        let deleted = rig.ask("DELETE", &format!("{all}/short"), &headers, b"propagationPolicy: Foreground\n");
        let status = deleted.json();
        assert_eq!((deleted.status, &status["kind"], &status["status"]), (200, &json!("Status"), &json!("Success")));
        rig.get(&format!("{all}/short")).is_status(404, "NotFound");
    }
}

#[test]
fn ts32_watches_tell_what_is_added_changed_and_deleted() {
    let rig = Rig::start();
    for group in GROUPS {
        let (all, one) = (collection(group), format!("{}/demo", collection(group)));
        let everywhere = format!("/apis/{group}/v1alpha1/tasksets");
        let gate = rig.path("gate");
        let _ = std::fs::remove_file(&gate);
        let command = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
        let revision = rig.get(&all).json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let body = set(group, "demo", &command).to_string();
        assert_eq!(rig.ask("POST", &all, &[], body.as_bytes()).status, 201);
        let watches = [
            format!("{all}?watch=true&resourceVersion={revision}"),
            format!("{everywhere}?watch=true"),
            format!("{one}?watch=true"),
        ];
        let heard: Vec<_> = watches
            .iter()
            .map(|path| {
                let lines = rig.lines(path);
                thread::spawn(move || {
                    let mut told: Vec<(String, Value)> = Vec::new();
                    for mut line in lines {
                        let word = line["type"].as_str().unwrap().to_owned();
                        let last = word == "DELETED";
                        told.push((word, line["object"].take()));
                        if last {
                            break;
                        }
                    }
                    told
                })
            })
            .collect();
        eventually("it runs", || state(&rig, group, "demo") == "Running");
        std::fs::write(&gate, "").unwrap();
        eventually("it is over", || state(&rig, group, "demo") == "Succeeded");
        assert_eq!(rig.ask("DELETE", &one, &[], b"").status, 200);
        for told in heard.into_iter().map(|thread| thread.join().unwrap()) {
            let words: Vec<&str> = told.iter().map(|(word, _)| word.as_str()).collect();
            assert_eq!((words.first(), words.last()), (Some(&"ADDED"), Some(&"DELETED")), "{words:?}");
            assert!(words.contains(&"MODIFIED"), "{words:?}");
            assert!(told.iter().all(|(_, object)| object["kind"] == "TaskSet" && object["metadata"]["name"] == "demo"));
            let ended = told.iter().any(|(_, object)| object["status"]["state"] == "Succeeded");
            assert!(ended, "{words:?}");
        }
    }
}

#[test]
fn ts02_ts03_ts31_ts33_bad_task_sets_are_refused_with_the_places_of_what_is_wrong() {
    let rig = Rig::start();
    let all = collection(GROUPS[0]);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut object = set(GROUPS[0], "demo", "true");
        change(&mut object);
        object
    };
    let role = |set: &Value| set["spec"]["roles"][0].clone();
    let cases: [(&str, Value); 6] = [
        ("spec.roles[1].name", with(&|set| set["spec"]["roles"] = json!([role(set), role(set)]))),
        (
            "spec.roles[0].completionPolicy.maxFailed",
            with(&|set| set["spec"]["roles"][0]["completionPolicy"]["maxFailed"] = json!(-2)),
        ),
        (
            "spec.roles[0].eventPolicy[0].action",
            with(&|set| {
                set["spec"]["roles"][0]["eventPolicy"] = json!([{"event": "RoleFailed", "action": "Explode"}]);
            }),
        ),
        ("spec.roles", with(&|set| set["spec"]["roles"] = json!([]))),
        ("metadata.name", with(&|set| set["metadata"]["name"] = json!("my-job"))),
        ("metadata.name", with(&|set| set["metadata"]["name"] = json!("UPPER"))),
    ];
    for (field, object) in cases {
        let status = rig.ask("POST", &all, &[], object.to_string().as_bytes()).is_status(422, "Invalid");
        let causes = status["details"]["causes"].as_array().unwrap();
        assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {status}");
    }
    assert_eq!(rig.get(&all).json()["items"], json!([]));
    rig.ask("POST", &all, &[("content-type", "text/plain")], b"hello").is_status(415, "UnsupportedMediaType");
    rig.ask("POST", &all, &[], b"{\"metadata\": ").is_status(400, "BadRequest");
    rig.ask("POST", &all, &[("authorization", "")], b"{}").is_status(401, "Unauthorized");
}

#[test]
fn ts32_metrics_count_task_sets_by_themselves() {
    let rig = Rig::start();
    let all = collection(GROUPS[0]);
    let body = set(GROUPS[0], "demo", "true").to_string();
    assert_eq!(rig.ask("POST", &all, &[], body.as_bytes()).status, 201);
    eventually("it is over", || state(&rig, GROUPS[0], "demo") == "Succeeded");
    let page = rig.get("/metrics").text();
    assert!(page.contains("argo_workflows_gauge{phase=\"Succeeded\"} 0"), "{page}");
    assert!(page.contains("octoflow_runs{kind=\"TaskSet\",phase=\"Succeeded\"} 1"), "{page}");
    let entered = |line: &&str| line.starts_with("argo_workflows_total_count{");
    assert_eq!(page.lines().filter(entered).count(), 0, "{page}");
}
