//! Validates policies: what they are about, that no two of a list are about the same, and their timeouts.

use std::collections::BTreeSet;

use octoflow_manifest::Path;
use octoflow_model::volcano::{Action, Event, Policy, TaskSpec};

use super::{is_broken, is_duration};
use crate::admit::{
    code,
    findings::{At, Findings},
};

/// Checks one list of policies: of a task, or of the job.
pub(super) fn check(report: &mut Findings, at: &At<'_>, policies: &[Policy], task: Option<&TaskSpec>, broken: &[Path]) {
    let (mut events, mut codes) = (BTreeSet::new(), BTreeSet::new());
    let any = policies.iter().position(|policy| policy.all_events().any(|event| event == Event::Any));
    if let Some(index) = any {
        let other = policies.len() > 1 || policies[index].all_events().count() > 1;
        if other {
            report.error(&at.index(index), code::POLICY, || {
                "`*` is every event, so no other policy or event can stand beside it".to_owned()
            });
        }
    }
    for (index, policy) in policies.iter().enumerate() {
        let place = at.index(index);
        let named = policy.all_events().next().is_some();
        match (named, policy.exit_code) {
            (true, Some(_)) => report.error(&place, code::POLICY, || {
                format!("policies[{index}] is about events and about an exit code; it can be about one of them only")
            }),
            // An event that the field check has refused was meant.
            (false, None) if is_broken(broken, &place) => {}
            (false, None) => {
                report.error(&place, code::POLICY, || format!("policies[{index}] must name an event or an exit code"))
            }
            (false, Some(0)) => report.error(&place.key("exitCode"), code::POLICY, || {
                "exit code 0 is success, which no policy can be about".to_owned()
            }),
            (true, None) | (false, Some(_)) => {}
        }
        for event in policy.all_events() {
            if !events.insert(event) {
                report.error(&place, code::POLICY, || {
                    format!("two policies of one list are about the event {}", event.word())
                });
            }
            never(report, &place, event, policy, task);
        }
        if let Some(exit) = policy.exit_code.filter(|exit| !codes.insert(*exit)) {
            report.error(&place.key("exitCode"), code::POLICY, || {
                format!("two policies of one list are about the exit code {exit}")
            });
        }
        if let Some(text) = &policy.timeout {
            is_duration(report, &place.key("timeout"), text);
        }
        let whole = task.is_some_and(|task| task.partition_policy.is_none());
        if policy.action == Some(Action::RestartPartition) && whole {
            report.warn(&place.key("action"), code::POLICY, || {
                "the task has no partitions, so RestartPartition restarts one pod".to_owned()
            });
        }
    }
}

/// Warns about events that are never raised.
fn never(report: &mut Findings, at: &At<'_>, event: Event, policy: &Policy, task: Option<&TaskSpec>) {
    let why = match event {
        Event::PodPending if policy.timeout.is_none() => "PodPending counts with a timeout only",
        Event::Unknown => "Unknown is never raised here: pods that find no room wait, and explain says why",
        Event::JobUpdated if task.is_some() => "JobUpdated is about no pod: it counts in the policies of the Job only",
        Event::PodFailed
        | Event::PodEvicted
        | Event::PodPending
        | Event::TaskCompleted
        | Event::TaskFailed
        | Event::JobUpdated
        | Event::Any => return,
    };
    report.warn(at, code::POLICY, || why.to_owned());
}
