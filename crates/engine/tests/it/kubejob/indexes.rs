//! Jobs whose pods have indexes: what pods are told, limits of failures for each index, success policies.

use octoflow_model::task::EnvValue;

use super::stage::Stage;

#[test]
fn a_pod_knows_its_index() {
    let mut stage = Stage::new("{completions: 2, parallelism: 2, completionMode: Indexed}");
    for index in 0..2 {
        let pod = stage.of_index(index);
        assert!(pod.starts_with(&format!("j-{index}-")), "{pod}");
        let wanted = ("JOB_COMPLETION_INDEX".to_owned(), EnvValue::Plain(index.to_string()));
        let task = stage.task(&pod);
        assert!(task.main.env.contains(&wanted), "{:?}", task.main.env);
        let hosts = task.hosts.as_deref().unwrap_or_default();
        assert!(hosts.lines().any(|line| line.ends_with("\tj-1")), "{hosts}");
        stage.exit(&pod, 0);
    }
    stage.ends("Complete");
    assert_eq!(stage.status()["completedIndexes"], "0,1");
}

#[test]
fn a_failed_index_is_tried_again_and_others_do_not_wait_for_it() {
    let mut stage = Stage::new("{completions: 3, parallelism: 3, completionMode: Indexed, backoffLimitPerIndex: 1}");
    let first = stage.of_index(1);
    stage.exit(&first, 1);
    assert_eq!(stage.pods_of(Some(1)), [] as [&str; 0]);
    stage.tick(9);
    assert_eq!(stage.pods_of(Some(1)), [] as [&str; 0]);
    stage.tick(1);
    let second = stage.of_index(1);
    assert_ne!(first, second);
    stage.exit(&second, 1);
    assert_eq!((stage.status()["failedIndexes"].as_str(), stage.counts()), (Some("1"), [2, 0, 2, 0]));
    stage.tick(1000);
    assert_eq!(stage.pods_of(Some(1)), [] as [&str; 0], "it is not tried again");
    for index in [0, 2] {
        let pod = stage.of_index(index);
        stage.exit(&pod, 0);
    }
    stage.ends("Failed");
    assert_eq!(stage.condition("Failed").as_deref(), Some("FailedIndexes: Job has failed indexes"));
    assert_eq!(stage.status()["completedIndexes"], "0,2");
}

#[test]
fn too_many_failed_indexes_end_it_at_once() {
    let spec =
        "{completions: 4, parallelism: 4, completionMode: Indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 1}";
    let mut stage = Stage::new(spec);
    for index in [0, 1] {
        let pod = stage.of_index(index);
        stage.exit(&pod, 1);
    }
    let reason = stage.condition("FailureTarget").unwrap();
    assert!(reason.starts_with("MaxFailedIndexesExceeded: "), "{reason}");
    assert_eq!(stage.told().count(), 2);
    stage.leave();
    stage.ends("Failed");
    assert_eq!(stage.counts(), [0, 0, 4, 0], "pods that were ended with it have failed");
}

#[test]
fn a_success_policy_ends_the_others() {
    let spec = "{completions: 4, parallelism: 4, completionMode: Indexed,
                 successPolicy: {rules: [{succeededIndexes: '0-1'}, {succeededIndexes: '1-3', succeededCount: 2}]}}";
    let mut stage = Stage::new(spec);
    let pods: Vec<String> = (0..4).map(|index| stage.of_index(index)).collect();
    stage.exit(&pods[2], 0);
    assert_eq!(stage.condition("SuccessCriteriaMet"), None);
    stage.exit(&pods[3], 0);
    assert_eq!(stage.condition("SuccessCriteriaMet").as_deref(), Some("SuccessPolicy: Matched rules at index 1"));
    assert_eq!((stage.told().count(), stage.condition("Complete")), (2, None), "they are ended first");
    stage.leave();
    stage.ends("Complete");
    assert_eq!(stage.status()["completedIndexes"], "2,3");
}

#[test]
fn a_lost_pod_frees_its_index() {
    let mut stage = Stage::new("{completions: 1, completionMode: Indexed}");
    let pod = stage.of_index(0);
    stage.lose(&pod);
    stage.tick(10);
    let next = stage.of_index(0);
    stage.exit(&next, 0);
    stage.ends("Complete");
}
