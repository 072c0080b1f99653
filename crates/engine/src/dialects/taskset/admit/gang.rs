//! Validates gangs: the PodGroups that roles name, and whether their members can ever be ready together.

use std::collections::BTreeMap;

use octoflow_model::{
    scalar::spelled,
    submission::GroupDetails,
    taskset::{GANG_ANNOTATION, TaskSet},
};
use serde_json::Value;

use super::super::program::gang_name;
use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape,
    },
    dialects::argo::admit::Catalog,
    graph::{self, TieBreak},
};

/// What is kept of existing PodGroups: `minMember` of each, and what some of them say beside.
pub(super) type Groups = (BTreeMap<String, u32>, BTreeMap<String, GroupDetails>);

/// Checks the gangs; returns what is kept of their PodGroups.
pub(super) fn check(
    report: &mut Findings,
    at: &At<'_>,
    set: &TaskSet,
    namespace: &str,
    others: &dyn Catalog,
) -> Groups {
    let (mut groups, mut details) = (BTreeMap::new(), BTreeMap::new());
    let mut told: Vec<&str> = Vec::new();
    for (index, role) in set.spec.roles.iter().enumerate() {
        let Some(name) = gang_name(role) else { continue };
        let place = at.index(index);
        let template = place.key("template");
        let metadata = template.key("metadata");
        let annotations = metadata.key("annotations");
        let at = annotations.key(GANG_ANNOTATION);
        let waits_for = role.depends_on.iter().find_map(|dependency| {
            set.spec.roles.iter().find(|other| other.name == dependency.role() && gang_name(other) == Some(name))
        });
        if let Some(other) = waits_for {
            report.error_with(&at, code::GANG, || {
                let message = format!(
                    "roles '{}' and '{}' start together as gang '{}', but one waits for the other",
                    role.name,
                    other.name,
                    shape::short(name)
                );
                (message, Some("leave out dependsOn, or give them different PodGroups".to_owned()))
            });
        }
        if told.contains(&name) {
            continue;
        }
        told.push(name);
        let members: u64 = set
            .spec
            .roles
            .iter()
            .filter(|other| gang_name(other) == Some(name))
            .map(|other| u64::from(other.replicas))
            .sum();
        let Some(group) = others.pod_group(namespace, name) else {
            report.warn(&at, code::NOT_LOADED, || {
                format!(
                    "PodGroup '{}' is not loaded in namespace '{namespace}'; its {members} members here start together",
                    shape::short(name)
                )
            });
            continue;
        };
        let least = group["spec"]["minMember"].as_u64().unwrap_or(0);
        if least > members {
            report.warn(&at, code::GANG, || {
                format!(
                    "PodGroup '{}' wants {least} members together and this TaskSet has {members} of them; they wait for \
                     others to come",
                    shape::short(name)
                )
            });
        }
        groups.insert(name.to_owned(), u32::try_from(least).unwrap_or(u32::MAX));
        let beside = details_of(&group["spec"]);
        if beside != GroupDetails::default() {
            details.insert(name.to_owned(), beside);
        }
    }
    circle(report, at, set, &groups);
    (groups, details)
}

fn details_of(spec: &Value) -> GroupDetails {
    let text = |field: &str| spec[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let entries = |field: &str| spec[field].as_object().into_iter().flatten();
    let least = |value: &Value| value.as_u64().map(|least| u32::try_from(least).unwrap_or(u32::MAX));
    GroupDetails {
        queue: text("queue"),
        class: text("priorityClassName"),
        least_of: entries("minTaskMember").filter_map(|(role, value)| Some((role.clone(), least(value)?))).collect(),
        resources: entries("minResources").map(|(name, amount)| (name.clone(), spelled(amount.clone()))).collect(),
    }
}

/// Refuses gangs that wait for each other, or for themselves through a role in between: they would never be complete.
/// The roles of a gang that needs all of them are one vertex here; where they wait for each other directly, that is
/// already reported.
fn circle(report: &mut Findings, at: &At<'_>, set: &TaskSet, groups: &BTreeMap<String, u32>) {
    let roles = &set.spec.roles;
    let members = |name: &str| -> u64 {
        roles.iter().filter(|role| gang_name(role) == Some(name)).map(|role| u64::from(role.replicas)).sum()
    };
    let whole = |index: usize| {
        let name = gang_name(&roles[index])?;
        groups.get(name).is_none_or(|least| u64::from(*least) >= members(name)).then_some(name)
    };
    // The vertex of each role: the first role of its gang.
    let place: Vec<usize> = (0..roles.len())
        .map(|index| {
            let first = whole(index).and_then(|name| (0..index).find(|other| whole(*other) == Some(name)));
            first.unwrap_or(index)
        })
        .collect();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); roles.len()];
    for (index, role) in roles.iter().enumerate() {
        let ups = role.depends_on.iter().filter_map(|dependency| {
            roles.iter().position(|other| other.name == dependency.role()).map(|up| place[up])
        });
        needs[place[index]].extend(ups.filter(|up| *up != place[index]));
    }
    let waits = graph::sort(needs.len(), TieBreak::Arrival, |index| needs[index].iter().copied()).open;
    let stuck = (0..roles.len()).find(|index| waits[*index] > 0 && whole(*index).is_some());
    if let Some(index) = stuck {
        let role_at = at.index(index);
        report.error_with(&role_at.key("template"), code::GANG, || {
            let name = gang_name(&roles[index]).unwrap_or_default();
            let message = format!(
                "gang '{}' can never be complete: a role of it waits for one that waits for another of its roles",
                shape::short(name)
            );
            (message, Some("leave out dependsOn, or give them different PodGroups".to_owned()))
        });
    }
}
