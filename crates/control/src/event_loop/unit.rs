//! The control unit of an attempt at a run: an object that its pods belong to. It comes and goes in the commits in which the
//! attempt does. What it holds, the run says.

use octoflow_engine::{
    Run,
    kinds::{self, Kind},
};
use octoflow_model::mark::Ownership;
use octoflow_store::Change;
use serde_json::Value;

/// The kind every control unit is of.
pub(crate) const KIND: &Kind = &kinds::core::CONFIG_MAP;

/// The unit of an attempt is there from here on, or no more.
pub(super) fn change(run: &Run, attempt: u32, there: bool) -> Vec<Change> {
    let Some(unit) = run.unit(attempt) else { return Vec::new() };
    let kind = KIND.key.to_owned();
    let text = |field: &str| unit["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name, uid) = (text("namespace"), text("name"), text("uid"));
    if !there {
        return vec![Change::DeleteObject { kind, namespace, name }];
    }
    let body = unit.to_string().into_bytes();
    let owners = Ownership::of(&unit["metadata"]).owner_uids();
    vec![
        Change::PutObject { kind: kind.clone(), namespace: namespace.clone(), name: name.clone(), uid, body },
        Change::SetOwners { kind, namespace, name, owners, deleting: false },
    ]
}

/// The uid of the run that an object is the control unit of.
pub(crate) fn owner(object: &Value) -> Option<&str> {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let text = |owner: &Value, field: &str| owner[field].as_str().unwrap_or_default().to_owned();
    let has_units = |owner: &&Value| {
        let kind = kinds::find(kinds::group_of(&text(owner, "apiVersion")), &text(owner, "kind"));
        kind.and_then(|kind| kind.dialect()).is_some_and(|dialect| dialect.has_units) && owner["controller"] == true
    };
    owners.find(has_units)?["uid"].as_str()
}
