//! PriorityClasses as the scheduler reads them.

use octoflow_manifest::{Path, Problem};
use serde_json::Value;

use super::fields;
use crate::{
    admit::{
        code,
        shape::{self, code::OUT_OF_RANGE},
    },
    kinds::ErrorsAndWarnings,
    schedule::spec::ClassSpec,
};

/// Higher values are for the classes of the system, as in Kubernetes.
const MAX_VALUE: i64 = 1_000_000_000;

/// A class as its object describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassObject {
    pub spec: ClassSpec,
    pub is_default: bool,
}

/// Reads a class that was admitted.
pub fn class(object: &Value) -> ClassObject {
    let value = object["value"].as_i64().unwrap_or(0).clamp(i64::from(i32::MIN), MAX_VALUE);
    let spec =
        ClassSpec { value: i32::try_from(value).unwrap_or(i32::MAX), preempts: object["preemptionPolicy"] != "Never" };
    ClassObject { spec, is_default: is_default_class(object) }
}

pub fn is_default_class(object: &Value) -> bool {
    object["globalDefault"] == true
}

/// Returns the problem of a default class beside another one.
pub fn second_default(other: &str) -> Problem {
    let message = format!("PriorityClass `{other}` is the default already, and there can be one");
    Problem::error(code::QUEUE, message).path(Path::root().join("globalDefault"))
}

pub(super) fn check(object: &Value) -> ErrorsAndWarnings {
    let checked = shape::check(object, &fields::PRIORITY_CLASS);
    let (mut problems, warnings) = (checked.problems, checked.warnings);
    let at = Path::root().join("value");
    match checked.value["value"].as_i64() {
        None if problems.iter().all(|problem| problem.path.as_ref() != Some(&at)) => {
            problems.push(Problem::error(code::REQUIRED, "value is required: the priority of its tasks").path(at));
        }
        Some(value) if value > MAX_VALUE => {
            let message = format!("{value} is larger than {MAX_VALUE}; higher priorities are reserved");
            problems.push(Problem::error(OUT_OF_RANGE, message).path(at));
        }
        None | Some(_) => {}
    }
    (problems, warnings)
}
