//! Finds the kind of a manifest by group and name, or explains why there is none and what to do.

use octoflow_manifest::{Path, Problem};
use serde_json::Value;

use super::{Kind, TABLE, all, find, group_of, loadable, refused};
use crate::{
    admit::{code, shape},
    dialects::dialect::Dialect,
    expr::nearest,
};

/// Returns the kind of an object by its `apiVersion` and `kind`. Without an `apiVersion` the name must suffice;
/// admission requires it later. A name that exists in another group only is refused: such an object has other fields.
pub fn of_manifest(object: &Value) -> Result<&'static Kind, Box<Problem>> {
    if !object.is_object() {
        let message = "expected a mapping with `apiVersion`, `kind`, `metadata` and `spec`";
        return Err(Box::new(Problem::error(shape::code::WRONG_TYPE, message).path(Path::root())));
    }
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (version, name) = (text("apiVersion"), text("kind"));
    let found = if version.is_empty() { alone(name) } else { find(group_of(version), name) };
    found.ok_or_else(|| Box::new(unknown(version, name)))
}

/// Returns the dialect that runs an object, or why none does.
pub fn dialect_of(object: &Value) -> Result<&'static Dialect, Box<Problem>> {
    let kind = of_manifest(object)?;
    kind.dialect().ok_or_else(|| {
        let at = Path::root().join("kind");
        Box::new(match kind.not_run {
            Some((why, what)) => Problem::error(code::KIND, why).path(at).help(what),
            None => Problem::error(code::KIND, format!("a {} does not run", kind.name)).path(at),
        })
    })
}

/// Returns the kind of this name, if only one group has it.
fn alone(name: &str) -> Option<&'static Kind> {
    let mut found = all().filter(|kind| kind.name == name && kind.alternate_of.is_none());
    found.next().filter(|_| found.next().is_none())
}

/// Reports whether a kind is refused by name in a group, although another group may have one of that name.
fn refused_in(group: &str, name: &str) -> bool {
    TABLE.iter().any(|rows| rows.refused.contains(&name) && rows.kinds.iter().any(|kind| kind.is_of(group)))
}

fn unknown(version: &str, name: &str) -> Problem {
    let wrong = |message: String| Problem::error(code::KIND, message).path(Path::root().join("kind"));
    let groups: Vec<String> = all().filter(|kind| kind.name == name).map(Kind::api_version).collect();
    if name.is_empty() {
        return wrong("kind is required".to_owned()).help("write `kind: Workflow`");
    }
    if refused_in(group_of(version), name) {
        return wrong(format!("kind {name} is not supported yet"));
    }
    if !groups.is_empty() {
        let message = match version {
            "" => format!("several groups have a kind {name}, and apiVersion is missing"),
            version => format!("apiVersion `{}` is not known for kind {name}", shape::short(version)),
        };
        let problem = Problem::error(code::KIND, message).path(Path::root().join("apiVersion"));
        return problem.help(format!("write `apiVersion: {}`", groups.join("` or `apiVersion: ")));
    }
    if refused().any(|other| other == name) {
        return wrong(format!("kind {name} is not supported yet"));
    }
    let group = group_of(version);
    let problem = if group.is_empty() || all().any(|kind| kind.is_of(group)) {
        wrong(format!("kind `{}` is not known here", shape::short(name)))
    } else {
        wrong(format!("kind `{}` of group `{}` is not known here", shape::short(name), shape::short(group)))
    };
    let known: Vec<&str> = loadable().map(|kind| kind.word).collect();
    match nearest(name, loadable().map(|kind| kind.name)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("known kinds: {}", known.join(", "))),
    }
}
