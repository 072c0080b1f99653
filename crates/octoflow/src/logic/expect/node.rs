//! What is expected of one node, or of all nodes of one name.

use super::{Check, count, find, given, plain, span, unknown};
use crate::logic::{notation, snapshot::SnapshotNode, test_document::Located};

pub(super) fn check(check: &mut Check<'_, '_>, name: &str, expected: &Located<'_>) {
    let found = find(check.seen, name);
    let what = |key: &str| format!("nodes.{name}.{key}");
    if let Some(located) = expected.get("count") {
        count(&located, &what("count"), found.len(), check.verdict);
    } else if found.is_empty() {
        let actual = unknown(check.seen, name);
        check.verdict.miss(expected, format!("nodes.{name}"), "a node of this name", actual);
    } else if found.len() > 1 && !name.contains('*') {
        let names: Vec<&str> = found.iter().map(|at| check.seen.nodes[*at].name.as_str()).collect();
        let actual = format!("several: {}; use a full name, or add `count`", names.join(", "));
        check.verdict.miss(expected, format!("nodes.{name}"), "one node of this name", actual);
        return;
    }
    for at in found {
        let node = &check.seen.nodes[at];
        let owner = if node.display == name || node.name == name { name } else { &node.name };
        one(check, node, owner, expected);
    }
}

fn one(check: &mut Check<'_, '_>, node: &SnapshotNode, name: &str, expected: &Located<'_>) {
    if let Some(short) = expected.value.as_str() {
        let (kind, wanted) = notation::node(short);
        phase(check, node, name, expected, wanted);
        let actual = node.value["type"].as_str().unwrap_or_default();
        if let Some(kind) = kind.filter(|kind| *kind != actual) {
            check.verdict.miss(expected, format!("nodes.{name}.type"), kind, actual);
        }
        return;
    }
    let start = check.outcome.start;
    let value = &node.value;
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    for (key, located) in expected.entries() {
        let what = format!("nodes.{name}.{key}");
        match key {
            "phase" => phase(check, node, name, &located, &located.text()),
            "message" | "type" | "name" | "displayName" | "id" | "progress" => check.text(&located, &what, text(key)),
            "template" => {
                let by_reference = plain(&value["templateRef"]["template"]);
                let own = text("templateName");
                check.text(&located, &what, if own.is_empty() { &by_reference } else { own });
            }
            "started" => span(&located, &what, Some(node.started.since(start)), check.verdict),
            "finished" => span(&located, &what, node.finished.map(|at| at.since(start)), check.verdict),
            "duration" => span(&located, &what, node.finished.map(|at| at.since(node.started)), check.verdict),
            "launched" => {
                let launch = given::launch(check, node).map(|launch| launch.at.since(start));
                span(&located, &what, launch, check.verdict);
            }
            "inputs" | "outputs" => check.values(&located, &what, &value[key]),
            "children" | "outbound" => {
                let list = if key == "children" { "children" } else { "outboundNodes" };
                let ids = value[list].as_array().into_iter().flatten().filter_map(|id| id.as_str());
                let children: Vec<&SnapshotNode> = ids.filter_map(|id| check.seen.by_id(id)).collect();
                check.same_names(&located, &what, &children);
            }
            "boundary" => {
                let boundary = check.seen.by_id(text("boundaryID"));
                let wanted = located.text();
                if !boundary.map_or(wanted.is_empty(), |node| node.name == wanted || node.display == wanted) {
                    let actual = boundary.map_or("none", |node| &node.name);
                    check.verdict.miss(&located, what, wanted, actual);
                }
            }
            "flags" => flags(check, node, &what, &located),
            "attempts" => count(&located, &what, node.attempts, check.verdict),
            "given" => given::check(check, node, &what, &located),
            "json" => check.paths(&located, &what, value),
            _ => {}
        }
    }
}

fn phase(check: &mut Check<'_, '_>, node: &SnapshotNode, name: &str, located: &Located<'_>, expected: &str) {
    let actual = node.value["phase"].as_str().unwrap_or_default();
    if expected != actual {
        let told = match node.value["message"].as_str().unwrap_or_default() {
            "" => actual.to_owned(),
            message => format!("{actual}: {message}"),
        };
        check.verdict.miss(located, format!("nodes.{name}.phase"), expected, told);
    }
}

fn flags(check: &mut Check<'_, '_>, node: &SnapshotNode, what: &str, located: &Located<'_>) {
    let set = node.value["nodeFlag"].as_object().into_iter().flatten().filter(|(_, on)| on.as_bool() == Some(true));
    let mut actual: Vec<String> = set.map(|(name, _)| name.clone()).collect();
    let mut expected = located.texts();
    actual.sort_unstable();
    expected.sort_unstable();
    if actual != expected {
        check.verdict.miss(located, what, format!("[{}]", expected.join(", ")), format!("[{}]", actual.join(", ")));
    }
}
