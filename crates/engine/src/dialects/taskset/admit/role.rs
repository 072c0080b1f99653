//! Validates roles: names, policies and dependencies.

use std::collections::HashSet;

use octoflow_manifest::Path;
use octoflow_model::taskset::{CompletionPolicy, RetryPolicy, RoleSpec, TaskSet};
use serde_json::Value;

use super::name_of;
use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape,
    },
    expr::nearest,
    graph::{self, TieBreak},
};

/// Reports parts of a role that lack a required field. If there are any, returns the TaskSet without them, so that the
/// rest can be checked.
pub(super) fn complete(manifest: &Value, broken: &[Path], report: &mut Findings) -> Option<Value> {
    let mut readable = None;
    let lists = [("eventPolicy", &["event", "action"][..]), ("dependsOn", &["role"])];
    for (index, role) in manifest["spec"]["roles"].as_array().into_iter().flatten().enumerate() {
        let role_at = place(index);
        for (list, fields) in lists {
            let list_at = role_at.join(list);
            let lacks = |part: &Value| part.is_object() && fields.iter().any(|field| part[*field].is_null());
            let parts = role[list].as_array().into_iter().flatten().enumerate();
            for (number, part) in parts.filter(|(_, part)| lacks(part)) {
                for field in fields.iter().filter(|field| part[**field].is_null()) {
                    let at = list_at.join(number).join(*field);
                    // An invalid value is already reported.
                    if !broken.contains(&at) {
                        report.error(&At::base(&at), code::REQUIRED, || {
                            format!("roles[{index}].{list}[{number}] must say its {field}")
                        });
                    }
                }
                let copy = readable.get_or_insert_with(|| manifest.clone());
                if let Some(parts) = copy["spec"]["roles"][index][list].as_array_mut() {
                    parts.retain(|part| !lacks(part));
                }
            }
        }
    }
    readable
}

fn place(index: usize) -> Path {
    Path::root().join("spec").join("roles").join(index)
}

pub(super) fn check(report: &mut Findings, at: &At<'_>, set: &TaskSet, manifest: &Value, broken: &[Path]) {
    let mut seen = HashSet::new();
    for (index, role) in set.spec.roles.iter().enumerate() {
        let place = at.index(index);
        let raw = &manifest["spec"]["roles"][index];
        if role.name.is_empty() && broken.contains(&self::place(index).join("name")) {
        } else if role.name.is_empty() {
            report.error(&place.key("name"), code::REQUIRED, || format!("roles[{index}].name is required"));
        } else {
            name_of(report, &place.key("name"), &format!("roles[{index}].name"), &role.name);
            if !seen.insert(role.name.as_str()) {
                report.error(&place.key("name"), code::DUPLICATE_NAME, || {
                    format!("two roles are called '{}'", shape::short(&role.name))
                });
            }
        }
        if raw.get("replicas").is_none() && !broken.contains(&self::place(index).join("replicas")) {
            report.error(&place.key("replicas"), code::REQUIRED, || {
                format!("roles[{index}].replicas is required: from 1 to 10000")
            });
        }
        let policy = self::place(index).join("completionPolicy");
        let wrong = |field: &str| broken.contains(&policy) || broken.contains(&policy.join(field));
        completion(report, &place.key("completionPolicy"), role, raw, &wrong);
        retry(report, &place.key("retryPolicy"), &role.retry_policy);
        dependencies(report, &place.key("dependsOn"), set, index);
    }
    circle(report, at, set);
}

/// Checks a completion policy. `wrong` reports whether a field is invalid, which is already reported.
fn completion(report: &mut Findings, at: &At<'_>, role: &RoleSpec, raw: &Value, wrong: &dyn Fn(&str) -> bool) {
    let CompletionPolicy { max_failed, min_succeeded } = role.completion_policy;
    let (name, replicas) = (shape::short(&role.name), i64::from(role.replicas));
    let given = &raw["completionPolicy"];
    if min_succeeded == 0 && !wrong("minSucceeded") {
        report.error_with(&at.key("minSucceeded"), code::POLICY, || {
            let message =
                format!("role '{name}' must say how many replicas must succeed: minSucceeded from 1 to {replicas}");
            (message, Some("-1 means: it succeeds when all are over and it has not failed".to_owned()))
        });
    }
    if given["maxFailed"].is_null() && !wrong("maxFailed") {
        report.error_with(&at.key("maxFailed"), code::POLICY, || {
            let message =
                format!("role '{name}' must say how many failed replicas make it fail: maxFailed from 1 to {replicas}");
            (message, Some("-1 means: failures alone never make it fail".to_owned()))
        });
    }
    if role.replicas == 0 {
        return;
    }
    for (field, value) in [("minSucceeded", min_succeeded), ("maxFailed", max_failed)] {
        if i64::from(value) > replicas {
            report.error(&at.key(field), code::POLICY, || {
                format!("role '{name}': {field} {value} is more than its {replicas} replicas")
            });
        }
    }
    if max_failed == 0 && !given["maxFailed"].is_null() {
        report.warn(&at.key("maxFailed"), code::POLICY, || {
            format!("role '{name}': maxFailed 0 is read as 1: the first failed replica makes it fail")
        });
    }
    let (most, least) = (i64::from(max_failed.max(1)), i64::from(min_succeeded));
    if max_failed >= 0 && min_succeeded > 0 && most <= replicas && least <= replicas && most + least > replicas + 1 {
        report.warn(at, code::POLICY, || {
            format!(
                "role '{name}': {} succeeded and {} failed replicas decide neither way; it would then end as failed. \
                 maxFailed and minSucceeded together should not be more than {}",
                least - 1,
                replicas - least + 1,
                replicas + 1
            )
        });
    }
}

pub(super) fn retry(report: &mut Findings, at: &At<'_>, policy: &RetryPolicy) {
    let lists = [
        ("retryableExitCodes", policy.retryable_exit_codes.as_deref().unwrap_or_default()),
        ("permanentExitCodes", policy.permanent_exit_codes.as_slice()),
    ];
    for (field, list) in lists {
        let place = at.key(field);
        for (index, codes) in list.iter().enumerate() {
            if codes.bounds().is_none_or(|(first, last)| first < 0 || last > 255) {
                report.error(&place.index(index), code::POLICY, || {
                    format!("{field}[{index}] is no exit code from 0 to 255 and no range of them such as 1-127")
                });
            }
        }
    }
}

fn dependencies(report: &mut Findings, at: &At<'_>, set: &TaskSet, index: usize) {
    let own = &set.spec.roles[index];
    for (place, dependency) in own.depends_on.iter().enumerate() {
        let name = dependency.role();
        let names = || set.spec.roles.iter().map(|role| role.name.as_str());
        if !names().any(|other| other == name) {
            report.error_with(&at.index(place), code::UNKNOWN_TASK, || {
                let message = format!("role '{}' waits for '{}', which is not a role", own.name, shape::short(name));
                (message, nearest(name, names()).map(|near| format!("did you mean `{near}`?")))
            });
        }
    }
}

/// Refuses roles that wait for each other: they would wait for ever.
fn circle(report: &mut Findings, at: &At<'_>, set: &TaskSet) {
    let roles = &set.spec.roles;
    let place = |name: &str| roles.iter().position(|role| role.name == name);
    let needs = |index: usize| roles[index].depends_on.iter().filter_map(|dependency| place(dependency.role()));
    let waits = graph::sort(roles.len(), TieBreak::Arrival, needs).open;
    if let Some(first) = waits.iter().position(|open| *open > 0) {
        let names: Vec<&str> =
            roles.iter().zip(&waits).filter(|(_, open)| **open > 0).map(|(role, _)| role.name.as_str()).collect();
        report.error(&at.index(first).key("dependsOn"), code::CYCLE, || {
            format!("these roles wait for each other in a circle: {}", shape::short(&names.join(", ")))
        });
    }
}
