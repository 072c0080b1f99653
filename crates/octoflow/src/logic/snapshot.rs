//! A run as it stands at one moment: the object people would see, with exact times, and why it waits.

use octoflow_engine::{
    Engine, Run as AnyRun,
    argo::{Run, explain::explain_with, status},
};
use octoflow_model::{NodeIx, Time, argo::Role};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub object: Value,
    /// In order of creation.
    pub nodes: Vec<SnapshotNode>,
    /// Who waits, and why.
    pub reasons: Vec<(String, String)>,
    pub began: Option<Time>,
    pub ended: Option<Time>,
    phase: String,
    pub message: String,
}

#[derive(Debug)]
pub(crate) struct SnapshotNode {
    pub name: String,
    pub display: String,
    /// As `status.nodes` has it.
    pub value: Value,
    pub started: Time,
    pub finished: Option<Time>,
    pub attempts: usize,
}

impl Snapshot {
    pub(crate) fn take(run: &AnyRun, engine: &Engine) -> Self {
        match run.of::<Run>() {
            Some(workflow) => Self::of_workflow(workflow, engine),
            None => Self::of_other(run, engine),
        }
    }

    /// Of a run that is no workflow: what its object tells, with times in whole seconds.
    fn of_other(run: &AnyRun, engine: &Engine) -> Self {
        let object = run.object();
        let view = run.kind().dialect().map(|dialect| dialect.view);
        let whole = view.map(|view| view.with_nodes(&object).into_owned()).unwrap_or_else(|| object.clone());
        let time = |value: &Value| value.as_str().and_then(Time::parse);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rank = |node: &Value| node["rank"].as_u64().unwrap_or_default();
        let mut listed: Vec<&Value> =
            whole["status"]["nodes"].as_object().into_iter().flatten().map(|(_, node)| node).collect();
        listed.sort_by_key(|node| (text(&node["boundaryID"]), rank(node), text(&node["id"])));
        let node = |value: &Value| SnapshotNode {
            name: text(&value["name"]),
            display: text(&value["displayName"]),
            started: time(&value["startedAt"]).unwrap_or_else(|| run.created()),
            finished: time(&value["finishedAt"]),
            attempts: usize::try_from(value["retries"].as_u64().unwrap_or_default()).unwrap_or_default() + 1,
            value: value.clone(),
        };
        let nodes = listed.into_iter().map(node).collect();
        let reasons = run.explain(Some(engine.scheduler()), Some(engine.locks()));
        Self {
            nodes,
            reasons: reasons.into_iter().map(|why| (why.node, why.reason)).collect(),
            began: Some(run.created()),
            ended: time(&object["status"]["finishedAt"]),
            phase: run.phase().to_owned(),
            message: run.message().to_owned(),
            object,
        }
    }

    fn of_workflow(run: &Run, engine: &Engine) -> Self {
        let object = status::object(run);
        let state = &run.state;
        let mut nodes: Vec<SnapshotNode> = (0..state.nodes.len())
            .map(|at| {
                let at = NodeIx(u32::try_from(at).expect("a run has fewer nodes than this"));
                let node = state.node(at);
                SnapshotNode {
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
        let said = |field: &str| object["status"][field].as_str().unwrap_or_default().to_owned();
        let (phase, message) = (said("phase"), said("message"));
        Self { object, nodes, reasons, began: state.began, ended: state.ended, phase, message }
    }

    /// Of a run that was never there.
    pub(crate) fn nothing() -> Self {
        let (phase, message) = (String::new(), String::new());
        Self { object: Value::Null, nodes: Vec::new(), reasons: Vec::new(), began: None, ended: None, phase, message }
    }

    pub(crate) fn phase(&self) -> &str {
        &self.phase
    }

    /// The display name of a node by its id.
    pub(crate) fn by_id(&self, id: &str) -> Option<&SnapshotNode> {
        self.nodes.iter().find(|node| node.value["id"] == id)
    }
}
