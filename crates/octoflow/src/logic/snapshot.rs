//! A run as it stands at one moment: the object people would see, with exact times, and why it waits.

use octoflow_engine::{
    Engine,
    argo::{Run, explain::explain_with, status},
};
use octoflow_model::{NodeIx, Time, argo::Role};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub object: Value,
    /// In order of creation.
    pub nodes: Vec<Node>,
    /// Who waits, and why.
    pub reasons: Vec<(String, String)>,
    pub began: Option<Time>,
    pub ended: Option<Time>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub name: String,
    pub display: String,
    /// As `status.nodes` has it.
    pub value: Value,
    pub started: Time,
    pub finished: Option<Time>,
    pub attempts: usize,
}

impl Snapshot {
    pub(crate) fn take(run: &Run, engine: &Engine) -> Self {
        let object = status::object(run);
        let state = &run.state;
        let mut nodes: Vec<Node> = (0..state.nodes.len())
            .map(|at| {
                let at = NodeIx(u32::try_from(at).expect("a run has fewer nodes than this"));
                let node = state.node(at);
                Node {
                    name: node.name.to_string(),
                    display: state.display_of(at).to_owned(),
                    value: object["status"]["nodes"][state.id_of(at)].clone(),
                    started: node.started,
                    finished: node.finished,
                    attempts: 0,
                }
            })
            .collect();
        for node in &state.nodes {
            if let (Role::Attempt(_), Some(parent)) = (&node.role, node.parent) {
                nodes[parent.at()].attempts += 1;
            }
        }
        let reasons = explain_with(run, Some(engine.scheduler()), Some(engine.locks()));
        let reasons = reasons.into_iter().map(|why| (why.node, why.reason.to_string())).collect();
        Self { object, nodes, reasons, began: state.began, ended: state.ended }
    }

    /// Of a run that was never there.
    pub(crate) fn nothing() -> Self {
        Self { object: Value::Null, nodes: Vec::new(), reasons: Vec::new(), began: None, ended: None }
    }

    pub(crate) fn phase(&self) -> &str {
        self.object["status"]["phase"].as_str().unwrap_or_default()
    }

    /// The display name of a node by its id.
    pub(crate) fn by_id(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.value["id"] == id)
    }
}
