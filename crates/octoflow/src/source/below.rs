//! Runs that a run has made, shown as part of it. Reads objects; it asks the table of kinds which runs make others.

use anyhow::Result;
use octoflow_engine::{dialect, view::RunBelow};
use octoflow_store::RunRow;
use serde_json::Value;

use super::{
    Source, kind_of,
    workflow::{Workflow, with_nodes},
};

/// Most runs whose nodes are added to a tree; of the others only what their parent knows is shown.
const MAX_SHOWN: usize = 200;

/// Reports whether runs of this kind consist of the runs that they make.
pub(crate) fn may_have(row: &RunRow) -> bool {
    kind_of(row).dialect().is_some_and(|dialect| dialect.view.consists_of_runs())
}

/// Returns the runs that a run has made.
pub(crate) fn runs(object: &Value) -> Vec<RunBelow> {
    dialect::of(object).map(|dialect| dialect.view.runs_below(object)).unwrap_or_default()
}

/// Returns the object with the nodes of the runs it has made below its own.
pub(crate) fn with_nodes_below(source: &dyn Source, row: &RunRow, object: Value) -> Result<Value> {
    if !may_have(row) {
        return Ok(object);
    }
    let mut whole = with_nodes(&object).into_owned();
    for one in runs(&object).into_iter().take(MAX_SHOWN) {
        let Some(child) = source.look_up(&row.namespace, Some(one.kind), &one.name)? else { continue };
        let child = source.object(&child)?;
        let child = with_nodes(&child);
        let root = Workflow::new(&child).name();
        let named = |id: &str| if id == root { one.node.clone() } else { format!("{}/{id}", one.node) };
        let nodes = child["status"]["nodes"].as_object().into_iter().flatten();
        for (id, node) in nodes.filter(|(id, _)| *id != root) {
            let mut node = node.clone();
            node["id"] = Value::from(named(id));
            node["boundaryID"] = Value::from(named(node["boundaryID"].as_str().unwrap_or_default()));
            whole["status"]["nodes"][named(id)] = node;
        }
    }
    Ok(whole)
}
