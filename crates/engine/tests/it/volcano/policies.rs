//! Policies: which event leads to which action, for whom, and when it is called off.

use octoflow_engine::{Input, volcano::explain::explain};
use octoflow_model::{order::Exit, taskset::StopReason};

use super::stage::Stage;
use crate::play::RUN;

#[test]
fn vj08_the_policy_of_a_task_comes_before_the_jobs() {
    let spec = "
policies: [{event: PodFailed, action: AbortJob}]
tasks:
- {name: a, replicas: 2, policies: [{event: PodFailed, action: RestartTask}]}
- {name: b}";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.exit("j-a-0", 1);
    assert_eq!(stage.told_all(), ["j-a-1"], "only its own task is restarted");
    assert_eq!(stage.phase(), "Restarting");
    stage.leave();
    assert_eq!(stage.live().len(), 3);
    assert_eq!(stage.names(), ["j-a-0", "j-a-1", "j-b-0", "j-a-0", "j-a-1"]);
    assert_eq!(stage.status()["version"], 0, "not all of its pods were ended");
    stage.up_all();
    stage.exit("j-b-0", 1);
    assert_eq!(stage.phase(), "Aborting");
    stage.leave();
    assert_eq!(stage.phase(), "Aborted");
}

#[test]
fn vj09_an_exit_code_restarts_one_pod_under_its_name() {
    let spec = "{policies: [{exitCode: 137, action: RestartPod}], minAvailable: 1, tasks: [{name: a, replicas: 3}]}";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.exit("j-a-0", 1);
    assert_eq!((stage.phase(), stage.live().len()), ("Running".to_owned(), 2), "nothing follows another code");
    stage.exit("j-a-1", 137);
    assert_eq!(stage.names()[3..], ["j-a-1"]);
    assert_eq!(stage.told_all(), [] as [&str; 0]);
    let status = stage.status();
    assert_eq!((&status["version"], &status["retryCount"]), (&0.into(), &1.into()));
    stage.up_all();
    let uid = stage.pod("j-a-1")["uid"].clone();
    assert_ne!(uid, stage.pod("j-a-0")["uid"]);
    stage.exit("j-a-1", 0);
    stage.exit("j-a-2", 0);
    stage.ends("Completed");
    assert_eq!(stage.run(RUN).logs().len(), 4, "the logs of both tries are found");
    let names: Vec<String> = stage.run(RUN).logs().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["j-a-0", "j-a-1.0", "j-a-1", "j-a-2"]);
}

#[test]
fn vj11_an_action_is_called_off_when_the_replacement_runs() {
    let spec = "{policies: [{event: PodEvicted, action: RestartJob, timeout: 10s}], tasks: [{name: a, replicas: 2}]}";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.evict("j-a-0", StopReason::Deleted);
    stage.end("j-a-0", Exit::Signal(15), None);
    assert_eq!(stage.pod("j-a-0")["delayedAction"]["action"], "RestartJob");
    let told = explain(stage.run(RUN), None);
    assert!(told.iter().any(|one| one.reason.contains("RestartJob follows PodEvicted at")), "{told:?}");
    stage.tick(5);
    stage.restart();
    stage.up("j-a-0");
    stage.tick(100);
    assert_eq!((stage.phase(), stage.status()["retryCount"].clone()), ("Running".to_owned(), 0.into()));
    stage.evict("j-a-0", StopReason::Deleted);
    stage.end("j-a-0", Exit::Signal(15), None);
    stage.tick(9);
    assert_eq!(stage.status()["retryCount"], 0);
    stage.tick(1);
    assert_eq!((stage.phase(), stage.status()["retryCount"].clone()), ("Restarting".to_owned(), 1.into()));
    assert_eq!(stage.told_all().len(), 2);
}

#[test]
fn vj12_a_completed_task_may_complete_the_job() {
    let spec = "
tasks:
- {name: master, policies: [{event: TaskCompleted, action: CompleteJob}]}
- {name: worker, replicas: 2}";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.exit("j-master-0", 0);
    assert_eq!(stage.phase(), "Completing");
    assert_eq!(stage.told_all(), ["j-worker-0", "j-worker-1"]);
    stage.leave();
    stage.ends("Completed");
}

#[test]
fn a_task_is_completed_when_all_of_it_has_succeeded() {
    let spec = "tasks: [{name: a, replicas: 2, policies: [{event: TaskCompleted, action: TerminateJob}]}, {name: b}]";
    let mut stage = Stage::new(spec);
    stage.exit("j-a-0", 0);
    assert_eq!(stage.live().len(), 2);
    stage.exit("j-a-1", 0);
    stage.leave();
    stage.ends("Terminated");
}

#[test]
fn what_the_job_ends_itself_raises_no_event() {
    let spec = "{policies: [{event: '*', action: RestartJob}], tasks: [{name: a, replicas: 3}]}";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.exit("j-a-0", 1);
    stage.end("j-a-1", Exit::Code(1), None);
    stage.lose("j-a-2");
    assert_eq!(stage.status()["retryCount"], 1, "two more failed because they were ended");
}

#[test]
fn a_preempted_pod_raises_pod_evicted_and_waits_again_without_a_policy() {
    let mut stage = Stage::new("tasks: [{name: a, replicas: 2}]");
    stage.up_all();
    stage.input(Input::Drain { node: "local".to_owned() });
    assert_eq!(stage.told_all().len(), 2);
    stage.leave();
    assert_eq!(stage.live().len(), 2);
    let status = stage.status();
    assert_eq!((&status["retryCount"], &status["preemptCount"]), (&0.into(), &2.into()));
    let spec = "{policies: [{event: PodEvicted, action: TerminateJob}], tasks: [{name: a, replicas: 2}]}";
    let mut stage = Stage::new(spec);
    stage.input(Input::Drain { node: "local".to_owned() });
    stage.leave();
    stage.ends("Terminated");
}

#[test]
fn a_pod_that_waits_too_long_is_acted_on() {
    let spec = "{minAvailable: 1, policies: [{event: PodPending, action: AbortJob, timeout: 1m}], tasks: [{name: a, replicas: 2}]}";
    let mut stage = Stage::with_slots(1, spec);
    stage.up("j-a-0");
    stage.tick(59);
    assert_eq!(stage.phase(), "Running");
    stage.tick(1);
    assert_eq!(stage.phase(), "Aborting");
    // A gang that was not let in has no pods that could be pending.
    let mut stage = Stage::empty(octoflow_engine::Capacity { slots: 2, ..crate::play::ROOMY });
    stage.submit(2, "tasks: [{name: x}]");
    stage
        .submit(1, "{policies: [{event: PodPending, action: AbortJob, timeout: 1m}], tasks: [{name: a, replicas: 2}]}");
    stage.tick(600);
    assert_eq!(stage.phase(), "Pending");
    stage.exit("j2-x-0", 0);
    stage.up_all();
    stage.tick(600);
    assert_eq!(stage.phase(), "Running");
}

#[test]
fn a_delayed_action_keeps_the_job_from_ending() {
    let spec = "{policies: [{event: PodFailed, action: RestartJob, timeout: 30s}], tasks: [{name: a}]}";
    let mut stage = Stage::new(spec);
    stage.exit("j-a-0", 1);
    assert!(!stage.over());
    stage.restart();
    stage.tick(30);
    assert_eq!((stage.live().len(), stage.status()["retryCount"].clone()), (1, 1.into()));
    stage.exit("j-a-0", 0);
    stage.ends("Completed");
}

#[test]
fn an_action_on_everything_calls_off_what_waits() {
    let spec = "
policies: [{event: PodFailed, action: RestartJob, timeout: 30s}]
tasks: [{name: a}, {name: b, policies: [{event: PodFailed, action: RestartJob}]}]";
    let mut stage = Stage::new(spec);
    stage.exit("j-a-0", 1);
    stage.exit("j-b-0", 1);
    assert_eq!(stage.status()["retryCount"], 1);
    stage.up_all();
    stage.tick(100);
    assert_eq!(stage.status()["retryCount"], 1);
}

#[test]
fn a_partition_is_restarted_alone() {
    let spec = "
tasks:
- name: a
  replicas: 4
  partitionPolicy: {totalPartitions: 2, partitionSize: 2}
  policies: [{event: PodFailed, action: RestartPartition}]";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.exit("j-a-2", 1);
    assert_eq!(stage.told_all(), ["j-a-3"]);
    stage.leave();
    assert_eq!(stage.names()[4..], ["j-a-2", "j-a-3"]);
}

#[test]
fn while_it_restarts_another_action_of_a_policy_ends_all_pods() {
    let spec = "
minAvailable: 3
tasks:
- {name: a, replicas: 2, policies: [{event: PodFailed, action: RestartTask}]}
- {name: b, policies: [{event: PodFailed, action: AbortJob}]}";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.exit("j-a-0", 1);
    assert_eq!(stage.phase(), "Restarting");
    stage.exit("j-b-0", 1);
    assert_eq!(stage.phase(), "Restarting", "as in the original, it goes on restarting");
    stage.leave();
    assert_eq!((stage.phase(), stage.live().len()), ("Pending".to_owned(), 3));
    assert_eq!(stage.status()["retryCount"], 1);
}

#[test]
fn a_pod_that_cannot_be_built_fails() {
    let spec = "
tasks:
- name: a
  template: {spec: {containers: [{name: main, image: i, command: [c], envFrom: [{configMapRef: {name: none}}]}]}}";
    let stage = Stage::new(spec);
    stage.ends("Failed");
    assert!(stage.pod("j-a-0")["reason"].as_str().unwrap().starts_with("CreateContainerConfigError"));
}

#[test]
fn a_pod_that_runs_too_long_fails() {
    let spec = "
policies: [{event: PodFailed, action: TerminateJob}]
tasks: [{name: a, template: {spec: {activeDeadlineSeconds: 10}}}]";
    let mut stage = Stage::new(spec);
    stage.up_all();
    stage.tick(10);
    assert_eq!(stage.told_all(), ["j-a-0"]);
    stage.leave();
    stage.ends("Terminated");
    assert_eq!(stage.pod("j-a-0")["reason"], "DeadlineExceeded");
}
