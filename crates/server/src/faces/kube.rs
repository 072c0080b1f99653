//! The Kubernetes-style face: every kind of the registry under /api and /apis, as kubectl expects it. It maps requests
//! to the registry and results to Kubernetes formats; it decides nothing about objects itself.

use axum::http::Method;
use octoflow_control::registry::{Kind, Storage, kinds, schema_name};
use serde_json::json;

use crate::{
    faces::openapi::{
        operation::{Content, refer},
        shapes,
    },
    gate::area::Area,
    route::{Face, Need, Route, Table},
};

mod accept;
mod body;
mod delete;
mod discovery;
mod form;
mod kept;
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
mod watch;
mod whole;
mod wire;
mod write;

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Kube);
    discovery::routes(&mut table);
    openapi::routes(&mut table);
    for kind in kinds::all() {
        roots(kind).iter().for_each(|root| add(&mut table, kind, root));
    }
    table
}

/// Returns `/api/v1`, or `/apis/GROUP/VERSION`.
fn root(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    }
}

/// Returns every path prefix of a kind: its own, and those of its group's aliases.
fn roots(kind: &Kind) -> Vec<String> {
    let aliases = kind.aliases.iter().map(|alias| format!("/apis/{alias}/{}", kind.version));
    [root(kind)].into_iter().chain(aliases).collect()
}

/// Returns the privileges for reading and writing a kind.
fn needs(kind: &Kind) -> (Need, Need) {
    match kind.name {
        // Reading a secret grants what the secret grants.
        "Secret" => (Need::WriteJob, Need::WriteJob),
        "Feature" => (Need::ReadFeature, Need::WriteFeature),
        // What all namespaces share.
        "Namespace" | "Node" | "Queue" | "PriorityClass" => (Need::ReadJob, Need::Admin),
        _ => (Need::ReadJob, Need::WriteJob),
    }
}

/// Returns the supported verbs of a kind.
fn verbs(kind: &Kind) -> &'static [&'static str] {
    match (kind.storage, kind.name) {
        // A pod can be deleted, but its run decides what follows from that.
        (_, "Pod") => &["delete", "get", "list", "watch"],
        (_, "Node") => &["get", "list", "patch", "update", "watch"],
        (Storage::View, _) => &["get", "list", "watch"],
        (_, "Namespace") => &["create", "delete", "get", "list", "patch", "update", "watch"],
        _ => &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }
}

/// Cluster templates, queues and classes may be used from every namespace, so every caller may read them.
fn area(kind: &Kind, otherwise: Area) -> Area {
    let shared = kind.is_template || matches!(kind.name, "Queue" | "PriorityClass");
    if shared && !kind.namespaced { Area::Shared } else { otherwise }
}

fn add(table: &mut Table, kind: &'static Kind, root: &str) {
    let (plural, (read, write)) = (kind.plural, needs(kind));
    let everywhere = format!("{root}/{plural}");
    let collection =
        if kind.namespaced { format!("{root}/namespaces/{{namespace}}/{plural}") } else { everywhere.clone() };
    // Paths of other kinds continue behind the name of a namespace, so that segment has one name for all.
    let name = if kind.name == "Namespace" { "{namespace}" } else { "{name}" };
    let one = format!("{collection}/{name}");

    let describe = |route: &mut Route, action: &str, verb: &str| {
        let of = json!({"group": kind.group, "version": kind.version, "kind": kind.name});
        route
            .about(format!("{verb} {plural}"))
            .extension("x-kubernetes-action", json!(action))
            .extension("x-kubernetes-group-version-kind", of);
    };
    let (object, list) = (|| Content::json(shapes::object(kind)), || Content::json(shapes::list(kind)));
    let whole = refer(&schema_name(kind));
    let written = || Content::json(whole.clone()).or("application/yaml", Some(whole.clone()));
    let deleting = || Content::json(refer("meta.DeleteOptions"));

    if kind.namespaced {
        let route = table.get(&everywhere, read, move |call| list::collection(call, kind));
        describe(route.query(options::LIST).gives(list()), "list", "Lists or watches all");
    }
    let route = table.get(&collection, read, move |call| list::collection(call, kind));
    route.area = area(kind, route.area);
    describe(route.query(options::LIST).gives(list()), "list", "Lists or watches");
    let route = table.get(&one, read, move |call| list::one(call, kind));
    route.area = area(kind, route.area);
    describe(route.query(options::GET).gives(object()), "get", "Reads one of the");
    if kind.has_status {
        let route = table.get(format!("{one}/status"), read, move |call| list::one(call, kind));
        describe(route.query(options::GET).gives(object()), "get", "Reads the status of one of the");
    }
    if kind.name == "Pod" {
        let route = table.get(format!("{one}/log"), read, move |call| log::log(call, kind));
        describe(route.query(log::OPTIONS).gives(Content::text()), "connect", "Reads what one wrote of the");
        let route = table.add(Method::POST, format!("{one}/eviction"), write, move |call| delete::evict(call, kind));
        let eviction = json!({"type": "object", "properties": {
            "kind": {"type": "string", "enum": ["Eviction"]}, "apiVersion": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "deleteOptions": refer("meta.DeleteOptions"),
        }});
        let route = route.may_take(Content::json(eviction)).gives_as(201, Content::json(shapes::status()));
        describe(route.query(options::DELETE), "post", "Evicts one of the");
    }
    let can = |verb| verbs(kind).contains(&verb);
    if can("create") {
        let route = table.add(Method::POST, &collection, write, move |call| write::create(call, kind));
        describe(route.query(options::WRITE).takes(written()).gives_as(201, object()), "post", "Creates one of the");
    }
    if can("update") {
        let route = table.add(Method::PUT, &one, write, move |call| write::replace(call, kind));
        describe(route.query(options::WRITE).takes(written()).gives(object()), "put", "Replaces one of the");
    }
    if can("patch") {
        let route = table.add(Method::PATCH, &one, write, move |call| patch::patch(call, kind));
        let route = route.query(options::WRITE).query(patch::OPTIONS).takes(patch::bodies(kind));
        describe(route.gives(object()).gives_as(201, object()), "patch", "Changes or applies one of the");
    }
    if kind.name == "Node" {
        let route =
            table.add(Method::PATCH, format!("{one}/status"), write, move |call| patch::node_capacity(call, kind));
        let route = route.query(options::WRITE).takes(patch::bodies(kind)).gives(object());
        describe(route, "patch", "Declares the capacity of one of the");
    }
    if can("delete") {
        let route = table.add(Method::DELETE, &one, write, move |call| delete::one(call, kind));
        let route = route.query(options::DELETE).may_take(deleting()).gives(Content::json(shapes::deleted(kind)));
        describe(route, "delete", "Deletes one of the");
    }
    if can("deletecollection") {
        let route = table.add(Method::DELETE, &collection, write, move |call| delete::collection(call, kind));
        let route = route.query(options::SELECT).query(options::DELETE).may_take(deleting()).gives(list());
        describe(route, "deletecollection", "Deletes all selected");
    }
}
