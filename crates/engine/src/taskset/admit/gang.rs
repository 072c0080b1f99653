//! Gangs: the PodGroups that roles name, and whether their members can ever be there together.

use std::collections::BTreeMap;

use octoflow_model::taskset::{GANG_ANNOTATION, TaskSet};

use super::super::program::gang_name;
use crate::{
    argo::admit::Surroundings,
    code,
    report::{At, Report},
    shape,
};

/// How many members each PodGroup that is there wants together.
pub(super) fn check(
    report: &mut Report,
    at: &At<'_>,
    set: &TaskSet,
    namespace: &str,
    others: &dyn Surroundings,
) -> BTreeMap<String, u32> {
    let mut groups = BTreeMap::new();
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
    }
    groups
}
