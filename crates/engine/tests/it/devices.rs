//! Devices and nodes of tasks, in both dialects: told to every container, recorded in the fact of the launch, and the same
//! after a restart.

use std::collections::BTreeMap;

use octoflow_engine::{
    Capacity as Measured, Engine, Setup,
    argo::admit::admit,
    schedule::spec::{NodeSpec, ResourceCapacity},
    taskset::admit::examine,
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Task,
    submission::{Stored, Submission, SubmitContext},
    task::{TaskContainer, placement::Assignment},
};
use serde_json::Value;

use crate::{
    inputs,
    play::{DAWN, Everything, ROOMY, RUN},
    taskset::stage::{Groups, manifest as set_manifest},
    text::{manifest, yaml},
};

/// An engine with one node that has four GPUs.
fn engine(node: &str) -> Engine {
    let mut spec = NodeSpec { name: node.into(), ..NodeSpec::from(ROOMY) };
    spec.capacity.insert("nvidia.com/gpu".to_owned(), ResourceCapacity { amount: 4, declared: true });
    Engine::new(Setup { nodes: vec![spec], ..Measured::into(ROOMY) })
}

struct Started {
    engine: Engine,
    facts: Vec<Fact>,
    tasks: BTreeMap<AttemptId, Box<Task>>,
}

fn started(node: &str, host: Option<&str>, manifest: Value, stored: Stored) -> Started {
    let mut engine = engine(node);
    let submission = Submission {
        name: "w".into(),
        namespace: "default".into(),
        uid: "u".into(),
        at: DAWN,
        manifest,
        stored,
        context: SubmitContext { host: host.map(str::to_owned), ..SubmitContext::default() },
        parent: None,
        ordered_by: None,
        previous: None,
    };
    let outcome = inputs::submit(&mut engine, RUN, Box::new(submission), DAWN);
    let facts = outcome.decided.into_iter().flat_map(|decided| decided.facts).collect();
    let start = |order| match order {
        Order::Start { attempt, task } => Some((attempt, task)),
        _ => None,
    };
    Started { engine, facts, tasks: outcome.orders.into_iter().filter_map(start).collect() }
}

fn workflow(node: &str, host: Option<&str>) -> Started {
    let object = manifest(
        "
templates:
- {name: main, steps: [[{name: a, template: gpu}, {name: b, template: gpu}, {name: c, template: ok}]]}
- name: gpu
  container: {image: i, command: [c], resources: {limits: {nvidia.com/gpu: 2}}}
  sidecars: [{name: s, image: i, command: [c], env: [{name: CUDA_VISIBLE_DEVICES, value: mine}]}]",
    );
    let admitted = admit(&object, &Everything::default()).expect("it is admitted");
    started(node, host, admitted.manifest().clone(), admitted.stored().clone())
}

fn task_set(node: &str, host: Option<&str>) -> Started {
    let spec = "roles: [{name: a, replicas: 2, template: {spec: {containers: [{name: m, image: i, command: [c], \
                resources: {limits: {nvidia.com/gpu: 2}}}]}}}]";
    let admitted = examine(&set_manifest("w", yaml(spec).remove(0)), &Groups::default()).expect("it is admitted");
    started(node, host, admitted.manifest, admitted.stored)
}

fn variable<'c>(container: &'c TaskContainer, name: &str) -> Option<&'c str> {
    container.env.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.reveal())
}

#[test]
fn devices_are_told_to_every_container_unless_the_manifest_says_otherwise() {
    for started in [workflow("n", None), task_set("n", None)] {
        let gpus: Vec<&str> =
            started.tasks.values().filter_map(|task| variable(&task.main, "CUDA_VISIBLE_DEVICES")).collect();
        let mut numbers: Vec<&str> = gpus.iter().flat_map(|list| list.split(',')).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, ["0", "1", "2", "3"], "no device is handed out twice");
        for task in started.tasks.values() {
            let general = variable(&task.main, "OCTOFLOW_DEVICES_NVIDIA_COM_GPU");
            assert_eq!(general, variable(&task.main, "CUDA_VISIBLE_DEVICES"));
            for sidecar in task.pod.iter().flat_map(|pod| &pod.members).filter(|one| one.container.name == "s") {
                assert_eq!(variable(&sidecar.container, "CUDA_VISIBLE_DEVICES"), Some("mine"));
                assert_eq!(variable(&sidecar.container, "OCTOFLOW_DEVICES_NVIDIA_COM_GPU"), general);
            }
        }
    }
    let plain = workflow("n", None);
    let without = plain.tasks.values().filter(|task| variable(&task.main, "CUDA_VISIBLE_DEVICES").is_none()).count();
    assert_eq!(without, 1, "who asked for none is told of none");
}

#[test]
fn the_same_tasks_are_described_after_a_restart_with_the_same_places() {
    for started in [workflow("n", None), task_set("n", None), workflow("n", Some("n")), task_set("n", Some("n"))] {
        let places = |engine: &Engine| -> BTreeMap<AttemptId, Option<Assignment>> {
            let run = engine.run(RUN).unwrap();
            started.tasks.keys().map(|attempt| (*attempt, run.assignment(attempt.task))).collect()
        };
        let mut again = engine("n");
        inputs::restore(&mut again, RUN, started.facts.clone());
        let (believed, outcome) = inputs::go_on(&mut again, &[RUN], DAWN);
        assert_eq!(believed.into_iter().collect::<BTreeMap<_, _>>(), started.tasks);
        assert!(outcome.decided.is_empty() && outcome.orders.is_empty(), "{outcome:?}");
        assert_eq!(places(&again), places(&started.engine));
        assert_eq!(again.scheduler().running(), started.engine.scheduler().running());
    }
}

#[test]
fn the_node_is_recorded_and_shown_only_where_it_is_another_machine() {
    let text = |started: &Started| serde_json::to_string(&started.facts).unwrap();
    let shown = |started: &mut Started| {
        let attempts: Vec<AttemptId> = started.tasks.keys().copied().collect();
        for attempt in attempts {
            started
                .engine
                .handle(octoflow_engine::Input::Report(octoflow_model::Report::Started { attempt, at: DAWN }), DAWN);
        }
        started.engine.run(RUN).unwrap().object()["status"].to_string()
    };
    let mut far = workflow("far-away", Some("here"));
    assert!(text(&far).contains("\"node\":\"far-away\""));
    assert!(shown(&mut far).contains("\"hostNodeName\":\"far-away\""));
    let mut here = workflow("here", Some("here"));
    assert!(!text(&here).contains("\"node\":\"here\""));
    assert!(shown(&mut here).contains("\"hostNodeName\":\"here\""));
    let mut far = task_set("far-away", Some("here"));
    assert!(text(&far).contains("\"node\":\"far-away\"") && shown(&mut far).contains("\"nodeName\":\"far-away\""));
    let mut here = task_set("here", Some("here"));
    assert!(!text(&here).contains("\"node\":\"here\"") && !shown(&mut here).contains("nodeName"));
    assert_eq!(far.engine.run(RUN).unwrap().assignment(NodeIx(0)).unwrap().node, "far-away");
}
