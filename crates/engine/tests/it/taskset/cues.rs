//! Commands in every phase: each is carried out, or refused with a reason, and the TaskSet still comes to its end.

use std::collections::BTreeMap;

use octoflow_engine::{Command, Refusal};
use octoflow_model::{MutableMetadata, taskset::StopReason};

use super::stage::Stage;
use crate::play::RUN;

const SPEC: &str = "
retryPolicy: {retry: true, delay: 5, maxRetryCount: 1}
roles:
- {name: a, replicas: 2, retryPolicy: {retry: true, delay: 5, maxRetryCount: 1}}
- {name: b, dependsOn: [{role: a, condition: Succeeded}]}";

/// A TaskSet that has come so far. The last one is over.
fn phases() -> Vec<(&'static str, Stage)> {
    let make = |acts: &dyn Fn(&mut Stage)| {
        let mut stage = Stage::new(SPEC);
        acts(&mut stage);
        stage
    };
    let retry = |stage: &mut Stage| {
        stage.exit("t-a-0-0-0", 1);
        stage.tick(5);
        stage.exit("t-a-0-1-0", 1);
    };
    vec![
        ("held", Stage::new(&format!("suspend: true{SPEC}"))),
        ("assigned", make(&|_| {})),
        ("running", make(&|stage| stage.up_all())),
        ("delayed", make(&|stage| stage.exit("t-a-0-0-1", 1))),
        ("suspended", make(&|stage| stage.suspend())),
        ("cleaning", make(&retry)),
        (
            "between",
            make(&|stage| {
                retry(stage);
                stage.leave();
            }),
        ),
        (
            "over",
            make(&|stage| {
                stage.command(Command::Terminate).expect("it is open");
                stage.leave();
            }),
        ),
    ]
}

fn commands() -> Vec<Command> {
    let supplied = BTreeMap::new();
    vec![
        Command::Stop,
        Command::Terminate,
        Command::Suspend,
        Command::Resume { selector: None, supplied: supplied.clone() },
        Command::Resume { selector: Some("displayName=a".into()), supplied },
        Command::StopNodes { selector: "displayName=a".into(), message: String::new() },
        Command::Evict { pod: "t-a-0-0-1".into(), why: StopReason::Evicted },
        Command::Evict { pod: "t-b-0-0-0".into(), why: StopReason::Deleted },
        Command::Disband { unit: "c-t-0".into() },
        Command::Disband { unit: "c-t-1".into() },
    ]
}

/// Lets everything end well.
fn finish(stage: &mut Stage) {
    for _ in 0..40 {
        if stage.over() {
            return;
        }
        match (stage.live().first().cloned(), stage.engine.wake_at()) {
            (Some(pod), _) => stage.exit(&pod, 0),
            (None, Some(wake)) => stage.tick(wake.since(stage.now).as_secs().max(1)),
            (None, None) if stage.state().head.suspended => stage.resume(),
            (None, None) => panic!("nothing will ever happen again: {:#}", stage.status()),
        }
    }
    panic!("it does not come to an end");
}

#[test]
fn any_two_commands_in_any_phase_leave_it_whole() {
    for first in commands() {
        // Every other one is enough of the second kind.
        for second in commands().into_iter().step_by(2) {
            for (phase, mut stage) in phases() {
                for command in [&first, &second] {
                    let answer = stage.command(command.clone());
                    let nodes =
                        matches!(command, Command::StopNodes { .. } | Command::Resume { selector: Some(_), .. });
                    match answer {
                        Err(Refusal::Finished { .. }) => assert!(stage.over(), "{phase}: {command:?}"),
                        Err(Refusal::NoSuchPod { .. }) => assert!(matches!(command, Command::Evict { .. })),
                        Err(Refusal::Invalid(_)) => assert!(nodes, "{phase}: {command:?}"),
                        Err(other) => panic!("{phase}: {command:?} is refused: {other}"),
                        Ok(()) => assert!(!nodes && phase != "over", "{phase}: {command:?}"),
                    }
                }
                finish(&mut stage);
            }
        }
    }
}

#[test]
fn what_is_over_can_still_be_written_on() {
    let (_, mut stage) = phases().pop().unwrap();
    let run = stage.engine.run(RUN).unwrap();
    let read = run.marks();
    let mut write = read.clone();
    write.labels.insert("team".into(), "red".into());
    // Only the labels change, so the last word on it stays.
    let command = Command::Mark { read: Box::new(read), write: Box::new(write.clone()) };
    stage.command(command.clone()).unwrap();
    assert_eq!(stage.command(command), Err(Refusal::Stale));
    let now: MutableMetadata = stage.engine.run(RUN).unwrap().marks();
    assert_eq!(now, write);
}

#[test]
fn a_pod_that_is_not_there_cannot_go() {
    let mut stage = Stage::new(SPEC);
    let mut evict = |pod: &str| stage.command(Command::Evict { pod: pod.into(), why: StopReason::Deleted });
    for pod in ["t-b-0-0-0", "t-a-0-1-0", "t-a-1-0-0", "other"] {
        assert_eq!(evict(pod), Err(Refusal::NoSuchPod { pod: pod.into() }));
    }
    assert_eq!(evict("t-a-0-0-0"), Ok(()));
    assert_eq!(evict("t-a-0-0-0"), Ok(()), "once is as good as twice");
}
