//! The phase machine of a job: what an action does in each phase, and what follows from the counts of its pods. Pure
//! functions; the turn carries out what they say.

use octoflow_model::volcano::{Action, JobPhase};

/// Which pods an action ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kill {
    /// All pods. Finished ones go too, except after the last attempt.
    Everything,
    /// All pods but finished ones.
    Unfinished,
    /// The pods that the action is about: those of a task, a partition, or one pod.
    Target,
}

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Enters the phase after ending pods; a retry counts as another attempt.
    Enter {
        phase: JobPhase,
        kill: Kill,
        retry: bool,
    },
    /// Ends pods and stays in its phase.
    Kill(Kill),
    Nothing,
}

/// Who asks for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Policy,
    /// A person is never ignored, also where the original drops an action: while the job restarts.
    Person,
}

/// Returns what an action does in a phase.
pub(super) fn on_action(phase: JobPhase, action: Action, asker: Asker) -> Step {
    let enter = |phase, kill, retry| Step::Enter { phase, kill, retry };
    match phase {
        JobPhase::Pending | JobPhase::Running => match action {
            Action::RestartJob => enter(JobPhase::Restarting, Kill::Everything, true),
            Action::RestartTask | Action::RestartPod | Action::RestartPartition => {
                enter(JobPhase::Restarting, Kill::Target, true)
            }
            Action::AbortJob => enter(JobPhase::Aborting, Kill::Unfinished, false),
            Action::CompleteJob => enter(JobPhase::Completing, Kill::Unfinished, false),
            Action::TerminateJob => enter(JobPhase::Terminating, Kill::Unfinished, false),
            Action::ResumeJob => Step::Nothing,
        },
        JobPhase::Restarting => match (action, asker) {
            (Action::AbortJob, Asker::Person) => enter(JobPhase::Aborting, Kill::Unfinished, false),
            (Action::TerminateJob, Asker::Person) => enter(JobPhase::Terminating, Kill::Unfinished, false),
            (Action::CompleteJob, Asker::Person) => enter(JobPhase::Completing, Kill::Unfinished, false),
            (Action::ResumeJob, Asker::Person) => Step::Nothing,
            (Action::RestartTask | Action::RestartPod | Action::RestartPartition, _) => Step::Kill(Kill::Target),
            (
                Action::AbortJob | Action::RestartJob | Action::TerminateJob | Action::CompleteJob | Action::ResumeJob,
                _,
            ) => Step::Kill(Kill::Everything),
        },
        JobPhase::Aborting | JobPhase::Aborted => match (action, asker) {
            (Action::ResumeJob, _) => enter(JobPhase::Restarting, Kill::Everything, true),
            (Action::TerminateJob, Asker::Person) => enter(JobPhase::Terminating, Kill::Unfinished, false),
            (
                Action::AbortJob
                | Action::RestartJob
                | Action::RestartTask
                | Action::RestartPod
                | Action::RestartPartition
                | Action::TerminateJob
                | Action::CompleteJob,
                _,
            ) => Step::Nothing,
        },
        JobPhase::Completing
        | JobPhase::Terminating
        | JobPhase::Completed
        | JobPhase::Failed
        | JobPhase::Terminated => Step::Nothing,
    }
}

/// The pods of a job, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// All pods that there should be.
    pub replicas: u32,
    pub pending: u32,
    pub running: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub terminating: u32,
    /// Pods that can never be created: a task they wait for has failed.
    pub unreachable: u32,
    /// A task without enough successes, if every task has its own minimum.
    pub lacking: Option<String>,
    /// True if an action waits for its time.
    pub delayed: bool,
}

/// What the manifest asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub least: u32,
    pub min_success: Option<u32>,
    pub max_retry: u32,
}

/// Returns the phase that follows from the counts, with a message; `None`: it stays.
pub(super) fn on_sync(phase: JobPhase, counts: &Counts, retries: u32, rules: Rules) -> Option<(JobPhase, String)> {
    let quiet = |phase| Some((phase, String::new()));
    match phase {
        JobPhase::Pending => {
            let come = counts.running + counts.succeeded + counts.failed + counts.unreachable;
            if come >= rules.least { quiet(JobPhase::Running) } else { None }
        }
        JobPhase::Running => running(counts, rules),
        JobPhase::Restarting if retries >= rules.max_retry => {
            let message = format!("attempt {retries} was the last: maxRetry is {}", rules.max_retry);
            Some((JobPhase::Failed, message))
        }
        JobPhase::Restarting if counts.replicas.saturating_sub(counts.terminating) >= rules.least => {
            quiet(JobPhase::Pending)
        }
        JobPhase::Aborting if counts.terminating == 0 => quiet(JobPhase::Aborted),
        JobPhase::Completing if counts.terminating == 0 => quiet(JobPhase::Completed),
        JobPhase::Terminating if counts.terminating == 0 => quiet(JobPhase::Terminated),
        JobPhase::Restarting
        | JobPhase::Aborting
        | JobPhase::Aborted
        | JobPhase::Completing
        | JobPhase::Terminating
        | JobPhase::Completed
        | JobPhase::Failed
        | JobPhase::Terminated => None,
    }
}

fn running(counts: &Counts, rules: Rules) -> Option<(JobPhase, String)> {
    let Counts { replicas, succeeded, failed, unreachable, .. } = *counts;
    if replicas == 0 {
        return None;
    }
    if let Some(least) = rules.min_success.filter(|least| succeeded >= *least) {
        return Some((JobPhase::Completed, format!("{succeeded} pods succeeded, and minSuccess is {least}")));
    }
    // An action that is due later may still change how it ends.
    if succeeded + failed + unreachable == replicas && !counts.delayed {
        let never = match unreachable {
            0 => String::new(),
            count => format!(", {count} could not start because a task they wait for failed"),
        };
        let told = format!("{succeeded} of {replicas} pods succeeded{never}");
        return Some(match (&counts.lacking, rules.min_success) {
            (Some(task), _) => (JobPhase::Failed, format!("{told}; too few of task {task}")),
            (None, Some(least)) => (JobPhase::Failed, format!("{told}, and minSuccess is {least}")),
            (None, None) if succeeded >= rules.least => (JobPhase::Completed, told),
            (None, None) => (JobPhase::Failed, format!("{told}, and minAvailable is {}", rules.least)),
        });
    }
    (counts.pending > replicas.saturating_sub(rules.least)).then_some((JobPhase::Pending, String::new()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { least: 2, min_success: None, max_retry: 3 };

    #[test]
    fn every_step_of_an_action_is_an_arrow_of_the_machine() {
        for phase in JobPhase::ALL {
            for action in Action::ALL {
                for asker in [Asker::Policy, Asker::Person] {
                    if let Step::Enter { phase: next, .. } = on_action(*phase, action, asker) {
                        assert!(phase.next().contains(&next), "{phase} never becomes {next} by {action:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn final_phases_know_no_action() {
        for phase in JobPhase::ALL.iter().filter(|phase| phase.is_final()) {
            assert!(Action::ALL.iter().all(|action| on_action(*phase, *action, Asker::Person) == Step::Nothing));
            assert_eq!(on_sync(*phase, &Counts { replicas: 3, ..Counts::default() }, 9, RULES), None);
        }
    }

    #[test]
    fn resuming_and_restarting_count_as_attempts_and_the_rest_does_not() {
        for phase in JobPhase::ALL {
            for action in Action::ALL {
                if let Step::Enter { phase: next, retry, .. } = on_action(*phase, action, Asker::Policy) {
                    assert_eq!(retry, next == JobPhase::Restarting);
                }
            }
        }
    }

    #[test]
    fn how_a_job_ends_follows_from_its_pods() {
        let ended = |succeeded, failed| Counts { replicas: 3, succeeded, failed, ..Counts::default() };
        let phase = |counts: &Counts, rules| on_sync(JobPhase::Running, counts, 0, rules).map(|(phase, _)| phase);
        assert_eq!(phase(&ended(2, 1), RULES), Some(JobPhase::Completed));
        assert_eq!(phase(&ended(1, 2), RULES), Some(JobPhase::Failed));
        assert_eq!(phase(&ended(1, 1), RULES), None);
        let strict = Rules { min_success: Some(3), ..RULES };
        assert_eq!(phase(&ended(2, 1), strict), Some(JobPhase::Failed));
        assert_eq!(phase(&ended(1, 0), Rules { min_success: Some(1), ..RULES }), Some(JobPhase::Completed));
        let lacking = Counts { lacking: Some("a".to_owned()), ..ended(2, 1) };
        assert_eq!(phase(&lacking, RULES), Some(JobPhase::Failed));
        assert_eq!(phase(&Counts { delayed: true, ..ended(2, 1) }, RULES), None);
        assert_eq!(phase(&Counts { pending: 2, running: 1, ..ended(0, 0) }, RULES), Some(JobPhase::Pending));
        assert_eq!(phase(&Counts { pending: 1, running: 2, ..ended(0, 0) }, RULES), None);
    }
}
