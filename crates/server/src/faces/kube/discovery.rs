//! API discovery: groups, versions and kinds with their verbs, in the classic and in the aggregated form.

use octoflow_control::registry::{Kind, kinds};
use serde_json::{Value, json};

use super::{accept, verbs};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
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
    for Group { name, version, .. } in groups() {
        if !name.is_empty() {
            table
                .get(format!("/apis/{name}"), Need::Token, move |_| async move { Ok(answer::json(&group(name))) })
                .about("The versions of a group")
                .gives(named("APIGroup"));
        }
        let path = if name.is_empty() { format!("/api/{version}") } else { format!("/apis/{name}/{version}") };
        table
            .get(path, Need::Token, move |_| async move { Ok(answer::json(&resources(name, version))) })
            .about("The kinds of a group")
            .gives(named("APIResourceList"));
    }
}

/// Group in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    name: &'static str,
    version: &'static str,
    /// True if it is only an alias of other groups: requests find their kinds, but no list names it.
    is_alias: bool,
}

/// Returns each group and each alias once, with its version.
fn groups() -> Vec<Group> {
    groups_of(kinds::all())
}

fn groups_of(kinds: impl Iterator<Item = &'static Kind> + Clone) -> Vec<Group> {
    let real = |kind: &'static Kind| Group { name: kind.group, version: kind.version, is_alias: false };
    let mut groups: Vec<Group> = kinds.clone().map(real).collect();
    let owned = groups.clone();
    for kind in kinds {
        let fresh =
            |name: &&&'static str| !owned.iter().any(|group| (group.name, group.version) == (**name, kind.version));
        groups.extend(
            kind.aliases.iter().filter(fresh).map(|name| Group { is_alias: true, ..Group { name, ..real(kind) } }),
        );
    }
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Returns the listed groups, without aliases.
fn listed_groups() -> impl Iterator<Item = Group> {
    groups().into_iter().filter(|group| !group.is_alias)
}

/// Returns the listed groups as names with versions.
pub(super) fn group_versions() -> Vec<(&'static str, &'static str)> {
    listed_groups().map(|group| (group.name, group.version)).collect()
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
    let named: Vec<Value> = listed_groups().filter(|told| !told.name.is_empty()).map(|told| group(told.name)).collect();
    Ok(answer::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named})))
}

fn group(name: &str) -> Value {
    let versions: Vec<&str> = groups().iter().filter(|group| group.name == name).map(|group| group.version).collect();
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

/// Returns the kinds of a group: its own, then those it is an alias of.
fn of(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    found_in(kinds::all(), group, version)
}

fn found_in(
    kinds: impl Iterator<Item = &'static Kind> + Clone,
    group: &str,
    version: &str,
) -> impl Iterator<Item = &'static Kind> {
    let here = kinds.filter(move |kind| kind.version == version);
    here.clone().filter(move |kind| kind.group == group).chain(here.filter(move |kind| kind.aliases.contains(&group)))
}

/// Subresource.
struct Part {
    name: &'static str,
    /// Group, version and kind, if they differ from those of the object.
    other: Option<(&'static str, &'static str, &'static str)>,
    verbs: &'static [&'static str],
}

fn parts(kind: &Kind) -> Vec<Part> {
    let mut parts = Vec::new();
    if kind.name == "Pod" {
        parts.push(Part { name: "eviction", other: Some(("policy", "v1", "Eviction")), verbs: &["create"] });
        parts.push(Part { name: "log", other: None, verbs: &["get"] });
    }
    if kind.has_status {
        let verbs: &[&str] = if kind.name == "Node" { &["get", "patch"] } else { &["get"] };
        parts.push(Part { name: "status", other: None, verbs });
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
            "verbs": verbs(kind), "shortNames": kind.short, "categories": kind.categories,
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

/// Returns the aggregated form, if the client asks for it.
fn aggregated(call: &Call, core: bool) -> Option<Answer> {
    let version = accept::accepted(call).into_iter().filter(accept::MediaType::json).find_map(|media| {
        let known = media.parameter("as") == Some("APIGroupDiscoveryList")
            && media.parameter("g") == Some("apidiscovery.k8s.io");
        match media.parameter("v").filter(|_| known) {
            Some("v2") => Some(Some(("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"))),
            Some("v2beta1") => {
                Some(Some(("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList")))
            }
            // The client prefers the classic form.
            None if media.parameter("as").is_none() => Some(None),
            _ => None,
        }
    });
    let (version, media_type) = version.flatten()?;
    let items: Vec<Value> = listed_groups()
        .filter(|group| group.name.is_empty() == core)
        .map(|Group { name, version, .. }| {
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
        "categories": kind.categories, "subresources": parts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static BORROWER: Kind =
        Kind { aliases: &["argoproj.io", "shared.example"], ..Kind::new("a.example", "v1alpha1", "A") };
    static OTHER: Kind = Kind { aliases: &["shared.example"], ..Kind::new("b.example", "v1alpha1", "B") };

    #[test]
    fn kinds_share_an_alias_which_may_be_a_group_of_its_own() {
        let workflow = kinds::find("argoproj.io", "Workflow").unwrap();
        let table = || [workflow, &BORROWER, &OTHER].into_iter();
        let groups: Vec<(&str, bool)> = groups_of(table()).iter().map(|group| (group.name, group.is_alias)).collect();
        let wanted = [("a.example", false), ("argoproj.io", false), ("b.example", false), ("shared.example", true)];
        assert_eq!(groups, wanted, "each is a path once");
        let found = |group| found_in(table(), group, "v1alpha1").map(|kind| kind.name).collect::<Vec<_>>();
        assert_eq!(found("argoproj.io"), ["Workflow", "A"]);
        assert_eq!(found("shared.example"), ["A", "B"]);
        assert_eq!(found("b.example"), ["B"]);
    }

    #[test]
    fn an_alias_leads_to_its_kind_and_no_list_leads_to_the_alias() {
        let set = kinds::find("octopus.openi.pcl.cn", "TaskSet").unwrap();
        let alias = set.aliases[0];
        assert!(groups().iter().any(|group| group.name == alias && group.is_alias));
        assert!(listed_groups().all(|group| group.name != alias));
        assert_eq!(of(alias, set.version).collect::<Vec<_>>(), [set]);
    }
}
