//! Decorators and binders: what they may add, and how the rest is told.

use serde_json::{Value, json};

use crate::{
    plugins::Reply,
    stage::{Stage, pod, task_set},
};

type Edit = fn(&mut Value);

/// Registers a plugin that changes the pod.
fn edits(stage: &Stage, plugin_type: &str, name: &str, edit: impl Fn(&mut Value) + Send + Sync + 'static) {
    let address = stage.plugins.on(name, move |asked| {
        let mut job = asked.body["job"].clone();
        edit(pod(&mut job));
        Reply::Json(job)
    });
    stage.plugin(plugin_type, name, &address);
}

#[test]
fn pl_26_and_31_additions_of_every_kind_are_taken() {
    let stage = Stage::new();
    edits(&stage, "TemplateDecorator", "d1", |pod| {
        pod["containers"][0]["env"] = json!([{"name": "A", "value": "say \"hi\" \\ -1"}]);
        pod["volumes"] = json!([{"name": "v", "emptyDir": {}}]);
    });
    edits(&stage, "TemplateDecorator", "d2", |pod| {
        let side = json!({"name": "side", "image": "busybox", "command": ["true"]});
        pod["containers"].as_array_mut().unwrap().insert(0, side);
        let more = (0..12).map(|at| json!({"name": format!("N{at}"), "value": format!("{at}")}));
        pod["containers"][1]["env"].as_array_mut().unwrap().extend(more);
        pod["terminationGracePeriodSeconds"] = json!(5);
    });
    let id = stage.submit(&task_set("test \"$N11\" = 11"));
    stage.until(&id, "succeeded");
    let set = stage.task_set(&id).unwrap();
    let pod = &set["spec"]["roles"][0]["template"]["spec"];
    assert_eq!(pod["containers"].as_array().unwrap().len(), 2);
    assert_eq!(pod["containers"][1]["env"].as_array().unwrap().len(), 13);
    assert_eq!(pod["volumes"][0]["name"], "v");
    let trace = stage.trace(&id);
    let plugins: Vec<&str> =
        trace["trace"].as_array().unwrap().iter().map(|one| one["plugin"].as_str().unwrap()).collect();
    assert_eq!(plugins, ["TemplateDecorator.d1.test", "TemplateDecorator.d2.test"]);
    assert!(trace["trace"][0]["outcome"].to_string().contains("emptyDir"), "{trace:#}");
}

#[test]
fn pl_27_what_was_there_is_not_changed() {
    let edited: [(&str, Edit); 3] = [
        ("image", |pod| pod["containers"][0]["image"] = json!("other")),
        ("restartPolicy", |pod| drop(pod.as_object_mut().unwrap().remove("restartPolicy"))),
        ("containers", |pod| pod["containers"] = json!([])),
    ];
    let stage = Stage::new();
    for (field, edit) in edited {
        edits(&stage, "TemplateDecorator", "d", edit);
        let reason = stage.fails(&task_set("true"));
        assert!(reason.contains(field) && reason.contains("TemplateDecorator.d.test"), "{field}: {reason}");
        assert!(reason.contains("spec.roles[0]"), "it names the path: {reason}");
    }
    stage.switch("d", false);
    edits(&stage, "TemplateDecorator", "e", |pod| pod["schedulerName"] = json!("mine"));
    let reason = stage.fails(&task_set("true"));
    assert!(reason.contains("schedulerName"), "{reason}");
    stage.switch("e", false);
    // A later decorator that changes what an earlier one added: both are named.
    edits(&stage, "TemplateDecorator", "one", |pod| pod["hostname"] = json!("a"));
    edits(&stage, "TemplateDecorator", "two", |pod| pod["hostname"] = json!("b"));
    let reason = stage.fails(&task_set("true"));
    for word in ["hostname", "TemplateDecorator.one.test", "TemplateDecorator.two.test"] {
        assert!(reason.contains(word), "{reason}");
    }
}

#[test]
fn pl_28_commands_are_only_prepended() {
    let cases = [
        ("echo hi;sleep 0;exit 0", true),
        ("exit 0;sleep 0", false),
        ("sleep 0;exit 0;echo hi", false),
        ("echo hi;exit 0", false),
    ];
    let stage = Stage::new();
    for (script, taken) in cases {
        edits(&stage, "TemplateDecorator", "d", move |pod| pod["containers"][0]["command"][2] = json!(script));
        if taken {
            let id = stage.submit(&task_set("sleep 0;exit 0"));
            stage.until(&id, "succeeded");
        } else {
            let reason = stage.fails(&task_set("sleep 0;exit 0"));
            assert!(reason.contains("command"), "{script}: {reason}");
        }
    }
}

#[test]
fn pl_30_one_binder_at_most_and_none_is_fine() {
    let stage = Stage::new();
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "succeeded");
    let set = stage.task_set(&id).unwrap();
    assert!(set["spec"]["roles"][0]["template"]["spec"].get("schedulerName").is_none());
    edits(&stage, "SchedulerBinder", "b1", |pod| pod["schedulerName"] = json!("mine"));
    let id = stage.submit(&task_set("true"));
    stage.until(&id, "succeeded");
    let now = stage.get(&format!("/job/taskset/{id}")).payload;
    assert_eq!(now["spec"]["roles"][0]["template"]["spec"]["schedulerName"], "mine");
    edits(&stage, "SchedulerBinder", "b2", |_| {});
    let reason = stage.fails(&task_set("true"));
    for key in ["SchedulerBinder.b1.test", "SchedulerBinder.b2.test"] {
        assert!(reason.contains(key), "{reason}");
    }
}
