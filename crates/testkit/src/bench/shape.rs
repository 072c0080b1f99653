//! The workflows that are measured.

use serde_json::{Value, json};

fn workflow(name: &str, entry: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {
            "entrypoint": "main",
            "templates": [entry, {"name": "work", "container": {"image": "busybox", "command": ["true"]}}],
        },
    })
}

/// Groups one after another, each a loop over so many steps side by side.
pub(super) fn layers(groups: u32, steps: u32) -> Value {
    let group = |at: u32| json!([{"name": format!("layer-{at}"), "template": "work", "withSequence": {"count": steps.to_string()}}]);
    workflow("layers", json!({"name": "main", "steps": (0..groups).map(group).collect::<Vec<Value>>()}))
}

/// A TaskSet of one role with so many replicas, all of which must succeed.
pub(super) fn replicas(count: u32) -> Value {
    json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": "crowd"},
        "spec": {"roles": [{
            "name": "work",
            "replicas": count,
            "completionPolicy": {"maxFailed": 1, "minSucceeded": count},
            "template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}},
        }]},
    })
}

/// A Volcano Job of one task with so many pods, all of which must succeed. They need not start together.
pub(super) fn pods(count: u32) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "crowd"},
        "spec": {"minAvailable": 1, "minSuccess": count, "tasks": [{
            "name": "work",
            "replicas": count,
            "minAvailable": 1,
            "template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}},
        }]},
    })
}

/// A JobFlow of layers, each job of which waits for all of the layer before.
pub(super) fn flow(layers: u32, width: u32) -> Value {
    let name = |layer: u32, at: u32| format!("n{layer}-{at}");
    let mut entries = Vec::new();
    for (layer, at) in (0..layers).flat_map(|layer| (0..width).map(move |at| (layer, at))) {
        let mut entry = json!({"name": name(layer, at)});
        if let Some(before) = layer.checked_sub(1) {
            let targets: Vec<String> = (0..width).map(|at| name(before, at)).collect();
            entry["dependsOn"] = json!({"targets": targets});
        }
        entries.push(entry);
    }
    json!({
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "flow"},
        "spec": {"flows": entries},
    })
}

/// A template of jobs with one pod.
pub(super) fn job_template(name: &str) -> Value {
    let container = json!({"name": "main", "image": "busybox", "command": ["true"]});
    json!({
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name},
        "spec": {"tasks": [{"name": "main", "replicas": 1, "template": {"spec": {"containers": [container]}}}]},
    })
}

/// Tasks that each wait for the one before.
pub(super) fn chain(count: u32) -> Value {
    let task = |at: u32| match at {
        0 => json!({"name": "t0", "template": "work"}),
        at => json!({"name": format!("t{at}"), "template": "work", "dependencies": [format!("t{}", at - 1)]}),
    };
    workflow("chain", json!({"name": "main", "dag": {"tasks": (0..count).map(task).collect::<Vec<Value>>()}}))
}

/// One container.
pub(super) fn hello() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "hello-"},
        "spec": {
            "entrypoint": "main",
            "templates": [{"name": "main", "container": {"image": "busybox", "command": ["true"]}}],
        },
    })
}

/// A workflow that waits for somebody.
pub(super) fn suspended() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "waits-"},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "suspend": {}}]},
    })
}

/// Three containers, one after another, under a name that is drawn.
pub(super) fn three_steps() -> Value {
    let step = |name: &str| json!([{"name": name, "template": "work"}]);
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"generateName": "swarm-"},
        "spec": {
            "entrypoint": "main",
            "templates": [
                {"name": "main", "steps": [step("one"), step("two"), step("three")]},
                {"name": "work", "container": {"image": "busybox", "command": ["true"]}},
            ],
        },
    })
}

/// One shell script.
pub(super) fn shell(script: &str) -> Value {
    let mut workflow = hello();
    workflow["spec"]["templates"][0]["container"]["command"] = json!(["sh", "-c", script]);
    workflow
}

/// One loop over so many items, none of which is done.
pub(super) fn loop_of_skipped(items: u32) -> Value {
    let step = json!({
        "name": "item",
        "template": "work",
        "when": "{{item}} == x",
        "withSequence": {"count": items.to_string()},
    });
    workflow("large", json!({"name": "main", "steps": [[step]]}))
}

/// One loop over so many items, all of which wait for somebody.
pub(super) fn loop_of_suspended(items: u32) -> Value {
    let step = json!({"name": "item", "template": "wait", "withSequence": {"count": items.to_string()}});
    let mut large = workflow("large", json!({"name": "main", "steps": [[step]]}));
    large["spec"]["templates"][1] = json!({"name": "wait", "suspend": {}});
    large
}

/// A workflow under a name that is drawn, without anything to do.
pub(super) fn nothing() -> Value {
    let mut nothing = three_steps();
    nothing["spec"]["templates"][0] =
        json!({"name": "main", "steps": [[{"name": "one", "template": "work", "when": "1 == 2"}]]});
    nothing
}
