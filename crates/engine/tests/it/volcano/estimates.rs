//! `runningEstimate`: how long the scheduler takes the pods of a job to run. It lets small jobs pass a large one that waits, tells
//! when that is expected to start, and ends nobody.

use octoflow_engine::{Capacity, Input, schedule::spec::NodeSpec, volcano::explain::explain};
use octoflow_model::RunId;

use super::stage::Stage;
use crate::play::{DAWN, ROOMY};

/// Two places, one of them taken by a job that is estimated to run for 100 seconds, and a job that needs both.
fn crowded(estimate: &str) -> Stage {
    let mut spec = NodeSpec::from(Capacity { slots: 2, ..ROOMY });
    // What is declared is never exceeded.
    spec.capacity.values_mut().for_each(|capacity| capacity.declared = true);
    let mut stage = Stage::empty(Capacity { slots: 2, ..ROOMY });
    stage.input(Input::Node { name: "local".to_owned(), spec: Some(Box::new(spec)) });
    stage.checked = false;
    stage.submit(1, &format!("{{{estimate} tasks: [{{name: a}}]}}"));
    stage.submit(2, "{minAvailable: 2, tasks: [{name: a, replicas: 2}]}");
    assert_eq!(stage.live(), ["j-a-0"]);
    stage
}

fn first_waits_until(stage: &Stage) -> Option<u64> {
    let told = explain(stage.run(RunId(2)), Some(stage.engine.scheduler()));
    let expected = told[0].wait.as_ref().and_then(|wait| wait.expected)?;
    Some(expected.since(DAWN).as_secs())
}

#[test]
fn a_job_passes_one_that_waits_if_it_is_estimated_to_end_before_that_can_start() {
    let mut stage = crowded("runningEstimate: 1m40s,");
    assert_eq!(first_waits_until(&stage), Some(100));
    stage.submit(3, "tasks: [{name: a}]");
    stage.submit(4, "{runningEstimate: 2m, tasks: [{name: a}]}");
    assert_eq!(stage.live(), ["j-a-0"], "nobody knows how long the one takes, and the other takes too long");
    stage.submit(5, "{runningEstimate: 1m30s, tasks: [{name: a}]}");
    assert_eq!(stage.live(), ["j-a-0", "j5-a-0"]);
    stage.restart();
    assert_eq!(stage.live(), ["j-a-0", "j5-a-0"]);
    stage.up_all();
    stage.exit("j5-a-0", 0);
    stage.exit("j-a-0", 0);
    assert_eq!(stage.live(), ["j2-a-0", "j2-a-1"], "it was held up by nobody");
}

#[test]
fn without_an_estimate_nobody_passes_and_nothing_is_foretold() {
    let mut stage = crowded("");
    assert_eq!(first_waits_until(&stage), None);
    stage.submit(3, "{runningEstimate: 1s, tasks: [{name: a}]}");
    assert_eq!(stage.live(), ["j-a-0"], "nobody knows whether it would end in time");
}

#[test]
fn a_pods_own_deadline_is_known_better_than_the_estimate() {
    let mut stage = crowded("runningEstimate: 1m40s,");
    stage.submit(3, "{runningEstimate: 1h, tasks: [{name: a, template: {spec: {activeDeadlineSeconds: 50}}}]}");
    assert_eq!(stage.live(), ["j-a-0", "j3-a-0"]);
}

#[test]
fn a_job_that_runs_longer_than_estimated_goes_on() {
    let mut stage = crowded("runningEstimate: 1m40s,");
    stage.up_all();
    stage.tick(10_000);
    assert_eq!((stage.live(), stage.told_all()), (vec!["j-a-0".to_owned()], Vec::new()));
    stage.submit(3, "{runningEstimate: 1s, tasks: [{name: a}]}");
    assert_eq!(stage.live(), ["j-a-0"], "whoever is late may end at any moment");
    stage.exit("j-a-0", 0);
    assert_eq!(stage.live(), ["j2-a-0", "j2-a-1"]);
}
