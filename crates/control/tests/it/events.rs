//! Events that become runs.

use octoflow_control::{
    events::EventOutcome,
    registry::{Registry, WriteOptions, kinds},
};
use serde_json::{Value, json};

use super::{container, open};

fn put(registry: &Registry, kind: &str, object: Value) {
    registry.create(kinds::of_key(kind).unwrap(), "default", object, &WriteOptions::default()).unwrap();
}

#[test]
fn j21_an_event_starts_a_workflow_that_names_its_template_and_its_binding() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new(open(dir.path())).unwrap();
    let spec = json!({"entrypoint": "main", "arguments": {"parameters": [{"name": "text", "value": "none"}]},
        "templates": [{"name": "main", "container": container()}]});
    put(&registry, "WorkflowTemplate", json!({"metadata": {"name": "t"}, "spec": spec}));
    let binding = |name: &str, selector: &str, template: &str| {
        json!({"metadata": {"name": name}, "spec": {"event": {"selector": selector}, "submit": {
            "workflowTemplateRef": {"name": template},
            "arguments": {"parameters": [{"name": "text", "valueFrom": {"event": "payload.text"}}]}}}})
    };
    put(&registry, "WorkflowEventBinding", binding("a-takes", "payload.text != '' && discriminator == 'd'", "t"));
    put(&registry, "WorkflowEventBinding", binding("b-passes", "discriminator == 'other'", "t"));
    put(&registry, "WorkflowEventBinding", binding("c-malformed", "garbage!!!!!!", "t"));
    put(&registry, "WorkflowEventBinding", binding("d-lost", "true", "nowhere"));
    let header = vec![("x-kind".to_owned(), vec!["push".to_owned()])];
    let outcomes = registry.dispatch("default", "d", json!({"text": "hi"}), header).unwrap();
    assert_eq!(outcomes.len(), 4);
    let EventOutcome::Submitted(run) = &outcomes[0].outcome else { panic!("{outcomes:?}") };
    assert_eq!(run["metadata"]["labels"]["workflows.argoproj.io/workflow-template"], "t");
    assert_eq!(run["metadata"]["labels"]["workflows.argoproj.io/workflow-event-binding"], "a-takes");
    assert_eq!(run["spec"]["arguments"]["parameters"], json!([{"name": "text", "value": "hi"}]));
    assert!(run["metadata"]["name"].as_str().unwrap().starts_with("t-"));
    assert!(matches!(outcomes[1].outcome, EventOutcome::NoMatch));
    assert!(matches!(&outcomes[2].outcome, EventOutcome::Malformed(why) if why.contains("selector")), "{outcomes:?}");
    assert!(matches!(&outcomes[3].outcome, EventOutcome::Malformed(why) if why.contains("nowhere")), "{outcomes:?}");
    assert!(registry.dispatch("other", "d", json!({}), Vec::new()).unwrap().is_empty());
    registry.close().unwrap();
}
