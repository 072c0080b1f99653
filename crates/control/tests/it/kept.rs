//! Lists and watches of kept objects, longer than what is read of them at a time.

use octoflow_control::registry::{ListOptions, Listing, Registry};
use serde_json::{Value, json};

use super::registry::{create, kind, registry};

fn names(items: &[Value]) -> Vec<String> {
    let text = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
    items.iter().map(|item| format!("{}/{}", text(item, "namespace"), text(item, "name"))).collect()
}

/// The list in pages of so many objects.
fn pages(registry: &Registry, limit: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let options = ListOptions { limit: Some(limit), after, ..ListOptions::default() };
        let Listing { items, next, .. } = registry.list(kind("ConfigMap"), &options).unwrap();
        assert!(items.len() <= limit);
        all.extend(names(&items));
        match next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

#[test]
fn a_list_is_whole_and_in_order_however_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    for namespace in ["a", "a-b"] {
        create(&registry, "Namespace", json!({"metadata": {"name": namespace}})).unwrap();
    }
    // Three of them are more than what is read at a time.
    let text = "x".repeat(600_000);
    let kept = [("a", "one"), ("a", "two"), ("a-b", "one"), ("default", "one"), ("default", "two")];
    for (namespace, name) in kept {
        let map = json!({"metadata": {"name": name, "namespace": namespace}, "data": {"k": text}});
        create(&registry, "ConfigMap", map).unwrap();
    }
    let expected: Vec<String> = kept.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    for limit in [1, 2, 4, 5, 6] {
        assert_eq!(pages(&registry, limit), expected, "{limit} at a time");
    }
    let whole = registry.list(kind("ConfigMap"), &ListOptions::default()).unwrap();
    assert_eq!((names(&whole.items), whole.next), (expected, None));
    assert_eq!(whole.revision, registry.revision().unwrap());
    registry.close().unwrap();
}

#[test]
fn a_watch_begins_with_everything_and_goes_on_with_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    // More than a watch holds names of at a time.
    let expected: Vec<String> = (0..205).map(|number| format!("map-{number:03}")).collect();
    for name in &expected {
        create(&registry, "ConfigMap", super::registry::map(name)).unwrap();
    }
    let mut watch = registry.watch(kind("ConfigMap"), ListOptions::default(), None).unwrap();
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let told: Vec<String> = watch.poll().unwrap().iter().map(|event| name(&event.object)).collect();
    assert_eq!(told, expected);
    assert!(watch.is_quiet());
    create(&registry, "ConfigMap", super::registry::map("last")).unwrap();
    let told: Vec<String> = watch.poll().unwrap().iter().map(|event| name(&event.object)).collect();
    assert_eq!(told, ["last"]);
    registry.close().unwrap();
}
