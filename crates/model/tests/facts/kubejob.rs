//! An example of every fact of `batch/v1` Jobs, and every value of the small enums inside of them.

use octoflow_model::{
    Fact,
    kubejob::{Amendment, ContainerExit, Counted, KubeJobFact, PodEnd, PodOutcome, PodStop, Verdict},
    pod::Terminated,
};

use super::examples::{AT, LATER, assignment, every, text};

pub(super) fn all() -> Vec<Fact> {
    let pod = 2;
    let to = Amendment {
        parallelism: 2,
        completions: Some(4),
        backoff_limit: 6,
        max_failed_indexes: Some(1),
        active_deadline_seconds: Some(60),
        ttl_seconds_after_finished: Some(0),
    };
    let facts = vec![
        KubeJobFact::Began { at: AT },
        KubeJobFact::Created { first: 0, count: 3, indexes: vec![(0, 1), (4, 4)], seed: 7, at: AT },
        KubeJobFact::Launched { pod, at: AT, deadline: Some(LATER), on: Some(Box::new(assignment())) },
        KubeJobFact::Started { pod, at: AT },
        KubeJobFact::Ready { pod, at: AT, ready: true },
        KubeJobFact::Ending {
            pod,
            at: AT,
            why: PodStop::Preempted,
            counted: Some(Counted::Failed),
            message: text("makes room"),
        },
        KubeJobFact::Ended(Box::new(PodEnd {
            pod,
            at: LATER,
            outcome: PodOutcome::Failed,
            counted: Some(Counted::FailedIndex),
            started: Some(AT),
            terminated: Some(Terminated { exit_code: 137, message: text("killed"), signal: 9, reason: text("Error") }),
            exits: vec![ContainerExit { name: text("main"), code: 137 }],
            reason: text("Evicted"),
            disruption: text("TerminationByKubelet"),
            again: Some(LATER),
            log_bytes: 99,
        })),
        KubeJobFact::Removed { pods: vec![1, 2], at: AT, counted: Counted::Nothing },
        KubeJobFact::Amended { at: AT, to: Box::new(to) },
        KubeJobFact::Judged {
            at: AT,
            verdict: Verdict::Failed,
            reason: text("BackoffLimitExceeded"),
            message: text("Job has reached the specified backoff limit"),
        },
    ];
    facts.into_iter().map(Fact::KubeJob).collect()
}

pub(super) fn values() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |fact: KubeJobFact| facts.push(Fact::KubeJob(fact));
    for why in every!(PodStop: Scaled, Suspended, Finished, Deleted, Evicted, Deadline, Preempted) {
        add(KubeJobFact::Ending { pod: 0, at: AT, why, counted: None, message: String::new() });
    }
    for counted in every!(Counted: Succeeded, Failed, FailedIndex, Ignored, Nothing) {
        add(KubeJobFact::Removed { pods: vec![0], at: AT, counted });
    }
    for verdict in every!(Verdict: Complete, Failed) {
        add(KubeJobFact::Judged { at: AT, verdict, reason: text("why"), message: String::new() });
    }
    for outcome in every!(PodOutcome: Succeeded, Failed, Gone, Restarted) {
        add(KubeJobFact::Ended(Box::new(PodEnd {
            pod: 0,
            at: AT,
            outcome,
            counted: None,
            started: None,
            terminated: None,
            exits: Vec::new(),
            reason: String::new(),
            disruption: String::new(),
            again: None,
            log_bytes: 0,
        })));
    }
    facts
}
