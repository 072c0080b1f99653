//! Renders the run as the object that users and tools see: the manifest with a `status` in Argo's exact shape.
//! A pure projection of the state; it decides nothing.

use octoflow_model::{
    NodeIx, RunPhase,
    argo::{ArtifactValue, InputValues, NodeKind, OutputArtifactValue, OutputValues, Phase, Role},
};
use serde_json::{Map, Value, json};

use self::fields::{FieldWriter, Fields};
use super::{
    garbage, ident,
    node::{Lock, Node},
    refer,
    run::{Run, State},
    usage::{self, ResourceUsage},
};
use crate::run::mark;

mod fields;

/// Renders the whole object: completed metadata, the spec as given, the current status.
pub fn object(run: &Run) -> Value {
    object_of(run, run.manifest())
}

/// Renders the object with only those nodes that `keep` wants, by id and type.
pub fn object_where(run: &Run, keep: &dyn Fn(&str, &str) -> bool) -> Value {
    let mut object = run.manifest();
    complete_metadata(run, &mut object);
    object["status"] = status_where(run, keep);
    object
}

/// Renders the object from a manifest that the caller has parsed already.
pub fn object_of(run: &Run, manifest: Value) -> Value {
    let mut object = manifest;
    complete_metadata(run, &mut object);
    object["status"] = status(run);
    object
}

/// Renders the object without nodes and sums over nodes, so that a run of a million nodes takes as long as one of ten.
pub fn summary(run: &Run) -> Value {
    let mut object = run.manifest();
    complete_metadata(run, &mut object);
    object["status"] = Value::Object(head(run, None));
    object
}

/// Writes the object node by node, for runs too large to be held in memory twice.
pub fn write_object(run: &Run, to: &mut dyn std::io::Write) -> std::io::Result<()> {
    const HOLE: &str = "\"nodes\":{}";
    let mut object = run.manifest();
    complete_metadata(run, &mut object);
    let (usages, whole) = usage::of_all(run);
    object["status"] = Value::Object(head(run, Some(&whole)));
    object["status"]["nodes"] = json!({});
    let status = object["status"].take();
    let text = object.to_string();
    let status = status.to_string();
    let (before, after) = status.split_once(HOLE).expect("the status was given an empty map of nodes");
    let (outer_before, outer_after) =
        text.rsplit_once("\"status\":null").expect("the object was given an empty status");
    write!(to, "{outer_before}\"status\":{before}\"nodes\":{{")?;
    let progress = progress(&run.state);
    let mut text = Vec::new();
    for (at, (share, usage)) in progress.iter().zip(&usages).enumerate() {
        let at = NodeIx(at as u32);
        text.clear();
        if at.0 > 0 {
            text.push(b',');
        }
        let mut fields = FieldWriter::new(&mut text, &run.state.id_of(at));
        render_node(run, at, *share, usage, &mut fields);
        fields.close();
        to.write_all(&text)?;
    }
    write!(to, "}}{after}{outer_after}")
}

fn complete_metadata(run: &Run, object: &mut Value) {
    mark::overlay(object, &run.state.head, &labels(run));
}

/// Returns the run's labels: its own, and the two that tell its phase and completion.
pub fn labels(run: &Run) -> octoflow_model::task::Labels {
    let mut labels = run.state.head.labels.clone();
    labels.insert("workflows.argoproj.io/phase".to_owned(), run.state.phase.word().to_owned());
    labels.insert("workflows.argoproj.io/completed".to_owned(), run.state.finished().to_string());
    labels
}

pub fn status(run: &Run) -> Value {
    status_where(run, &|_, _| true)
}

/// Renders the status with only those nodes that `keep` wants; the others are never rendered.
fn status_where(run: &Run, keep: &dyn Fn(&str, &str) -> bool) -> Value {
    let state = &run.state;
    let progress = progress(state);
    let (usages, whole) = usage::of_all(run);
    let mut status = head(run, Some(&whole));
    let mut nodes = Map::new();
    for (at, own) in state.nodes.iter().enumerate() {
        let id = state.id_of(NodeIx(at as u32));
        if keep(&id, own.kind.word()) {
            nodes.insert(id, node(run, NodeIx(at as u32), progress[at], &usages[at]));
        }
    }
    status.insert("nodes".to_owned(), Value::Object(nodes));
    Value::Object(status)
}

/// Renders the status without nodes.
fn head(run: &Run, usage: Option<&ResourceUsage>) -> Map<String, Value> {
    let state = &run.state;
    let mut status = Map::new();
    status.insert("phase".to_owned(), json!(state.phase.word()));
    let message = state.message_now();
    if !message.is_empty() {
        status.insert("message".to_owned(), json!(message));
    }
    if let Some((message, at)) = state.head.deadlock.as_ref().zip(state.head.deadlock_at) {
        status.insert("deadlock".to_owned(), json!({"message": message, "at": at.to_string()}));
    }
    status.insert("startedAt".to_owned(), json!(state.began.map(|at| at.to_string())));
    status.insert("finishedAt".to_owned(), json!(state.ended.map(|at| at.to_string())));
    status.insert("progress".to_owned(), json!(format!("{}/{}", state.progress.0, state.progress.1)));
    if let Some(seconds) = run.estimate(None) {
        status.insert("estimatedDuration".to_owned(), json!(seconds));
    }
    if let Some(usage) = usage
        && state.nodes.iter().any(|node| node.ran && node.finished.is_some())
    {
        status.insert("resourcesDuration".to_owned(), usage.value());
    }
    status.insert("conditions".to_owned(), conditions(state));
    // Locks require a scan of all nodes, like the usage, so a summary leaves them out.
    if usage.is_some()
        && let Some(locks) = synchronization(run)
    {
        status.insert("synchronization".to_owned(), locks);
    }
    if garbage::is_specified(run) {
        status.insert("artifactGCStatus".to_owned(), json!({"strategiesProcessed": {}}));
    }
    if !run.stored.templates.is_empty() {
        status.insert("storedTemplates".to_owned(), json!(run.stored.templates));
    }
    if let Some(spec) = &run.stored.spec {
        status.insert("storedWorkflowTemplateSpec".to_owned(), spec.clone());
    }
    let outputs = exported(state);
    if outputs.as_object().is_some_and(|outputs| !outputs.is_empty()) {
        status.insert("outputs".to_owned(), outputs);
    }
    status
}

/// Renders the locks that the run and its nodes hold and wait for; `None` if there are none.
fn synchronization(run: &Run) -> Option<Value> {
    let nodes = run.state.nodes.iter().enumerate();
    let nodes = nodes.filter_map(|(at, node)| Some((Some(NodeIx(at as u32)), node.lock.as_deref()?)));
    let all: Vec<(Option<NodeIx>, &Lock)> =
        run.state.lock.as_deref().map(|lock| (None, lock)).into_iter().chain(nodes).collect();
    let mut found = Map::new();
    for kind in ["mutex", "semaphore"] {
        let (mut holding, mut waiting) = (Vec::new(), Vec::new());
        for (node, lock) in &all {
            for claim in lock.claims.iter().filter(|claim| claim.is_mutex() == (kind == "mutex")) {
                let waited = lock.waits.as_ref().filter(|(key, _)| *key == claim.key);
                if lock.held {
                    add_lock(&mut holding, kind, &claim.key, &[run.holder_name(*node)]);
                } else if let Some((key, holders)) = waited {
                    add_lock(&mut waiting, kind, key, holders);
                }
            }
        }
        let mut lists = Map::new();
        for (name, list) in [("holding", holding), ("waiting", waiting)] {
            if !list.is_empty() {
                lists.insert(name.to_owned(), Value::Array(list));
            }
        }
        if !lists.is_empty() {
            found.insert(kind.to_owned(), Value::Object(lists));
        }
    }
    (!found.is_empty()).then_some(Value::Object(found))
}

/// Adds a lock to a list: a mutex has one entry for each holder, a semaphore one entry with all holders.
fn add_lock(list: &mut Vec<Value>, kind: &str, key: &str, holders: &[String]) {
    if kind == "mutex" {
        list.push(json!({"mutex": key, "holder": holders.first()}));
        return;
    }
    let place = match list.iter().position(|entry| entry["semaphore"] == *key) {
        Some(place) => place,
        None => {
            list.push(json!({"semaphore": key, "holders": []}));
            list.len() - 1
        }
    };
    if let Some(known) = list[place]["holders"].as_array_mut() {
        for holder in holders {
            if !known.iter().any(|one| one == holder) {
                known.push(json!(holder));
            }
        }
    }
}

fn conditions(state: &State) -> Value {
    let mut conditions =
        vec![json!({"type": "PodRunning", "status": if state.active_pods > 0 { "True" } else { "False" }})];
    if matches!(state.phase, RunPhase::Succeeded | RunPhase::Failed | RunPhase::Error) {
        conditions.push(json!({"type": "Completed", "status": "True"}));
    }
    if let Some(message) = &state.unmetered {
        conditions.push(json!({"type": "MetricsError", "status": "True", "message": message}));
    }
    Value::Array(conditions)
}

fn exported(state: &State) -> Value {
    let mut outputs = Map::new();
    if !state.exported.is_empty() {
        let list: Vec<Value> =
            state.exported.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        outputs.insert("parameters".to_owned(), Value::Array(list));
    }
    if !state.exported_artifacts.is_empty() {
        let list: Vec<Value> = state.exported_artifacts.values().map(output_artifact).collect();
        outputs.insert("artifacts".to_owned(), Value::Array(list));
    }
    Value::Object(outputs)
}

/// Renders one entry of `status.nodes`.
fn node(run: &Run, at: NodeIx, progress: (u64, u64), usage: &ResourceUsage) -> Value {
    let mut fields = Map::new();
    render_node(run, at, progress, usage, &mut fields);
    Value::Object(fields)
}

/// Renders the fields of a node in the order of their names.
fn render_node(run: &Run, at: NodeIx, progress: (u64, u64), usage: &ResourceUsage, to: &mut impl Fields) {
    let state = &run.state;
    let node = state.node(at);
    let skipped = node.reuse.as_ref().is_some_and(|reuse| reuse.skipped);
    let id = |at: NodeIx| state.id_of(at);
    if let Some(boundary) = node.boundary {
        to.text("boundaryID", &id(boundary));
    }
    if !node.children.is_empty() {
        to.texts("children", node.children.iter().copied().map(id));
    }
    if node.daemoned && !node.phase.fulfilled() {
        to.value("daemoned", json!(true));
    }
    to.text("displayName", state.display_of(at));
    if let Some(seconds) = run.estimate(Some(at)) {
        to.value("estimatedDuration", json!(seconds));
    }
    match node.finished {
        Some(at) => to.text("finishedAt", &at.to_string()),
        None => to.value("finishedAt", Value::Null),
    }
    if let Some(host) = run.host_of(at) {
        to.text("hostNodeName", host);
    }
    to.text("id", &id(at));
    if let Some(inputs) = &node.inputs {
        let mut inputs = input_values(inputs);
        let fetched = node.outputs.as_deref().map_or(&[][..], |outputs| &outputs.fetched);
        for artifact in inputs.get_mut("artifacts").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some((_, found)) = fetched.iter().find(|(name, _)| artifact["name"] == **name) {
                artifact["fetched"] = json!(found);
            }
        }
        to.value("inputs", inputs);
    }
    if let Some(memo) = &node.memo {
        to.value("memoizationStatus", json!({"hit": memo.hit, "key": memo.key, "cacheName": memo.cache}));
    }
    if let Some(message) = &node.message {
        to.text("message", message);
    }
    to.text("name", &node.name);
    if let Some(flag) = flag(node) {
        to.value("nodeFlag", flag);
    }
    if !node.outbound.is_empty() {
        to.texts("outboundNodes", node.outbound.iter().map(id));
    }
    if let Some(outputs) = &node.outputs {
        to.value("outputs", output_values(outputs));
    }
    to.text("phase", if skipped { Phase::Skipped } else { node.phase }.word());
    if node.daemoned {
        to.value("podIP", json!(super::daemon::ADDRESS));
    }
    if let Some(preempted) = state.preempted.get(&at) {
        let last = preempted.at.to_string();
        to.value("preempted", json!({"count": preempted.count, "at": last, "message": preempted.why}));
    }
    if node.kind.executable() || progress.1 > 0 {
        to.text("progress", &format!("{}/{}", progress.0, progress.1));
    }
    if node.finished.is_some() && (node.ran || *usage != ResourceUsage::default()) {
        to.value("resourcesDuration", usage.value());
    }
    to.text("startedAt", &node.started.to_string());
    if let Some((key, _)) = node.lock.as_ref().and_then(|lock| lock.waits.as_ref()) {
        to.value("synchronizationStatus", json!({"waiting": key}));
    }
    if node.kind == NodeKind::Pod && !skipped && node.finished.is_some() {
        to.value("taskResultSynced", json!(true));
    }
    if let Some(template) = node.template.as_deref().filter(|template| !template.contains('#')) {
        match state.reference_of(at) {
            Some(reference) => {
                let mut value = json!({"name": reference.name, "template": reference.template});
                if reference.cluster_scope {
                    value["clusterScope"] = json!(true);
                }
                to.value("templateRef", value);
            }
            None => to.text("templateName", refer::bare(template)),
        }
        match state.caller_scope(at) {
            Some(scope) => to.text("templateScope", scope),
            None => to.text("templateScope", &format!("local/{}", state.head.name)),
        }
    }
    to.text("type", if skipped { NodeKind::Skipped } else { node.kind }.word());
}

fn flag(node: &Node) -> Option<Value> {
    match node.role {
        Role::Attempt(_) => Some(json!({"retried": true})),
        Role::Hook(_) | Role::RunHook(_) | Role::Exit => Some(json!({"hooked": true})),
        Role::Entry | Role::Group(_) | Role::Step { .. } | Role::Task(_) | Role::Item(_) | Role::Container(_) => None,
    }
}

/// Computes the progress of each node: its own for a task, else the sum over its children. Children come after their
/// parents, so one pass from the end adds everything up.
fn progress(state: &State) -> Vec<(u64, u64)> {
    let mut sums = vec![(0, 0); state.nodes.len()];
    for (at, node) in state.nodes.iter().enumerate().rev() {
        let mut whole: (u64, u64) = sums[at];
        if node.kind.executable() {
            let own = node.share();
            whole = (whole.0 + own.0, whole.1 + own.1);
            // A pod shows its own progress; that of its containers counts only for the nodes above it.
            sums[at] = own;
        }
        if let Some(parent) = node.parent {
            sums[parent.at()].0 += whole.0;
            sums[parent.at()].1 += whole.1;
        }
    }
    sums
}

fn input_values(inputs: &InputValues) -> Value {
    let mut fields = parameters(&inputs.parameters);
    let artifacts: Vec<Value> = inputs
        .artifacts
        .iter()
        .map(|artifact| {
            let mut value = json!({"name": artifact.name});
            if let Some(path) = &artifact.path {
                value["path"] = json!(path);
            }
            match &artifact.source {
                ArtifactValue::Raw(data) => value["raw"] = json!({"data": data}),
                ArtifactValue::Stored { artifact, sub_path } => {
                    value["local"] = json!(artifact);
                    if let Some(sub_path) = sub_path {
                        value["subPath"] = json!(sub_path);
                    }
                }
                ArtifactValue::Located { at, sub_path, optional } => {
                    if let Value::Object(place) = json!(at) {
                        value.as_object_mut().expect("an artifact is a mapping").extend(place);
                    }
                    if let Some(sub_path) = sub_path {
                        value["subPath"] = json!(sub_path);
                    }
                    if *optional {
                        value["optional"] = json!(true);
                    }
                }
                ArtifactValue::Absent => value["optional"] = json!(true),
            }
            value
        })
        .collect();
    if !artifacts.is_empty() {
        fields.insert("artifacts".to_owned(), Value::Array(artifacts));
    }
    Value::Object(fields)
}

fn output_values(outputs: &OutputValues) -> Value {
    let mut fields = parameters(&outputs.parameters);
    if !outputs.artifacts.is_empty() {
        fields.insert("artifacts".to_owned(), outputs.artifacts.iter().map(output_artifact).collect());
    }
    if let Some(result) = &outputs.result {
        fields.insert("result".to_owned(), json!(result));
    }
    if let Some(code) = &outputs.exit_code {
        fields.insert("exitCode".to_owned(), json!(code));
    }
    Value::Object(fields)
}

fn parameters(list: &[(String, String)]) -> Map<String, Value> {
    let mut fields = Map::new();
    if !list.is_empty() {
        let list: Vec<Value> = list.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        fields.insert("parameters".to_owned(), Value::Array(list));
    }
    fields
}

fn output_artifact(value: &OutputArtifactValue) -> Value {
    let mut artifact = json!({"name": value.name});
    if let Some(Value::Object(place)) = &value.artifact.noted {
        artifact.as_object_mut().expect("an artifact is a mapping").extend(place.clone());
    }
    let local = octoflow_model::task::StoredArtifact { noted: None, deleted: false, ..value.artifact.clone() };
    artifact["local"] = json!(local);
    if value.artifact.deleted {
        artifact["deleted"] = json!(true);
    }
    if let Some(path) = &value.path {
        artifact["path"] = json!(path);
    }
    artifact
}

/// Returns the pod name of a node, as logs and messages use it.
pub fn pod_name(run: &Run, at: NodeIx) -> String {
    let node = run.state.node(at);
    ident::pod_name(&run.state.head.name, &node.name, node.template.as_deref().unwrap_or_default())
}
