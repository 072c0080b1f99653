//! Verdicts: success or failure of a role by its completion policy, and of the whole by the event policies of its
//! roles. Pure functions of counts and policies; the caller records a verdict, which never changes.

use octoflow_model::taskset::{Action, Event, RolePhase, SummaryState};

use super::{
    program::{Plan, Program},
    run::{Role, Verdict},
};

/// Returns the verdict on a role, once there is one. Success is tested first.
pub(super) fn role(plan: &Plan, role: &Role, is_final: u32) -> Option<Verdict> {
    let verdict = |succeeded, message: String| Some(Verdict { succeeded, message, last: false });
    let (succeeded, failed, count) = (role.succeeded, role.failed, plan.count);
    if let Some(least) = plan.min_succeeded.filter(|least| succeeded >= *least) {
        return verdict(true, format!("{succeeded} of {count} replicas succeeded, {least} are enough"));
    }
    if let Some(most) = plan.max_failed.filter(|most| failed >= *most) {
        return verdict(false, format!("{failed} of {count} replicas failed, {most} are too many"));
    }
    if is_final < count {
        return None;
    }
    match plan.min_succeeded {
        None => verdict(
            true,
            format!("all replicas are over and {failed} of {count} failed, which the completion policy allows"),
        ),
        Some(least) => verdict(
            false,
            format!(
                "all replicas are over, {succeeded} of {count} succeeded and {failed} failed: neither minSucceeded {least} \
                 nor maxFailed decides, so the role has failed"
            ),
        ),
    }
}

/// Returns the verdict on the whole, once there is one: the first role in manifest order whose end has an action
/// decides; when all roles are over and none has, all must have succeeded.
pub(super) fn set(program: &Program, roles: &[Role]) -> Option<(bool, String)> {
    for (at, (plan, role)) in program.roles.iter().zip(roles).enumerate() {
        if role.phase != RolePhase::Completed {
            continue;
        }
        let well = role.summary == SummaryState::Succeeded;
        let own = if well { Event::RoleSucceeded } else { Event::RoleFailed };
        // An event without an action does not prevent later rules from deciding.
        let deciding = plan.events.iter().find(|policy| {
            (policy.event == own || policy.event == Event::RoleCompleted) && policy.action != Action::NoAction
        });
        let Some(policy) = deciding else { continue };
        let succeeded = match policy.action {
            Action::TaskSetSucceeded => true,
            Action::TaskSetFailed | Action::NoAction => false,
            Action::TaskSetCompleted => well,
        };
        let (name, word) = (&program.spec(at).name, if well { "succeeded" } else { "failed" });
        return Some((succeeded, format!("role '{name}' {word}: {}", role.summary_message)));
    }
    if roles.iter().any(|role| role.phase != RolePhase::Completed) {
        return None;
    }
    let bad = roles.iter().position(|role| role.summary != SummaryState::Succeeded);
    Some(match bad {
        None => (true, "all roles succeeded".to_owned()),
        Some(at) => {
            let (name, why) = (&program.spec(at).name, &roles[at].summary_message);
            (false, format!("all roles are over and role '{name}' failed: {why}"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(count: u32, max_failed: Option<u32>, min_succeeded: Option<u32>) -> Plan {
        Plan {
            first: 0,
            count,
            max_failed,
            min_succeeded,
            events: Vec::new(),
            after: Vec::new(),
            before: Vec::new(),
            resources: octoflow_model::task::Resources::default(),
            priority: 0,
            gang: None,
        }
    }

    fn verdict(plan: &Plan, succeeded: u32, failed: u32) -> Option<bool> {
        role(plan, &Role { succeeded, failed, ..Role::default() }, succeeded + failed).map(|verdict| verdict.succeeded)
    }

    #[test]
    fn ts07_success_is_asked_for_first() {
        assert_eq!(verdict(&plan(3, Some(1), Some(2)), 2, 1), Some(true));
        assert_eq!(verdict(&plan(3, Some(1), Some(2)), 1, 1), Some(false));
        assert_eq!(verdict(&plan(3, Some(2), Some(2)), 1, 1), None);
    }

    #[test]
    fn what_can_no_longer_be_decided_has_failed() {
        assert_eq!(verdict(&plan(3, Some(3), Some(2)), 1, 2), Some(false));
        assert_eq!(verdict(&plan(2, None, Some(2)), 1, 1), Some(false));
    }

    #[test]
    fn a_criterion_can_be_turned_off() {
        assert_eq!(verdict(&plan(2, Some(2), None), 1, 1), Some(true));
        assert_eq!(verdict(&plan(2, Some(1), None), 1, 1), Some(false));
        assert_eq!(verdict(&plan(2, None, Some(1)), 0, 1), None);
        assert_eq!(verdict(&plan(2, None, None), 0, 2), Some(true));
    }
}
