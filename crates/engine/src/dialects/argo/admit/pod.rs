//! Checks templates with several containers: names, dependencies, mounts, and which containers may have inputs and
//! outputs. The containers themselves are checked like any other.

use std::collections::{HashMap, HashSet};

use octoflow_model::{
    argo::{ContainerSet, UserContainer},
    podspec::Container,
};

use super::{
    Subject, code,
    findings::{At, Findings},
    index::{TemplateEntry, TemplateType},
    name, template, volume,
};
use crate::{
    admit::shape::{self, short},
    dialects::argo::{
        pod::{MAIN, name_of},
        task,
    },
    graph,
};

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>) {
    let mut seen: HashSet<&str> = HashSet::new();
    if let (TemplateType::ContainerSet, Some(set)) = (entry.kind, &entry.template.container_set) {
        let at = at.key("containerSet");
        check_set(subject, report, &at, entry, set, &mut seen);
    } else {
        let script = entry.template.script.as_ref().map(|script| &script.container);
        let main = entry.template.container.as_ref().or(script);
        seen.insert(main.and_then(|container| container.name.as_deref()).unwrap_or(MAIN));
    }
    for (field, list) in [("initContainers", &entry.template.init_containers), ("sidecars", &entry.template.sidecars)] {
        if list.is_empty() {
            continue;
        }
        let at = at.key(field);
        if matches!(entry.kind, TemplateType::Steps | TemplateType::Dag | TemplateType::Suspend) {
            report.warn(&at, shape::code::IGNORED, || {
                format!(
                    "templates.{}.{field} has no effect: a {} template runs no container",
                    entry.label,
                    entry.kind.word()
                )
            });
        }
        helpers(subject, report, &at, entry, field, list, &mut seen);
    }
    if let Some(patch) = &entry.template.pod_spec_patch {
        check_patch(report, &at.key("podSpecPatch"), &format!("templates.{}.podSpecPatch", entry.label), &patch.0);
    }
}

/// Checks a pod spec patch without variables, which can be parsed before the run.
pub(super) fn check_patch(report: &mut Findings, at: &At<'_>, of: &str, patch: &str) {
    if !name::has_variables(patch)
        && let Some(why) = task::patch_flaw(patch)
    {
        report.error(at, shape::code::WRONG_TYPE, || format!("{of} {why}"));
    }
}

fn helpers<'e>(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
    field: &str,
    list: &'e [UserContainer],
    seen: &mut HashSet<&'e str>,
) {
    for (index, helper) in list.iter().enumerate() {
        let place = at.index(index);
        let of = format!("{field}[{index}]");
        container(report, &place, entry, &of, &helper.container, seen);
        volume::mounts(subject, report, &place, entry, &of, &helper.container.volume_mounts);
    }
}

fn container<'e>(
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
    of: &str,
    container: &'e Container,
    seen: &mut HashSet<&'e str>,
) {
    let of = || format!("templates.{}.{of}", entry.label);
    let name = container.name.as_deref().unwrap_or_default();
    name::one(report, &at.key("name"), &of, name::NameRule::Field, name, seen);
    if container.image.is_empty() {
        report.error(at, code::REQUIRED, || format!("{}.image may not be empty", of()));
    }
}

fn check_set<'e>(
    subject: &Subject<'_>,
    report: &mut Findings,
    at: &At<'_>,
    entry: &TemplateEntry<'_>,
    set: &'e ContainerSet,
    seen: &mut HashSet<&'e str>,
) {
    let label = &entry.label;
    let list = at.key("containers");
    if set.containers.is_empty() {
        report.error(&list, code::REQUIRED, || {
            format!("templates.{label}.containerSet.containers must have at least one container")
        });
    }
    for (index, one) in set.containers.iter().enumerate() {
        let place = list.index(index);
        let of = format!("containerSet.containers[{index}]");
        container(report, &place, entry, &of, &one.container, seen);
        volume::mounts(subject, report, &place, entry, &of, &one.container.volume_mounts);
    }
    volume::mounts(subject, report, at, entry, "containerSet", &set.volume_mounts);
    dependencies(report, &list, entry, set);
    let outputs = &entry.template.outputs;
    let wants_main =
        !entry.template.inputs.artifacts.is_empty() || !outputs.parameters.is_empty() || !outputs.artifacts.is_empty();
    if wants_main && !set.containers.is_empty() && !set.containers.iter().any(|one| name_of(one) == MAIN) {
        report.error_with(&list, code::ARTIFACT, || {
            (
                format!(
                    "templates.{label}.containerSet.containers must have a container named \"main\" for input or output"
                ),
                Some(
                    "only `main` may have input artifacts and outputs; call the container that has them so".to_owned(),
                ),
            )
        });
    }
    if let Some(retry) = &set.retry_strategy {
        let at = at.key("retryStrategy");
        let of = |field: &str| format!("templates.{label}.containerSet.retryStrategy.{field}");
        if let Some(retries) = &retry.retries
            && !template::number_from(retries, 0)
        {
            report.error(&at.key("retries"), code::RETRY, || {
                format!("{} '{}' must be a whole number from 0, or a variable", of("retries"), short(&retries.0))
            });
        }
        if let Some(pause) = &retry.duration {
            template::span(report, &at.key("duration"), &|| of("duration"), pause);
        }
    }
}

fn dependencies(report: &mut Findings, list: &At<'_>, entry: &TemplateEntry<'_>, set: &ContainerSet) {
    let label = &entry.label;
    let names: Vec<&str> = set.containers.iter().map(name_of).collect();
    if names.iter().any(|name| name::has_variables(name)) {
        return;
    }
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let mut needs = vec![Vec::new(); names.len()];
    for (index, one) in set.containers.iter().enumerate() {
        let item = list.index(index);
        let at = item.key("dependencies");
        for (number, needed) in one.dependencies.iter().enumerate() {
            match places.get(needed.as_str()) {
                Some(place) if !needs[index].contains(place) => needs[index].push(*place),
                Some(_) => {}
                None if name::has_variables(needed) => {}
                None => report.error_with(&at.index(number), code::UNKNOWN_TASK, || {
                    (
                        format!(
                            "templates.{label}.containerSet.containers.{} dependency '{}' not defined",
                            names[index],
                            short(needed)
                        ),
                        name::suggest(needed, names.iter().copied()),
                    )
                }),
            }
        }
    }
    if let Some(circle) = graph::find_cycle(&needs) {
        let shown: Vec<&str> = circle.iter().map(|at| names[*at]).collect();
        let item = list.index(circle[0]);
        report.error(&item.key("dependencies"), code::CYCLE, || {
            format!(
                "templates.{label}.containerSet.containers dependency cycle detected: {}",
                graph::show_cycle(&shown)
            )
        });
    }
}
