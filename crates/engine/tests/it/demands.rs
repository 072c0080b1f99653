//! What the scheduler is told of tasks, in both dialects: from every field that says something, and in which order.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use octoflow_engine::{
    Engine,
    argo::admit::admit,
    kinds::Kind,
    schedule::spec::Demand,
    taskset::{self, admit::examine},
};
use octoflow_model::{
    NodeIx, RunId, Time,
    submission::{EarlierDurations, Stored, Submission, SubmitContext},
};
use serde_json::{Value, json};

use crate::{
    inputs,
    play::{DAWN, Everything, ROOMY, RUN},
    taskset::stage::manifest as set_manifest,
    text::{manifest, yaml},
};

fn submission(manifest: Value, stored: Stored, context: SubmitContext) -> Box<Submission> {
    Box::new(Submission {
        name: "w".into(),
        namespace: "default".into(),
        uid: "u".into(),
        at: DAWN,
        manifest,
        stored,
        context,
        parent: None,
        ordered_by: None,
        previous: None,
    })
}

/// An engine in which the run has begun.
fn begun(manifest: Value, stored: Stored, context: SubmitContext) -> Engine {
    let mut engine = Engine::new(ROOMY);
    let outcome = inputs::submit(&mut engine, RUN, submission(manifest, stored, context), DAWN);
    assert_eq!(outcome.refusal, None);
    engine
}

/// What the scheduler is told of the tasks of a workflow with this spec, by node name, and of the same run read back.
fn told_of(manifest: &Value, context: SubmitContext) -> BTreeMap<String, Arc<Demand>> {
    let admitted = admit(manifest, &Everything::default()).unwrap_or_else(|why| panic!("refused: {why:?}"));
    let engine = begun(admitted.manifest().clone(), admitted.stored().clone(), context);
    let run = engine.run(RUN).expect("the run is there");
    let state = &engine.run_of::<octoflow_engine::argo::Run>(RUN).expect("it is a workflow").state;
    let pods = state.nodes.iter().enumerate().filter(|(_, node)| node.leaf().is_some());
    pods.map(|(at, node)| (node.name.to_string(), run.demand(NodeIx(at as u32)))).collect()
}

fn told(spec: &str) -> BTreeMap<String, Arc<Demand>> {
    told_of(&manifest(spec), SubmitContext::default())
}

/// What it is told of the only task.
fn only(spec: &str) -> Arc<Demand> {
    let told = told(spec);
    assert_eq!(told.len(), 1, "{:?}", told.keys());
    told.into_values().next().expect("there is one")
}

#[test]
fn a_task_that_says_nothing_wants_nothing_of_the_default_queue() {
    let demand = only("templates: [{name: main, container: {image: i, command: [c]}}]");
    assert_eq!(*demand, Demand::new("default", Default::default()));
}

#[test]
fn every_field_of_a_template_is_told() {
    let demand = only(
        "
priority: 3
templates:
- name: main
  priority: 7
  priorityClassName: urgent
  nodeSelector: {disk: ssd}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}
  tolerations: [{key: gpu, operator: Exists}]
  activeDeadlineSeconds: 120
  timeout: 1m
  metadata: {labels: {volcano.sh/queue-name: q, volcano.sh/preemptable: 'true'}, annotations: {sla-waiting-time: 10m}}
  container: {image: i, command: [c], resources: {requests: {cpu: 500m, memory: 1Ki}, limits: {nvidia.com/gpu: 2}}}
  sidecars: [{name: s, image: i, command: [c], resources: {requests: {cpu: '1', nvidia.com/gpu: 1}}}]",
    );
    assert_eq!((demand.priority, demand.class.as_deref(), &*demand.queue), (7, Some("urgent"), "q"));
    assert_eq!((demand.resources.cpu_milli, demand.resources.memory_bytes), (1500, 1024));
    assert_eq!(demand.resources.others["nvidia.com/gpu"], 3);
    let node = |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    assert!(demand.constraints.selects("n", &node(&[("disk", "ssd"), ("zone", "a")])));
    assert!(!demand.constraints.selects("n", &node(&[("disk", "ssd"), ("zone", "b")])));
    assert!(!demand.constraints.selects("n", &node(&[("zone", "a")])));
    assert_eq!(demand.constraints.tolerations.len(), 1);
    assert_eq!((demand.preemptable, demand.bound), (Some(true), Some(Duration::from_secs(60))));
    assert_eq!(demand.longest_wait, Some(Duration::from_secs(600)));
}

#[test]
fn what_a_template_leaves_out_comes_from_the_steps_around_it_then_from_the_workflow() {
    let told = told(
        "
priority: 3
podPriorityClassName: low
nodeSelector: {of: workflow}
tolerations: [{key: of-workflow, operator: Exists}]
templates:
- {name: main, nodeSelector: {of: steps}, steps: [[{name: a, template: own}, {name: b, template: none}]]}
- {name: own, nodeSelector: {of: template}, priorityClassName: high, container: {image: i, command: [c]}}
- {name: none, container: {image: i, command: [c]}}",
    );
    let of = |name: &str| {
        let demand = &told[name];
        (demand.constraints.selector["of"].as_str(), demand.class.as_deref(), demand.priority)
    };
    assert_eq!(of("w[0].a"), ("template", Some("high"), 3));
    assert_eq!(of("w[0].b"), ("steps", Some("low"), 3));
    assert!(told.values().all(|demand| demand.constraints.tolerations[0].key == "of-workflow"));
    let whole = only(
        "podPriority: 9\nnodeSelector: {of: workflow}\ntemplates: [{name: main, container: {image: i, command: [c]}}]",
    );
    assert_eq!((whole.constraints.selector["of"].as_str(), whole.priority), ("workflow", 9));
}

#[test]
fn the_queue_of_the_pod_wins_over_that_of_the_run_over_that_of_the_namespace() {
    let spec = "templates: [{name: main, container: {image: i, command: [c]}}]";
    let queue = |object: &Value, context: SubmitContext| {
        told_of(object, context).into_values().next().unwrap().queue.to_string()
    };
    let namespaced = || SubmitContext { queue: Some("of-namespace".into()), ..SubmitContext::default() };
    let mut object = manifest(spec);
    assert_eq!(queue(&object, SubmitContext::default()), "default");
    assert_eq!(queue(&object, namespaced()), "of-namespace");
    for name in ["kueue.x-k8s.io/queue-name", "scheduling.volcano.sh/queue-name", "volcano.sh/queue-name"] {
        object["metadata"]["annotations"] = json!({name: "annotated"});
        assert_eq!(queue(&object, namespaced()), "annotated");
        object["metadata"]["labels"] = json!({name: "labelled"});
        assert_eq!(queue(&object, namespaced()), "labelled");
        object["metadata"]["labels"] = json!({});
    }
    object["spec"]["podMetadata"] = json!({"labels": {"volcano.sh/queue-name": "of-pods"}});
    assert_eq!(queue(&object, namespaced()), "of-pods");
    let main = object["spec"]["templates"].as_array().unwrap().iter().position(|one| one["name"] == "main").unwrap();
    object["spec"]["templates"][main]["metadata"] = json!({"annotations": {"kueue.x-k8s.io/queue-name": "own"}});
    assert_eq!(queue(&object, namespaced()), "own");
}

#[test]
fn usage_is_charged_to_who_submitted_it_else_to_the_namespace() {
    let object = manifest("templates: [{name: main, container: {image: i, command: [c]}}]");
    let tenant = |by: Option<&str>| {
        let context = SubmitContext { submitted_by: by.map(str::to_owned), ..SubmitContext::default() };
        told_of(&object, context).into_values().next().unwrap().tenant.to_string()
    };
    assert_eq!((tenant(Some("ada")).as_str(), tenant(None).as_str()), ("ada", "default"));
}

#[test]
fn variables_are_put_into_what_the_scheduler_is_told() {
    let told = told(
        "
arguments: {parameters: [{name: zone, value: z}]}
nodeSelector: {zone: '{{workflow.parameters.zone}}'}
templates:
- name: main
  steps:
  - - {name: a, template: t, arguments: {parameters: [{name: disk, value: ssd}, {name: mem, value: 1Ki}]}}
    - {name: b, template: t, arguments: {parameters: [{name: disk, value: hdd}, {name: mem, value: 2Ki}]}}
    - {name: c, template: t, arguments: {parameters: [{name: disk, value: hdd}, {name: mem, value: 2Ki}]}}
    - {name: d, template: plain}
- name: t
  inputs: {parameters: [{name: disk}, {name: mem}]}
  nodeSelector: {disk: '{{inputs.parameters.disk}}'}
  container: {image: i, command: [c], resources: {requests: {memory: '{{inputs.parameters.mem}}'}}}
- {name: plain, container: {image: i, command: [c]}}",
    );
    let of = |name: &str| (told[name].constraints.selector.clone(), told[name].resources.memory_bytes);
    let disk = |value: &str| [("disk".to_owned(), value.to_owned())].into();
    assert_eq!(of("w[0].a"), (disk("ssd"), 1024));
    assert_eq!(of("w[0].b"), (disk("hdd"), 2048));
    assert!(Arc::ptr_eq(&told["w[0].b"], &told["w[0].c"]), "equal tasks share one demand");
    assert_eq!(told["w[0].d"].constraints.selector["zone"], "z");
}

#[test]
fn tasks_of_one_template_share_one_demand_and_history_bounds_what_no_deadline_does() {
    let nodes = [("[0].a(0:1)", 5), ("[0].a(1:2)", 7), ("[0].a(2:3)", 9), ("[0].b", 100)];
    let nodes = nodes.map(|(name, seconds)| (name.to_owned(), seconds)).into();
    let earlier = Some(Box::new(EarlierDurations { run: 10, nodes }));
    let spec = "
templates:
- {name: main, steps: [[{name: a, template: t, withItems: [1, 2, 3, 4]}, {name: b, template: bounded}]]}
- {name: t, container: {image: i, command: [c]}}
- {name: bounded, activeDeadlineSeconds: 30, container: {image: i, command: [c]}}";
    let told = told_of(&manifest(spec), SubmitContext { earlier, ..SubmitContext::default() });
    let bound = |name: &str| told[name].bound.map(|bound| bound.as_secs());
    assert_eq!((bound("w[0].a(0:1)"), bound("w[0].a(1:2)")), (Some(16), Some(16)));
    assert_eq!((bound("w[0].a(2:3)"), bound("w[0].a(3:4)")), (Some(32), None));
    assert_eq!(bound("w[0].b"), Some(30));
    assert!(Arc::ptr_eq(&told["w[0].a(0:1)"], &told["w[0].a(1:2)"]));
}

/// What the scheduler is told of the first replica of each role of a TaskSet.
fn roles(set: &Value, groups: &[(&str, Value)], context: SubmitContext) -> BTreeMap<String, Arc<Demand>> {
    let admitted = examine(set, &Groups(groups.to_vec())).unwrap_or_else(|why| panic!("refused: {why:?}"));
    let engine = begun(admitted.manifest, admitted.stored, context);
    let run = engine.run(RUN).expect("the run is there");
    let set = engine.run_of::<taskset::Run>(RUN).expect("it is a TaskSet");
    let roles = set.program.roles.iter().zip(&set.program.set.spec.roles);
    roles.map(|(plan, role)| (role.name.clone(), run.demand(NodeIx(plan.first)))).collect()
}

struct Groups<'a>(Vec<(&'a str, Value)>);

impl octoflow_engine::argo::admit::Catalog for Groups<'_> {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
    fn pod_group(&self, _: &str, name: &str) -> Option<Value> {
        self.0.iter().find(|(group, _)| *group == name).map(|(_, spec)| json!({"spec": spec}))
    }
}

#[test]
fn every_field_of_a_pod_template_is_told() {
    let set = set_manifest(
        "t",
        yaml(
            "
priority: 4
roles:
- name: a
  template:
    metadata: {labels: {volcano.sh/preemptable: 'false'}}
    spec:
      priorityClassName: urgent
      nodeSelector: {disk: ssd}
      tolerations: [{key: gpu, operator: Exists}]
      activeDeadlineSeconds: 90
      containers: [{name: m, image: i, command: [c], resources: {limits: {cpu: 2, nvidia.com/gpu: 1}}}]
- name: b",
        )
        .remove(0),
    );
    let context = SubmitContext { submitted_by: Some("ada".into()), ..SubmitContext::default() };
    let told = roles(&set, &[], context);
    let a = &told["a"];
    assert_eq!((&*a.tenant, &*a.queue, a.priority, a.class.as_deref()), ("ada", "default", 4, Some("urgent")));
    assert_eq!((a.resources.cpu_milli, a.resources.others["nvidia.com/gpu"]), (2000, 1));
    assert_eq!((a.constraints.selector["disk"].as_str(), a.constraints.tolerations.len()), ("ssd", 1));
    assert_eq!((a.preemptable, a.bound), (Some(false), Some(Duration::from_secs(90))));
    assert!(told["b"].constraints.is_empty() && told["b"].preemptable.is_none() && told["b"].bound.is_none());
}

#[test]
fn the_queue_of_a_group_wins_over_that_of_pods_over_that_of_the_task_set() {
    let queue = |set: &Value, groups: &[(&str, Value)]| {
        let context = SubmitContext { queue: Some("of-namespace".into()), ..SubmitContext::default() };
        roles(set, groups, context)["a"].queue.to_string()
    };
    let gang = "roles: [{name: a, template: {metadata: {annotations: {scheduling.k8s.io/group-name: g}}}}]";
    let mut set = set_manifest("t", yaml(gang).remove(0));
    let plain = [("g", json!({"minMember": 1}))];
    assert_eq!(queue(&set, &plain), "of-namespace");
    set["metadata"]["annotations"] = json!({"kueue.x-k8s.io/queue-name": "of-set", "sla-waiting-time": "1h"});
    assert_eq!(queue(&set, &plain), "of-set");
    set["spec"]["queue"] = json!("of-spec");
    assert_eq!(queue(&set, &plain), "of-spec");
    set["spec"]["roles"][0]["template"]["metadata"]["labels"] = json!({"volcano.sh/queue-name": "of-pod"});
    assert_eq!(queue(&set, &plain), "of-pod");
    let group = json!({"minMember": 1, "queue": "of-group", "priorityClassName": "urgent",
        "minTaskMember": {"a": 1}, "minResources": {"cpu": 1}});
    assert_eq!(queue(&set, &[("g", group.clone())]), "of-group");
    let told = roles(&set, &[("g", group)], SubmitContext::default());
    assert_eq!(told["a"].class.as_deref(), Some("urgent"));
    assert_eq!(told["a"].longest_wait, Some(Duration::from_secs(3600)));
    let gang = told["a"].gang.as_ref().unwrap();
    assert_eq!((&*gang.part, gang.least_of["a"], gang.own), ("a", 1, None));
}

#[test]
fn tasks_wait_since_their_facts_say_so_whoever_reads_them() {
    let later = |seconds: u64| DAWN.saturating_add(Duration::from_secs(seconds));
    let set = set_manifest("t", yaml("roles: [{name: a, replicas: 2}, {name: b, dependsOn: [a]}]").remove(0));
    let admitted = examine(&set, &Groups(Vec::new())).unwrap();
    let mut engine = Engine::new(octoflow_engine::Capacity { slots: 1, ..ROOMY });
    let submitted = submission(admitted.manifest, admitted.stored, SubmitContext::default());
    let outcome = inputs::submit(&mut engine, RunId(1), submitted, later(7));
    let facts: Vec<_> = outcome.decided.into_iter().flat_map(|decided| decided.facts).collect();
    let since = |engine: &Engine| -> Vec<Time> {
        let run = engine.run(RUN).unwrap();
        (0..2).map(|at| run.waits_since(NodeIx(at))).collect()
    };
    assert_eq!(since(&engine), [later(7); 2]);
    assert_eq!(engine.run(RUN).unwrap().launched_at(NodeIx(0)), later(7));
    let mut again = Engine::new(ROOMY);
    inputs::restore(&mut again, RUN, facts);
    assert_eq!(since(&again), since(&engine));
}
