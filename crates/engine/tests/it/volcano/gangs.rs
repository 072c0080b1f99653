//! The gang of a job: its least start together or not at all.

use octoflow_engine::{
    Capacity, Input,
    schedule::spec::NodeSpec,
    volcano::{DIALECT, explain::explain, status::object},
};
use octoflow_model::{Time, taskset::StopReason};
use serde_json::{Value, json};

use super::stage::Stage;
use crate::play::{ROOMY, RUN};

fn slots(slots: usize) -> Option<Box<NodeSpec>> {
    let mut spec = NodeSpec::from(Capacity { slots, ..ROOMY });
    // What is declared is never exceeded.
    spec.capacity.values_mut().for_each(|capacity| capacity.declared = true);
    Some(Box::new(spec))
}

fn stage(count: usize) -> Stage {
    let mut stage = Stage::empty(Capacity { slots: count, ..ROOMY });
    stage.input(Input::Node { name: "local".to_owned(), spec: slots(count) });
    stage.checked = false;
    stage
}

#[test]
fn vj03_all_start_or_none() {
    let mut stage = stage(2);
    stage.submit(1, "{minAvailable: 3, tasks: [{name: a, replicas: 3}]}");
    assert_eq!(stage.live(), [] as [&str; 0]);
    assert_eq!(stage.phase(), "Pending");
    let told = explain(stage.run(RUN), Some(stage.engine.scheduler()));
    assert_eq!(told.len(), 3, "{told:?}");
    stage.input(Input::Node { name: "local".to_owned(), spec: slots(3) });
    assert_eq!(stage.live(), ["j-a-0", "j-a-1", "j-a-2"]);
}

#[test]
fn the_rest_follows_where_there_is_room() {
    let mut stage = stage(3);
    stage.submit(
        1,
        "{minAvailable: 2, tasks: [{name: a, replicas: 2, minAvailable: 1}, {name: b, replicas: 2, minAvailable: 1}]}",
    );
    assert_eq!(stage.live().len(), 3);
    assert!(stage.live().contains(&"j-b-0".to_owned()), "one of each task is among the first: {:?}", stage.live());
    let first = stage.live().remove(0);
    stage.exit(&first, 0);
    assert_eq!(stage.live().len(), 3);
}

#[test]
fn a_pod_that_is_restarted_alone_joins_those_that_run() {
    let mut stage = stage(3);
    stage.submit(1, "{policies: [{event: PodFailed, action: RestartPod}], tasks: [{name: a, replicas: 3}]}");
    stage.up_all();
    stage.exit("j-a-1", 1);
    assert_eq!(stage.live().len(), 3);
    stage.restart();
    stage.up_all();
    (0..3).for_each(|index| stage.exit(&format!("j-a-{index}"), 0));
    stage.ends("Completed");
}

#[test]
fn a_restart_of_the_whole_gathers_the_gang_anew() {
    let mut stage = stage(3);
    stage.submit(1, "{policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: a, replicas: 3}]}");
    stage.up_all();
    stage.exit("j-a-1", 1);
    // Another takes a place before the last of the old ones is gone.
    stage.end("j-a-0", octoflow_model::order::Exit::Signal(15), None);
    stage.submit(2, "tasks: [{name: x}]");
    stage.leave();
    assert_eq!(stage.live(), ["j2-x-0"], "two of three are not all");
    stage.exit("j2-x-0", 0);
    assert_eq!(stage.live().len(), 3);
}

/// Names of the pods that others see.
fn shown(stage: &Stage) -> Vec<String> {
    DIALECT.view.pods(&object(stage.run(RUN)), Time(0), None).items.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn vj03_no_pod_is_shown_or_counted_before_its_gang_is_let_in() {
    let mut stage = stage(2);
    stage.submit(
        1,
        "{minAvailable: 2, policies: [{event: PodFailed, action: RestartJob}], tasks: [{name: a, replicas: 3, minAvailable: 2}]}",
    );
    assert_eq!(shown(&stage), ["j-a-0", "j-a-1", "j-a-2"], "the third is pending beside a gang that runs");
    assert_eq!(stage.status()["pending"], 3);
    stage.up_all();
    stage.input(Input::Node { name: "local".to_owned(), spec: slots(1) });
    stage.exit("j-a-0", 1);
    stage.leave();
    assert_eq!((stage.phase().as_str(), shown(&stage)), ("Pending", Vec::<String>::new()));
    assert_eq!((&stage.status()["pending"], &stage.status()["taskStatusCount"]["a"]["phase"]), (&json!(0), &json!({})));
    stage.input(Input::Node { name: "local".to_owned(), spec: slots(2) });
    assert_eq!(shown(&stage).len(), 3);
}

#[test]
fn a_pod_that_waits_or_has_ended_can_be_deleted() {
    let mut stage = stage(2);
    stage.submit(
        1,
        "{minAvailable: 1, policies: [{event: PodEvicted, action: AbortJob}], tasks: [{name: a, replicas: 3, minAvailable: 1, policies: [{event: PodEvicted}]}, {name: b, minAvailable: 0}]}",
    );
    let waiting = shown(&stage).into_iter().find(|pod| pod.contains("-a-") && !stage.live().contains(pod));
    let waiting = waiting.expect("one of a waits for room");
    let before = object(stage.run(RUN));
    stage.evict(&waiting, StopReason::Deleted);
    let uid = |object: &Value| {
        let pods = object["status"]["pods"].as_array().expect("there are pods");
        pods.iter().find(|pod| pod["name"] == waiting.as_str()).expect("it is there")["uid"].clone()
    };
    assert_ne!(uid(&before), uid(&object(stage.run(RUN))), "it is another pod");
    stage.up_all();
    let done = stage.live().remove(0);
    stage.exit(&done, 0);
    stage.evict(&done, StopReason::Deleted);
    assert_eq!(stage.status()["succeeded"], 0, "it is created again");
    stage.evict("j-b-0", StopReason::Deleted);
    stage.leave();
    assert_eq!(stage.phase(), "Aborted", "what is deleted raises PodEvicted");
}

#[test]
fn a_pod_that_was_removed_while_its_gang_waited_comes_back_to_one_that_has_started() {
    let mut stage = stage(2);
    stage.submit(1, "{minAvailable: 3, tasks: [{name: a, replicas: 2}, {name: b}]}");
    assert_eq!(stage.live(), [] as [&str; 0]);
    let resized = |replicas: u32, least: u32| {
        move |spec: &mut Value| {
            spec["tasks"][0]["replicas"] = json!(replicas);
            spec["tasks"][0]["minAvailable"] = json!(1);
            spec["minAvailable"] = json!(least);
        }
    };
    stage.amend(resized(1, 1)).expect("it may shrink");
    assert_eq!(stage.live(), ["j-a-0", "j-b-0"]);
    stage.exit("j-b-0", 0);
    stage.amend(resized(3, 2)).expect("it may grow");
    stage.input(Input::Node { name: "local".to_owned(), spec: slots(3) });
    assert_eq!(stage.live(), ["j-a-0", "j-a-1", "j-a-2"]);
}
