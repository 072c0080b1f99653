//! The document against the table of routes: nothing is missing, and everything in it can be called.

use std::collections::HashSet;

use super::*;

/// Whatever a value refers to, with where the reference stands.
fn references(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                match inner.as_str() {
                    Some(text) if name == "$ref" => found.push((at.to_owned(), text.to_owned())),
                    _ => references(inner, &format!("{at}/{name}"), found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, at, found)),
        _ => {}
    }
}

#[test]
fn every_route_is_an_operation_that_can_be_called() {
    let routes = route::all();
    let document = document(&routes);
    let mut ids = HashSet::new();
    for route in routes.iter().filter(|route| !route.operation.refuses) {
        let name = format!("{} {}", route.method, route.path);
        let operation = &document["paths"][place(&route.path)][route.method.as_str().to_ascii_lowercase()];
        assert!(operation.is_object(), "{name} is not in the document");
        assert!(!route.operation.summary.is_empty(), "{name} does not say what it does: add .about(…) to its row");
        assert!(!route.operation.answers.is_empty(), "{name} does not say what it gives: add .gives(…) to its row");
        assert!(ids.insert(operation["operationId"].to_string()), "{name} has the id of another");
        let parameters = operation["parameters"].as_array().unwrap();
        for part in parts(&route.path) {
            let known =
                parameters.iter().any(|one| one["in"] == "path" && one["name"] == part && one["required"] == true);
            assert!(known, "{name} does not describe `{part}` of its path");
        }
        let mut seen = HashSet::new();
        for one in parameters {
            assert!(seen.insert((one["in"].as_str(), one["name"].as_str())), "{name} describes {one} twice");
        }
        assert_eq!(operation["security"].as_array().unwrap().is_empty(), route.need == Need::Nothing, "{name}");
        let writes = matches!(route.method.as_str(), "PUT" | "PATCH");
        let bodiless = ["/suspend", "/resume"].iter().any(|end| route.path.ends_with(end));
        assert!(!writes || bodiless || operation["requestBody"].is_object(), "{name} does not say what it takes");
    }
    let operations: usize =
        document["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(operations, routes.iter().filter(|route| !route.operation.refuses).count(), "nothing but routes");
}

#[test]
fn only_what_is_of_other_projects_is_left_out() {
    let routes = route::all();
    for route in routes.iter().filter(|route| route.operation.refuses) {
        let foreign = ["event-sources", "sensors", "upload-artifacts"].iter().any(|word| route.path.contains(word));
        assert!(foreign, "{} {} is left out of the document", route.method, route.path);
    }
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let whole = document(&route::all());
    let mut found = Vec::new();
    references(&whole, "", &mut found);
    assert!(found.len() > 1000, "{}", found.len());
    for (at, reference) in found {
        let target = reference.strip_prefix('#').and_then(|pointer| whole.pointer(pointer));
        assert!(target.is_some(), "{at} refers to {reference}");
    }
}
