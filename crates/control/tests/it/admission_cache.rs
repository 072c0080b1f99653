//! The admission cache: runs of the same manifest are admitted once, and no cached result outlives a change of what it
//! depends on.

use octoflow_control::registry::Fault;
use serde_json::{Value, json};

use super::registry::{create, kind, registry, until};

/// A workflow with a generated name whose one step is in a WorkflowTemplate.
fn of_template() -> Value {
    json!({"metadata": {"generateName": "many-"}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [[{"name": "one", "templateRef": {"name": "shared", "template": "work"}}]]},
    ]}})
}

fn template(command: &str) -> Value {
    json!({"metadata": {"name": "shared"}, "spec": {"templates": [
        {"name": "work", "container": {"image": "alpine", "command": [command]}},
    ]}})
}

/// Returns the command of the run's step, as the run has stored it.
fn command(run: &Value) -> &Value {
    let stored = run["status"]["storedTemplates"].as_object().unwrap();
    &stored.values().next().unwrap()["container"]["command"][0]
}

#[test]
fn every_run_of_a_manifest_has_its_own_identity_and_runs_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, "WorkflowTemplate", template("true")).unwrap();
    let runs: Vec<Value> = (0..5).map(|_| create(&registry, "Workflow", of_template()).unwrap()).collect();
    for field in ["name", "uid"] {
        let mut all: Vec<&str> = runs.iter().map(|run| run["metadata"][field].as_str().unwrap()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), runs.len(), "{field}");
    }
    for run in &runs {
        let name = run["metadata"]["name"].as_str().unwrap();
        until(&registry, || registry.find_run(kind("Workflow"), "default", name).is_ok_and(|found| found.row.archived));
        let seen = registry.get(kind("Workflow"), "default", name).unwrap();
        assert_eq!(
            (&seen["metadata"]["uid"], &seen["status"]["phase"]),
            (&run["metadata"]["uid"], &json!("Succeeded"))
        );
        assert_eq!(seen["spec"], runs[0]["spec"]);
    }
}

#[test]
fn a_template_that_changed_is_used_as_it_is_now_and_one_that_is_gone_is_missed() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let refused = |run: Result<Value, Fault>| matches!(run, Err(Fault::Invalid { .. }));
    assert!(refused(create(&registry, "Workflow", of_template())), "there is no template yet");
    create(&registry, "WorkflowTemplate", template("first")).unwrap();
    for _ in 0..2 {
        assert_eq!(command(&create(&registry, "Workflow", of_template()).unwrap()), "first");
    }
    let options = Default::default();
    registry.replace(kind("WorkflowTemplate"), "default", "shared", template("second"), &options).unwrap();
    for _ in 0..2 {
        assert_eq!(command(&create(&registry, "Workflow", of_template()).unwrap()), "second");
    }
    registry.delete(kind("WorkflowTemplate"), "default", "shared", &Default::default()).unwrap();
    assert!(refused(create(&registry, "Workflow", of_template())), "the template is gone");
}
