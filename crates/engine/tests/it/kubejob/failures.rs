//! What failures of pods mean: back-off, limits, containers that are started again, rules of the failure policy.

use octoflow_engine::Input;

use super::stage::Stage;

fn fail(stage: &mut Stage, code: i32) {
    let pod = stage.live()[0].clone();
    stage.exit(&pod, code);
}

#[test]
fn pauses_between_failures_double_up_to_six_minutes() {
    let mut stage = Stage::new("{backoffLimit: 8}");
    for wait in [10, 20, 40, 80, 160, 320, 360, 360] {
        fail(&mut stage, 1);
        stage.tick(wait - 1);
        assert!(stage.live().is_empty(), "nothing before {wait} seconds");
        stage.tick(1);
        assert_eq!(stage.live().len(), 1, "a new pod after {wait} seconds");
    }
    fail(&mut stage, 1);
    stage.ends("Failed");
    let wanted = "BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert_eq!(stage.condition("Failed").as_deref(), Some(wanted));
    assert_eq!((stage.starts.len(), stage.counts()), (9, [0, 0, 9, 0]));
}

#[test]
fn a_success_begins_the_pauses_anew() {
    let mut stage = Stage::new("{completions: 3, backoffLimit: 9}");
    fail(&mut stage, 1);
    stage.tick(10);
    fail(&mut stage, 1);
    stage.tick(20);
    fail(&mut stage, 0);
    assert_eq!(stage.live().len(), 1, "a success waits for nothing");
    fail(&mut stage, 1);
    stage.tick(10);
    assert_eq!(stage.live().len(), 1);
}

#[test]
fn pauses_outlive_a_restart() {
    let mut stage = Stage::new("{}");
    fail(&mut stage, 1);
    stage.tick(5);
    stage.restart();
    stage.tick(4);
    assert!(stage.live().is_empty());
    stage.tick(1);
    assert_eq!(stage.live().len(), 1);
}

#[test]
fn containers_are_started_again_in_place_and_count() {
    let mut stage = Stage::new("{backoffLimit: 3, template: {spec: {restartPolicy: OnFailure}}}");
    let pod = stage.live()[0].clone();
    for wait in [0, 10] {
        stage.exit(&pod, 1);
        stage.tick(wait);
        assert_eq!(stage.live(), [pod.as_str()], "it keeps its name");
    }
    assert_eq!(stage.counts(), [1, 0, 0, 0], "no pod has failed");
    stage.exit(&pod, 1);
    stage.ends("Failed");
    assert!(stage.condition("Failed").unwrap().starts_with("BackoffLimitExceeded"));
    assert_eq!(stage.counts(), [0, 0, 1, 0]);
}

const RULES: &str = "{backoffLimit: 1, podFailurePolicy: {rules: [
    {action: FailJob, onExitCodes: {operator: In, values: [42]}},
    {action: Ignore, onPodConditions: [{type: DisruptionTarget}]},
    {action: Count, onExitCodes: {operator: NotIn, values: [7]}},
    {action: Ignore, onExitCodes: {operator: In, values: [7]}}]}}";

#[test]
fn a_rule_fails_the_job() {
    let mut stage = Stage::new(RULES);
    let pod = stage.live()[0].clone();
    stage.exit(&pod, 42);
    stage.ends("Failed");
    let message =
        format!("Container main for pod default/{pod} failed with exit code 42 matching FailJob rule at index 0");
    assert_eq!(stage.condition("Failed"), Some(format!("PodFailurePolicy: {message}")));
}

#[test]
fn disrupted_pods_and_some_exit_codes_do_not_count() {
    let mut stage = Stage::new(RULES);
    for round in 0..3 {
        if round == 1 {
            fail(&mut stage, 7);
        } else {
            stage.input(Input::Drain { node: "local".to_owned() });
            stage.leave();
        }
        stage.tick(360);
        assert_eq!(stage.counts(), [1, 0, 0, 0], "round {round}");
    }
    fail(&mut stage, 1);
    stage.tick(360);
    assert_eq!(stage.counts(), [1, 0, 1, 0]);
    fail(&mut stage, 1);
    stage.ends("Failed");
}

#[test]
fn a_rule_fails_an_index_without_another_try() {
    let spec =
        "{completions: 2, parallelism: 2, completionMode: Indexed, backoffLimitPerIndex: 5, podFailurePolicy: {rules: [
                 {action: FailIndex, onExitCodes: {containerName: main, operator: In, values: [3]}}]}}";
    let mut stage = Stage::new(spec);
    let pods = [stage.of_index(0), stage.of_index(1)];
    stage.exit(&pods[0], 3);
    assert_eq!(stage.status()["failedIndexes"], "0");
    stage.exit(&pods[1], 0);
    stage.ends("Failed");
}
