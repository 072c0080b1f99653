//! Jobs that change while they run: more pods, fewer pods, other minima; everything else is refused.

use octoflow_engine::{Command, Refusal};
use serde_json::{Value, json};

use super::stage::Stage;

fn replicas(count: u32) -> impl FnOnce(&mut Value) {
    move |spec| {
        spec["tasks"][0]["replicas"] = json!(count);
        spec["tasks"][0]["minAvailable"] = json!(1);
        spec["minAvailable"] = json!(1);
    }
}

#[test]
fn a_job_that_grows_gets_new_indices() {
    let mut stage = Stage::new("tasks: [{name: a}, {name: b}]");
    stage.up_all();
    stage.amend(replicas(3)).expect("it may grow");
    assert_eq!(stage.live(), ["j-a-0", "j-b-0", "j-a-1", "j-a-2"]);
    stage.restart();
    stage.up_all();
    assert_eq!(stage.status()["running"], 4);
    for pod in ["j-a-0", "j-b-0", "j-a-1"] {
        stage.exit(pod, 0);
    }
    assert_eq!(stage.phase(), "Running", "the last one still runs");
    stage.exit("j-a-2", 0);
    stage.ends("Completed");
}

#[test]
fn a_job_that_shrinks_ends_the_highest_indices_and_may_grow_again() {
    let mut stage = Stage::new("{policies: [{event: PodEvicted, action: AbortJob}], tasks: [{name: a, replicas: 3}]}");
    stage.up_all();
    stage.amend(replicas(1)).expect("it may shrink");
    assert_eq!(stage.told_all(), ["j-a-1", "j-a-2"]);
    stage.leave();
    assert_eq!(stage.phase(), "Running", "what the job ends itself raises no event");
    assert_eq!((stage.live(), stage.status()["terminating"].clone()), (vec!["j-a-0".to_owned()], json!(0)));
    stage.amend(replicas(2)).expect("it may grow");
    assert_eq!(stage.live(), ["j-a-0", "j-a-1"]);
    stage.exit("j-a-0", 0);
    stage.exit("j-a-1", 0);
    stage.ends("Completed");
    assert_eq!(stage.status()["succeeded"], 2);
}

#[test]
fn a_finished_pod_of_a_removed_index_does_not_count() {
    let mut stage = Stage::new("{minAvailable: 1, tasks: [{name: a, replicas: 2, minAvailable: 1}]}");
    stage.up_all();
    stage.exit("j-a-1", 1);
    stage.amend(replicas(1)).expect("it may shrink");
    assert_eq!(stage.status()["failed"], 0, "{:#}", stage.status());
    stage.exit("j-a-0", 0);
    stage.ends("Completed");
}

#[test]
fn a_policy_of_the_job_may_follow_a_change() {
    let mut stage = Stage::new("{policies: [{event: JobUpdated, action: RestartJob}], tasks: [{name: a}]}");
    stage.up_all();
    stage.amend(replicas(2)).expect("it may grow");
    assert_eq!((stage.status()["retryCount"].clone(), stage.told_all()), (json!(1), vec!["j-a-0".to_owned()]));
    stage.leave();
    let mut live = stage.live();
    live.sort();
    assert_eq!(live, ["j-a-0", "j-a-1"]);
}

#[test]
fn everything_else_is_refused_with_its_path() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 2}]");
    let refusal = stage.amend(|spec| spec["maxRetry"] = json!(9)).unwrap_err();
    assert!(matches!(&refusal, Refusal::Invalid(why) if why.starts_with("spec.maxRetry")), "{refusal:?}");
    let refusal = stage.amend(|spec| spec["minAvailable"] = json!(3)).unwrap_err();
    assert!(matches!(&refusal, Refusal::Invalid(why) if why.starts_with("spec.minAvailable")), "{refusal:?}");
    stage.amend(|_| {}).expect("the same again is no change");
    assert_eq!(stage.live().len(), 2);
}

#[test]
fn commands_of_the_bus_are_actions_by_name() {
    let mut stage = Stage::new("tasks: [{name: a}]");
    let perform = |action: &str| Command::Perform { action: action.to_owned() };
    stage.up_all();
    stage.command(perform("RestartJob")).expect("it is an action");
    assert_eq!(stage.phase(), "Restarting");
    stage.leave();
    stage.up_all();
    stage.command(perform("AbortJob")).expect("it is an action");
    stage.leave();
    assert_eq!(stage.phase(), "Aborted");
    stage.command(perform("ResumeJob")).expect("it is an action");
    assert_eq!(stage.status()["retryCount"], 2);
    for wrong in ["RestartPod", "Dance"] {
        assert!(matches!(stage.command(perform(wrong)), Err(Refusal::Invalid(_))), "{wrong}");
    }
    stage.command(perform("CompleteJob")).expect("it is an action");
    stage.leave();
    stage.ends("Completed");
}
