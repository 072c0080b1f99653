//! Watches that resume from a revision: whatever was committed together, and wherever a watcher was cut off, it misses
//! nothing.

use octoflow_control::registry::{Event, Fault, ListOptions, Registry, Watch};
use octoflow_engine::Command;
use octoflow_model::Revision;
use octoflow_store::{Batch, Change};
use serde_json::json;

use super::registry::{create, kind, registry, until};

fn watch(registry: &Registry, of: &str, since: Revision) -> Result<Watch, Fault> {
    registry.watch(kind(of), ListOptions::default(), Some(since))
}

fn named(event: &Event) -> String {
    event.object["metadata"]["name"].as_str().unwrap().to_owned()
}

fn revision(event: &Event) -> Revision {
    Revision(event.object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
}

fn listed(registry: &Registry, of: &str) -> Revision {
    registry.list(kind(of), &ListOptions::default()).unwrap().revision
}

fn put(name: &str) -> Change {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    Change::PutObject {
        kind: "ConfigMap".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        body: object.to_string().into_bytes(),
    }
}

#[test]
fn whoever_heard_half_of_a_commit_hears_the_other_half() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let since = listed(&registry, "ConfigMap");
    registry.controller().store().commit_wait(Batch::from_iter(["a", "b", "c"].map(put))).unwrap();
    let mut names = Vec::new();
    let mut since = since;
    // It is cut off after every single event.
    while let Some(event) = watch(&registry, "ConfigMap", since).unwrap().next_event().unwrap() {
        assert!(revision(&event) > since, "it would hear the same again and again");
        names.push(named(&event));
        since = revision(&event);
    }
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn whoever_heard_half_of_the_last_commit_before_a_restart_lists_again() {
    let dir = tempfile::tempdir().unwrap();
    let (half, whole) = {
        let registry = registry(dir.path());
        let mut watch = watch(&registry, "ConfigMap", listed(&registry, "ConfigMap")).unwrap();
        registry.controller().store().commit_wait(Batch::from_iter(["a", "b"].map(put))).unwrap();
        let told = watch.poll().unwrap();
        assert_eq!(told.len(), 2);
        registry.controller().close().unwrap();
        (revision(&told[0]), revision(&told[1]))
    };
    let registry = registry(dir.path());
    assert!(matches!(watch(&registry, "ConfigMap", half), Err(Fault::Expired)));
    assert!(watch(&registry, "ConfigMap", whole).unwrap().poll().unwrap().is_empty());
}

#[test]
fn whoever_heard_of_some_pods_of_a_run_hears_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let leaf = |name: &str| json!({"name": name, "template": "leaf"});
    let workflow = json!({"metadata": {"name": "w"}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "gate", "template": "gate"}], [leaf("one"), leaf("two"), leaf("three")]]},
        {"name": "gate", "suspend": {}},
        {"name": "leaf", "container": {"image": "alpine", "command": ["true"]}},
    ]}});
    create(&registry, "Workflow", workflow).unwrap();
    let named_run = || registry.find_run(kind("Workflow"), "default", "w").unwrap();
    until(&registry, || named_run().row.phase == "Running");
    let since = listed(&registry, "Pod");
    let resume = Command::Resume { selector: None, supplied: Default::default() };
    registry.command(named_run().run, resume).unwrap();
    until(&registry, || named_run().row.archived);
    let all = watch(&registry, "Pod", since).unwrap().poll().unwrap();
    assert_eq!(all.len(), 3);
    let revisions: Vec<Revision> = all.iter().map(revision).collect();
    assert!(revisions.is_sorted() && revisions[0] >= since, "{revisions:?}");
    for cut_off in 1..3 {
        let rest = watch(&registry, "Pod", revision(&all[cut_off - 1])).unwrap().poll().unwrap();
        let told: Vec<String> = rest.iter().map(named).collect();
        assert!(all[cut_off..].iter().all(|event| told.contains(&named(event))), "after {cut_off}: {told:?}");
    }
    assert!(watch(&registry, "Pod", revision(&all[2])).unwrap().poll().unwrap().is_empty());
}
