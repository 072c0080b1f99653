//! Admission of PodGroups on their own.

use octoflow_manifest::{Path, Problem};
use serde_json::Value;

use super::{fields, quantities};
use crate::{
    admit::{code, shape},
    kinds::{ErrorsAndWarnings, find, group_of},
};

pub(super) fn check(object: &Value) -> ErrorsAndWarnings {
    let checked = shape::check(object, &fields::POD_GROUP);
    let (mut problems, warnings) = (checked.problems, checked.warnings);
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = find(group_of(version), "PodGroup").filter(|kind| kind.accepts_api_version(version));
    if kind.is_none() {
        let problem = Problem::error(code::KIND, "this apiVersion is not known for kind PodGroup");
        let help = format!("write `apiVersion: {}`", super::POD_GROUP.api_version());
        problems.push(problem.path(Path::root().join("apiVersion")).help(help));
    }
    if object["metadata"]["name"].as_str().is_none_or(str::is_empty) {
        let problem = Problem::error(code::REQUIRED, "metadata.name is required");
        problems.push(problem.path(Path::root().join("metadata")));
    }
    let spec = &object["spec"];
    quantities::read(&spec["minResources"], &Path::root().join("spec").join("minResources"), &mut problems);
    let least_of = spec["minTaskMember"].as_object().into_iter().flatten().filter_map(|(_, least)| least.as_u64());
    let sum = least_of.fold(0u64, u64::saturating_add);
    let least = spec["minMember"].as_u64().unwrap_or(0);
    if sum > least && problems.is_empty() {
        let message = format!("minTaskMember wants {sum} members, more than minMember, which is {least}");
        let problem = Problem::error(code::GANG, message).path(Path::root().join("spec").join("minTaskMember"));
        problems.push(problem.help(format!("write `minMember: {sum}`, or lower minTaskMember")));
    }
    (problems, warnings)
}
