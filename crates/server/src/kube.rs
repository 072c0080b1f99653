//! The Kubernetes-style face: every kind of the registry under /api and /apis, in the words kubectl expects.
//! It maps requests to the registry and answers to Kubernetes shapes; it decides nothing about objects itself.

use axum::http::Method;
use octoflow_control::registry::{KINDS, Keeping, Kind};

use crate::{
    area::Area,
    route::{Face, Need, Table},
};

mod accept;
mod body;
mod cells;
mod delete;
mod discovery;
mod form;
mod list;
mod log;
mod openapi;
mod options;
mod patch;
mod proto;
mod strategic;
mod strict;
mod table;
mod target;
mod warning;
mod watch;
mod whole;
mod wire;
mod write;

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Kube);
    discovery::routes(&mut table);
    openapi::routes(&mut table);
    for kind in &KINDS {
        roots(kind).iter().for_each(|root| add(&mut table, kind, root));
    }
    table
}

/// `/api/v1`, or `/apis/GROUP/VERSION`.
fn root(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    }
}

/// Everywhere a kind is found: where it belongs, and under the other name of its group.
fn roots(kind: &Kind) -> Vec<String> {
    let alias = kind.alias.map(|alias| format!("/apis/{alias}/{}", kind.version));
    [root(kind)].into_iter().chain(alias).collect()
}

/// What reading and writing a kind needs.
fn needs(kind: &Kind) -> (Need, Need) {
    match kind.name {
        // Whoever may read a secret may do what it opens.
        "Secret" => (Need::WriteJob, Need::WriteJob),
        "Namespace" | "Node" => (Need::ReadJob, Need::Admin),
        _ => (Need::ReadJob, Need::WriteJob),
    }
}

/// The words of what can be done with a kind.
fn verbs(kind: &Kind) -> &'static [&'static str] {
    match (kind.keeping, kind.name) {
        // What a pod's run makes of its end is that run's business.
        (_, "Pod") => &["delete", "get", "list", "watch"],
        (Keeping::View, _) => &["get", "list", "watch"],
        (_, "Namespace") => &["create", "delete", "get", "list", "patch", "update", "watch"],
        _ => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }
}

/// Whether the kind has a status that others write than its owner.
fn has_status(kind: &Kind) -> bool {
    matches!(
        kind.name,
        "Workflow" | "CronWorkflow" | "TaskSet" | "PersistentVolumeClaim" | "Namespace" | "Pod" | "Node"
    )
}

/// Cluster workflow templates are there for those of every namespace to use, so all of them may read them.
fn area(kind: &Kind, otherwise: Area) -> Area {
    if kind.name == "ClusterWorkflowTemplate" { Area::Shared } else { otherwise }
}

fn add(table: &mut Table, kind: &'static Kind, root: &str) {
    let (plural, (read, write)) = (kind.plural, needs(kind));
    let everywhere = format!("{root}/{plural}");
    let collection =
        if kind.namespaced { format!("{root}/namespaces/{{namespace}}/{plural}") } else { everywhere.clone() };
    // Paths of other kinds go on behind the name of a namespace, so that part has one name for all.
    let name = if kind.name == "Namespace" { "{namespace}" } else { "{name}" };
    let one = format!("{collection}/{name}");

    if kind.namespaced {
        table.get(&everywhere, read, move |call| list::collection(call, kind));
    }
    let collected = table.get(&collection, read, move |call| list::collection(call, kind));
    collected.area = area(kind, collected.area);
    let found = table.get(&one, read, move |call| list::one(call, kind));
    found.area = area(kind, found.area);
    if has_status(kind) {
        table.get(format!("{one}/status"), read, move |call| list::one(call, kind));
    }
    if kind.name == "Pod" {
        table.get(format!("{one}/log"), read, move |call| log::log(call, kind));
        table.add(Method::POST, format!("{one}/eviction"), write, move |call| delete::evict(call, kind));
    }
    let can = |verb| verbs(kind).contains(&verb);
    if can("create") {
        table.add(Method::POST, &collection, write, move |call| write::create(call, kind));
    }
    if can("update") {
        table.add(Method::PUT, &one, write, move |call| write::replace(call, kind));
    }
    if can("patch") {
        table.add(Method::PATCH, &one, write, move |call| patch::patch(call, kind));
    }
    if can("delete") {
        table.add(Method::DELETE, &one, write, move |call| delete::one(call, kind));
    }
    if can("deletecollection") {
        table.add(Method::DELETE, &collection, write, move |call| delete::collection(call, kind));
    }
}
