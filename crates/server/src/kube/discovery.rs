//! What there is: groups, versions and kinds with their verbs, in the old form of many answers and the new form of two.

use octoflow_control::registry::{KINDS, Kind};
use serde_json::{Value, json};

use super::{accept, has_status, root, verbs};
use crate::{
    answer::{self, Answer},
    call::Call,
    fault::Fault,
    openapi::operation::Content,
    route::{Need, Table},
};

pub(super) fn routes(table: &mut Table) {
    let named = |word: &str| {
        Content::json(
            json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": [word, "APIGroupDiscoveryList"]}}}),
        )
    };
    for path in ["/api", "/api/"] {
        table.get(path, Need::Token, core).about("Versions of the core group").gives(named("APIVersions"));
    }
    for path in ["/apis", "/apis/"] {
        table.get(path, Need::Token, all).about("All groups with their versions").gives(named("APIGroupList"));
    }
    for (name, version) in groups() {
        if !name.is_empty() {
            table
                .get(format!("/apis/{name}"), Need::Token, move |_| async move { Ok(answer::json(&group(name))) })
                .about("The versions of a group")
                .gives(named("APIGroup"));
        }
        let path = KINDS.iter().find(|kind| kind.group == name && kind.version == version).map(root);
        let path = path.expect("groups are those of the kinds");
        table
            .get(path, Need::Token, move |_| async move { Ok(answer::json(&resources(name, version))) })
            .about("The kinds of a group")
            .gives(named("APIResourceList"));
    }
    // Whoever asks at the other name of a group finds the same there, though no list leads to it.
    for kind in KINDS.iter() {
        let Some(alias) = kind.alias else { continue };
        let (path, version) = (format!("/apis/{alias}"), kind.version);
        table
            .get(&path, Need::Token, move |_| async move { Ok(answer::json(&self::named(alias, &[version]))) })
            .about("The versions of a group")
            .gives(named("APIGroup"));
        let path = format!("{path}/{version}");
        table
            .get(
                path,
                Need::Token,
                move |_| async move { Ok(answer::json(&listed(alias, version, [kind].into_iter()))) },
            )
            .about("The kinds of a group")
            .gives(named("APIResourceList"));
    }
}

/// Each group with its version.
pub(super) fn groups() -> Vec<(&'static str, &'static str)> {
    let mut groups: Vec<_> = KINDS.iter().map(|kind| (kind.group, kind.version)).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

async fn core(call: Call) -> Result<Answer, Fault> {
    if let Some(answer) = aggregated(&call, true) {
        return Ok(answer);
    }
    Ok(answer::json(&json!({
        "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
    })))
}

async fn all(call: Call) -> Result<Answer, Fault> {
    if let Some(answer) = aggregated(&call, false) {
        return Ok(answer);
    }
    let named: Vec<Value> = groups().iter().filter(|(name, _)| !name.is_empty()).map(|(name, _)| group(name)).collect();
    Ok(answer::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named})))
}

fn group(name: &str) -> Value {
    let versions: Vec<&str> =
        groups().iter().filter(|(group, _)| *group == name).map(|(_, version)| *version).collect();
    named(name, &versions)
}

fn named(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0],
    })
}

fn of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(move |kind| kind.group == group && kind.version == version)
}

/// Words that stand for several kinds.
fn categories(kind: &Kind) -> &'static [&'static str] {
    match kind.name {
        "Workflow" | "CronWorkflow" => &["all", "argo"],
        "TaskSet" => &["all"],
        "WorkflowTemplate" | "ClusterWorkflowTemplate" | "WorkflowEventBinding" => &["argo"],
        "Pod" => &["all"],
        _ => &[],
    }
}

/// A part of an object with a path of its own.
struct Part {
    name: &'static str,
    /// Its group, version and kind, where they are not those of the whole.
    other: Option<(&'static str, &'static str, &'static str)>,
    verbs: &'static [&'static str],
}

fn parts(kind: &Kind) -> Vec<Part> {
    let mut parts = Vec::new();
    if kind.name == "Pod" {
        parts.push(Part { name: "eviction", other: Some(("policy", "v1", "Eviction")), verbs: &["create"] });
        parts.push(Part { name: "log", other: None, verbs: &["get"] });
    }
    if has_status(kind) {
        parts.push(Part { name: "status", other: None, verbs: &["get"] });
    }
    parts
}

fn resources(group: &str, version: &str) -> Value {
    listed(group, version, of(group, version))
}

fn listed(group: &str, version: &str, kinds: impl Iterator<Item = &'static Kind>) -> Value {
    let mut resources = Vec::new();
    for kind in kinds {
        resources.push(json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.name,
            "verbs": verbs(kind), "shortNames": kind.short, "categories": categories(kind),
        }));
        for part in parts(kind) {
            let mut row = json!({
                "name": format!("{}/{}", kind.plural, part.name), "singularName": "", "namespaced": kind.namespaced,
                "kind": kind.name, "verbs": part.verbs,
            });
            if let Some((group, version, name)) = part.other {
                (row["group"], row["version"], row["kind"]) = (json!(group), json!(version), json!(name));
            }
            resources.push(row);
        }
    }
    let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources})
}

/// Everything at once, for those who ask for it.
fn aggregated(call: &Call, core: bool) -> Option<Answer> {
    let version = accept::wishes(call).into_iter().filter(accept::Wish::json).find_map(|wish| {
        let known =
            wish.parameter("as") == Some("APIGroupDiscoveryList") && wish.parameter("g") == Some("apidiscovery.k8s.io");
        match wish.parameter("v").filter(|_| known) {
            Some("v2") => Some(Some(("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"))),
            Some("v2beta1") => {
                Some(Some(("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")))
            }
            // Whoever likes the plain form better gets it.
            None if wish.parameter("as").is_none() => Some(None),
            _ => None,
        }
    });
    let (version, media_type) = version.flatten()?;
    let groups = groups();
    let items: Vec<Value> = groups
        .iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, version)| {
            let resources: Vec<Value> = of(name, version).map(aggregated_kind).collect();
            json!({
                "metadata": {"name": name, "creationTimestamp": null},
                "versions": [{"version": version, "freshness": "Current", "resources": resources}],
            })
        })
        .collect();
    let body = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": items,
    });
    let mut answer = answer::json(&body);
    let media_type = axum::http::HeaderValue::from_static(media_type);
    answer.headers_mut().insert(axum::http::header::CONTENT_TYPE, media_type);
    Some(answer)
}

fn aggregated_kind(kind: &'static Kind) -> Value {
    let response = json!({"group": kind.group, "version": kind.version, "kind": kind.name});
    let parts: Vec<Value> = parts(kind)
        .iter()
        .map(|part| {
            let (group, version, name) = part.other.unwrap_or((kind.group, kind.version, kind.name));
            let response = json!({"group": group, "version": version, "kind": name});
            json!({"subresource": part.name, "responseKind": response, "verbs": part.verbs})
        })
        .collect();
    json!({
        "resource": kind.plural, "responseKind": response,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": verbs(kind), "shortNames": kind.short,
        "categories": categories(kind), "subresources": parts,
    })
}
