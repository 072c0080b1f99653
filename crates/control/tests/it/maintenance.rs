//! The maintenance thread, with the machine's own clock.

use std::sync::mpsc;

use octoflow_control::{
    expire::RetentionPolicy,
    registry::{ListOptions, Registry, WriteOptions, kinds},
};
use serde_json::{Value, json};

use super::{container, open};

fn spec(ttl: Value) -> Value {
    json!({"entrypoint": "main", "ttlStrategy": ttl, "templates": [{"name": "main", "container": container()}]})
}

/// Checks after every commit until the condition holds.
fn until(registry: &Registry, rung: &mpsc::Receiver<()>, holds: impl Fn(&Registry) -> bool) {
    while !holds(registry) {
        rung.recv().unwrap();
    }
}

#[test]
fn schedules_run_and_what_is_over_goes_while_somebody_attends() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let (bell, rung) = mpsc::channel();
    registry.on_change(move |_| {
        let _ = bell.send(());
    });
    registry.start_maintenance(RetentionPolicy::default()).unwrap();
    let create = |kind: &str, name: &str, spec: Value| {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        registry.create(kinds::of_key(kind).unwrap(), "default", object, &WriteOptions::default()).unwrap()
    };

    create("Workflow", "short", spec(json!({"secondsAfterCompletion": 0})));
    until(&registry, &rung, |registry| {
        registry.find_run(crate::registry::kind("Workflow"), "default", "short").is_err()
    });

    let cron = json!({"schedules": ["@every 1s"], "workflowSpec": spec(json!({"secondsAfterSuccess": 3600}))});
    create("CronWorkflow", "often", cron);
    until(&registry, &rung, |registry| {
        let cron = registry.get(kinds::of_key("CronWorkflow").unwrap(), "default", "often").unwrap();
        cron["status"]["succeeded"].as_u64().is_some_and(|count| count >= 2)
    });
    let listed = registry.list(kinds::of_key("Workflow").unwrap(), &ListOptions::default()).unwrap();
    assert!(listed.items.iter().all(|run| run["metadata"]["name"].as_str().unwrap().starts_with("often-")));
    assert!(registry.overdue().is_empty(), "{:?}", registry.overdue());
    registry.close().unwrap();
}
