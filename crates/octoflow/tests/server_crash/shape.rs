//! The workflows of the load. Every step leaves one line outside its own view: run, step and try.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Chain,
    Diamond,
    FanOut,
    /// Fails once and is tried again.
    Stumble,
    /// Waits until it is resumed.
    Gate,
    /// One of them at a time.
    Turns,
    /// Takes so long that a client may end it.
    Long,
    /// Fails, and something is done about it at the end.
    Fails,
    /// Hooks of the run and of a step, each with a step of its own.
    Hooked,
    /// Two of them at a time.
    Few,
    /// Only waits until it is resumed. Only the initial runs have this shape.
    Held,
}

pub(crate) const SHAPES: [Shape; 10] = [
    Shape::Chain,
    Shape::Diamond,
    Shape::FanOut,
    Shape::Stumble,
    Shape::Gate,
    Shape::Turns,
    Shape::Long,
    Shape::Fails,
    Shape::Hooked,
    Shape::Few,
];

/// The ConfigMap that says how many of the few may go at a time.
pub(crate) const LIMITS: &str = "limits";

impl Shape {
    /// The phase it ends in when nobody interferes.
    pub(crate) fn phase(self) -> &'static str {
        if self == Self::Fails { "Failed" } else { "Succeeded" }
    }

    /// The lines it leaves, each once, when nobody interferes.
    pub(crate) fn marks(self, name: &str) -> BTreeSet<String> {
        let marks: &[&str] = match self {
            Self::Chain => &["a 0", "b 0", "c 0"],
            Self::Diamond => &["a 0", "b 0", "c 0", "d 0"],
            Self::FanOut => &["i0 0", "i1 0", "i2 0", "i3 0", "last 0"],
            Self::Stumble => &["s 0", "s 1", "b 0"],
            Self::Gate => &["a 0", "b 0"],
            Self::Turns => &["a 0", "b 0"],
            Self::Long => &["l 0"],
            Self::Fails => &["f 0", "exit 0"],
            Self::Hooked => &["a 0", "began 0", "left 0", "over 0"],
            Self::Few => &["a 0"],
            Self::Held => &[],
        };
        marks.iter().map(|mark| format!("{name} {mark}")).collect()
    }

    pub(crate) fn manifest(self, name: &str, host: &Path) -> Value {
        let step = |name: &str, template: &str| json!({"name": name, "template": template, "arguments": {"parameters": [{"name": "who", "value": name}]}});
        let after = |mut task: Value, before: &[&str]| {
            task["dependencies"] = json!(before);
            task
        };
        let mut spec = json!({
            "entrypoint": "main",
            "volumes": [{"name": "out", "hostPath": {"path": host}}],
        });
        let main = match self {
            Self::Chain => json!({"steps": [[step("a", "mark")], [step("b", "mark")], [step("c", "mark")]]}),
            Self::Diamond => json!({"dag": {"tasks": [step("a", "mark"), after(step("b", "mark"), &["a"]),
                after(step("c", "mark"), &["a"]), after(step("d", "mark"), &["b", "c"])]}}),
            Self::FanOut => {
                let mut fan = step("i{{item}}", "mark");
                fan["name"] = json!("fan");
                fan["withSequence"] = json!({"count": "4"});
                json!({"steps": [[fan], [step("last", "mark")]]})
            }
            Self::Stumble => json!({"steps": [[step("s", "stumble")], [step("b", "mark")]]}),
            Self::Gate => {
                json!({"steps": [[step("a", "mark")], [{"name": "gate", "template": "gate"}], [step("b", "mark")]]})
            }
            Self::Turns => {
                spec["synchronization"] = json!({"mutexes": [{"name": "turns"}]});
                json!({"steps": [[step("a", "mark")], [step("b", "mark")]]})
            }
            Self::Long => json!({"steps": [[step("l", "long")]]}),
            Self::Hooked => {
                spec["hooks"] = json!({
                    "began": {"expression": "workflow.status == \"Running\"", "template": "began"},
                    "exit": {"template": "over"},
                });
                let mut hooked = step("a", "mark");
                hooked["hooks"] = json!({"exit": {"template": "left"}});
                json!({"steps": [[hooked]]})
            }
            Self::Few => {
                spec["synchronization"] = json!({"semaphores": [{"configMapKeyRef": {"name": LIMITS, "key": "few"}}]});
                json!({"steps": [[step("a", "mark")]]})
            }
            Self::Held => json!({"steps": [[{"name": "gate", "template": "gate"}]]}),
            Self::Fails => {
                spec["onExit"] = json!("bye");
                json!({"steps": [[step("f", "fail")]]})
            }
        };
        let mut main = main;
        main["name"] = json!("main");
        spec["templates"] = json!([
            main,
            leaf("mark", "sleep 0.02"),
            leaf("long", "sleep 1.5"),
            leaf("fail", "exit 3"),
            retried(leaf("stumble", "[ {{retries}} = 1 ]")),
            {"name": "gate", "suspend": {}},
            {"name": "bye", "steps": [[step("exit", "mark")]]},
            {"name": "began", "steps": [[step("began", "mark")]]},
            {"name": "left", "steps": [[step("left", "mark")]]},
            {"name": "over", "steps": [[step("over", "mark")]]},
        ]);
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": name, "labels": {"shape": format!("{self:?}")}},
            "spec": spec,
        })
    }
}

/// A TaskSet of two replicas, each of which leaves a line.
pub(crate) fn task_set(name: &str, host: &Path) -> Value {
    let script = format!("echo {name} r$TASKROLE_REPLICA_INDEX 0 >> /out/marks; sleep 0.05");
    json!({
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": name},
        "spec": {"roles": [{
            "name": "worker", "replicas": 2, "completionPolicy": {"maxFailed": 1, "minSucceeded": 2},
            "template": {"spec": {"restartPolicy": "Never",
                "volumes": [{"name": "out", "hostPath": {"path": host}}],
                "containers": [{"name": "main", "image": "bash", "command": ["bash", "-c", script],
                    "volumeMounts": [{"name": "out", "mountPath": "/out"}]}]}},
        }]},
    })
}

/// A Volcano Job of two pods that start together and find each other by name; each leaves a line.
pub(crate) fn volcano_job(name: &str, host: &Path) -> Value {
    let script = format!("echo {name} r$VC_TASK_INDEX 0 >> /out/marks; sleep 0.05");
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
        "spec": {"plugins": {"env": [], "svc": []}, "tasks": [{
            "name": "worker", "replicas": 2,
            "template": {"spec": {
                "volumes": [{"name": "out", "hostPath": {"path": host}}],
                "containers": [{"name": "main", "image": "bash", "command": ["bash", "-c", script],
                    "volumeMounts": [{"name": "out", "mountPath": "/out"}]}]}},
        }]},
    })
}

/// A schedule whose runs leave a line each.
pub(crate) fn schedule(name: &str, host: &Path) -> Value {
    let tick = leaf("mark", "true");
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": name},
        "spec": {
            "schedules": ["@every 1s"], "concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 1000,
            "failedJobsHistoryLimit": 1000, "catchUp": {"policy": "all", "limit": 5},
            "workflowSpec": {
                "entrypoint": "main", "volumes": [{"name": "out", "hostPath": {"path": host}}],
                "templates": [
                    {"name": "main", "steps": [[{"name": "tick", "template": "mark",
                        "arguments": {"parameters": [{"name": "who", "value": "tick"}]}}]]},
                    tick,
                ],
            },
        },
    })
}

/// A template that nothing runs; it is only put and taken away.
pub(crate) fn template(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate",
        "metadata": {"name": name, "annotations": {"version": version.to_string()}},
        "spec": {"templates": [{"name": "main", "container": {"image": "busybox", "command": ["true"]}}]},
    })
}

fn leaf(name: &str, then: &str) -> Value {
    let tries = if name == "stumble" { "{{retries}}" } else { "0" };
    let script = format!("echo {{{{workflow.name}}}} {{{{inputs.parameters.who}}}} {tries} >> /out/marks; {then}");
    json!({
        "name": name,
        "inputs": {"parameters": [{"name": "who"}]},
        "container": {"image": "bash", "command": ["bash", "-c"], "args": [script],
            "volumeMounts": [{"name": "out", "mountPath": "/out"}]},
    })
}

fn retried(mut template: Value) -> Value {
    template["retryStrategy"] = json!({"limit": "3", "retryPolicy": "Always"});
    template
}
