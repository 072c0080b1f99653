//! A compiled TaskSet: replicas numbered across roles, policies resolved, dependent roles linked. Immutable.

use std::sync::Arc;

use octoflow_model::{
    podspec::Container,
    submission::{GroupDetails, Stored},
    task::Resources,
    taskset::{
        Action, Condition, Event, EventPolicy, ExitCodes, GANG_ANNOTATION, RetryPolicy, RoleSpec, TaskSet, TaskSetSpec,
    },
};
use serde::Deserialize;
use serde_json::Value;

use crate::pod::together;

/// Maximum number of replicas of a TaskSet: a manifest must not be able to exhaust memory.
pub const MAX_REPLICAS: u32 = 100_000;

#[derive(Debug)]
pub struct Program {
    pub set: TaskSet,
    pub roles: Vec<Plan>,
    /// Number of replicas of all roles.
    pub replicas: u32,
}

/// One role, resolved.
#[derive(Debug)]
pub struct Plan {
    /// Number of its first replica.
    pub first: u32,
    pub count: u32,
    /// Number of failures that make it fail; `None` if failures alone never do.
    pub max_failed: Option<u32>,
    /// Number of successes that make it succeed; `None` if it succeeds by not failing.
    pub min_succeeded: Option<u32>,
    /// Event policies, in order of evaluation.
    pub events: Vec<EventPolicy>,
    /// Dependencies: roles and the conditions they must reach before it starts.
    pub after: Vec<(usize, Condition)>,
    /// Dependents: roles that wait for it.
    pub before: Vec<usize>,
    pub resources: Resources,
    pub priority: i32,
    pub gang: Option<GangPlan>,
}

/// The gang of a role's pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangPlan {
    pub name: Arc<str>,
    /// True if there is a PodGroup, which other TaskSets may belong to as well.
    pub shared: bool,
    pub least: u32,
    /// What its PodGroup says beside.
    pub details: Arc<GroupDetails>,
}

impl Program {
    /// Compiles a manifest. `Err` is a sentence; an admitted manifest always compiles.
    pub fn compile(manifest: &Value, stored: &Stored) -> Result<Self, String> {
        let set = TaskSet::deserialize(manifest).map_err(|error| format!("the TaskSet cannot be read: {error}"))?;
        let place = |name: &str| set.spec.roles.iter().position(|role| role.name == name);
        let mut roles: Vec<Plan> = Vec::with_capacity(set.spec.roles.len());
        let mut first = 0u32;
        for role in &set.spec.roles {
            let mut after = Vec::new();
            for dependency in &role.depends_on {
                let at = place(dependency.role()).ok_or_else(|| {
                    format!("role '{}' waits for '{}', which is not there", role.name, dependency.role())
                })?;
                after.push((at, dependency.condition()));
            }
            roles.push(plan(&set.spec, role, first, after));
            first = first
                .checked_add(role.replicas)
                .filter(|all| *all <= MAX_REPLICAS)
                .ok_or_else(|| format!("more than {MAX_REPLICAS} replicas"))?;
        }
        for at in 0..roles.len() {
            for (up, _) in roles[at].after.clone() {
                roles[up].before.push(at);
            }
        }
        let gangs: Vec<Option<GangPlan>> = set.spec.roles.iter().map(|role| gang(&set.spec, role, stored)).collect();
        roles.iter_mut().zip(gangs).for_each(|(plan, gang)| plan.gang = gang);
        Ok(Self { roles, replicas: first, set })
    }

    /// Returns the roles in the same gang, including this one.
    pub fn gang_mates(&self, role: usize) -> impl Iterator<Item = usize> + '_ {
        let gang = self.roles[role].gang.as_ref();
        let mates = self.roles.iter().enumerate().filter(move |(_, plan)| gang.is_some() && plan.gang.as_ref() == gang);
        mates.map(|(at, _)| at)
    }

    /// Returns the role of a replica.
    pub fn role_of(&self, replica: u32) -> usize {
        self.roles.partition_point(|plan| plan.first <= replica) - 1
    }

    /// Returns the index of a replica within its role.
    pub fn index_of(&self, replica: u32) -> u32 {
        replica - self.roles[self.role_of(replica)].first
    }

    pub fn spec(&self, role: usize) -> &RoleSpec {
        &self.set.spec.roles[role]
    }
}

fn plan(set: &TaskSetSpec, role: &RoleSpec, first: u32, after: Vec<(usize, Condition)>) -> Plan {
    let policy = role.completion_policy;
    let pod = &role.template.spec;
    let plain = |list: &'static str| -> Vec<&Container> {
        let list = if list == "init" { &pod.init_containers } else { &pod.containers };
        list.iter().map(|container| &container.container).collect()
    };
    Plan {
        first,
        count: role.replicas,
        // Zero tolerance means that the first failure decides, not that none does.
        max_failed: u32::try_from(policy.max_failed).ok().map(|most| most.max(1)),
        min_succeeded: u32::try_from(policy.min_succeeded).ok(),
        events: resolved(&role.event_policy),
        after,
        before: Vec::new(),
        resources: together(plain("init").into_iter(), plain("main").into_iter()),
        priority: pod.priority.or(set.priority).unwrap_or(0),
        gang: None,
    }
}

/// Returns the event policies of a role: those given, and the implied one for failure.
fn resolved(given: &[EventPolicy]) -> Vec<EventPolicy> {
    let mut events = given.to_vec();
    let speaks_of_failure = |policy: &EventPolicy| matches!(policy.event, Event::RoleFailed | Event::RoleCompleted);
    if !events.iter().any(speaks_of_failure) {
        events.push(EventPolicy { event: Event::RoleFailed, action: Action::TaskSetFailed });
    }
    events
}

/// Returns the gang named on the role's pods. Its size is its PodGroup's `minMember`, else all members in this TaskSet.
fn gang(set: &TaskSetSpec, role: &RoleSpec, stored: &Stored) -> Option<GangPlan> {
    let name = gang_name(role)?;
    let members = || set.roles.iter().filter(|other| gang_name(other) == Some(name)).map(|other| other.replicas);
    let least = stored.groups.get(name).copied().unwrap_or_else(|| members().fold(0, u32::saturating_add));
    let details = Arc::new(stored.group_details.get(name).cloned().unwrap_or_default());
    Some(GangPlan { name: name.into(), shared: stored.groups.contains_key(name), least, details })
}

/// Returns the PodGroup that a role's pods name.
pub fn gang_name(role: &RoleSpec) -> Option<&str> {
    role.template.metadata.annotations.get(GANG_ANNOTATION).map(String::as_str).filter(|name| !name.is_empty())
}

/// Reports whether the policy allows a retry after this exit code, regardless of the retry count.
pub fn is_retryable(policy: &RetryPolicy, code: Option<i32>) -> bool {
    // A lost pod has no exit code, and its loss says nothing about the work itself.
    let Some(code) = code else { return true };
    let listed = |codes: &[ExitCodes]| codes.iter().any(|codes| codes.holds(code));
    policy.retryable_exit_codes.as_deref().is_none_or(listed) && !listed(&policy.permanent_exit_codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_role_fails_the_whole_unless_somebody_speaks_of_its_end() {
        let policy = |event, action| EventPolicy { event, action };
        let implied = policy(Event::RoleFailed, Action::TaskSetFailed);
        assert_eq!(resolved(&[]), [implied]);
        let success = policy(Event::RoleSucceeded, Action::TaskSetSucceeded);
        assert_eq!(resolved(&[success]), [success, implied]);
        let end = policy(Event::RoleCompleted, Action::NoAction);
        assert_eq!(resolved(&[end]), [end]);
    }

    #[test]
    fn exit_codes_say_what_is_worth_another_try() {
        let read = |text: &str| serde_json::from_str::<RetryPolicy>(text).unwrap();
        let open = read("{}");
        assert!(is_retryable(&open, Some(1)) && is_retryable(&open, None));
        let only = read(r#"{"retryableExitCodes": [137, "140-150"]}"#);
        assert!(is_retryable(&only, Some(137)) && is_retryable(&only, Some(143)));
        assert!(!is_retryable(&only, Some(1)) && is_retryable(&only, None));
        let never = read(r#"{"permanentExitCodes": ["2-3"]}"#);
        assert!(!is_retryable(&never, Some(2)) && is_retryable(&never, Some(4)));
    }
}
