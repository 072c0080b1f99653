//! Large runs with many who look at them: rendered once for all, few at a time, and not at all for lists.

use std::time::Duration;

use octoflow_control::registry::{Fault, ListOptions, Registry, Watch};
use octoflow_engine::Command;
use serde_json::{Value, json};

use super::registry::{create, kind, registry, until};

/// Makes a run with this many nodes that waits to be resumed.
fn wide(registry: &Registry, name: &str, count: usize) {
    let manifest = json!({"metadata": {"name": name}, "spec": {"entrypoint": "main", "templates": [
        {"name": "main", "steps": [
            [{"name": "fan", "template": "leaf", "withSequence": {"count": count}, "when": "1 == 2"}],
            [{"name": "one", "template": "leaf"}], [{"name": "gate", "template": "gate"}],
        ]},
        {"name": "gate", "suspend": {}},
        {"name": "leaf", "container": {"image": "alpine", "command": ["true"]}},
    ]}});
    create(registry, "Workflow", manifest).unwrap();
    until(registry, || {
        let row = registry.find_run(kind("Workflow"), "default", name).unwrap().row;
        registry.trimmed_run(&row).unwrap()["status"]["progress"].as_str().is_some_and(|told| told.starts_with("1/"))
    });
}

fn command(registry: &Registry, name: &str, command: Command) {
    let run = registry.find_run(kind("Workflow"), "default", name).unwrap().run;
    registry.command(run, command).unwrap();
}

fn nodes(object: &Value) -> usize {
    object["status"]["nodes"].as_object().map_or(0, serde_json::Map::len)
}

fn watches(registry: &Registry, count: usize) -> Vec<Watch> {
    let mut watches: Vec<Watch> =
        (0..count).map(|_| registry.watch(kind("Workflow"), ListOptions::default(), None).unwrap()).collect();
    watches.iter_mut().for_each(|watch| drop(watch.poll().unwrap()));
    watches
}

#[test]
fn a_large_run_is_rendered_once_a_change_for_all_who_watch_it() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    wide(&registry, "wide", 3_000);
    let before = registry.whole_renderings();
    let mut watches = watches(&registry, 20);
    assert_eq!(registry.whole_renderings() - before, 1, "what was there at the beginning");
    command(&registry, "wide", Command::Suspend);
    for watch in &mut watches {
        let mut events = Vec::new();
        until(&registry, || {
            events.extend(watch.poll().unwrap());
            // It may have been rendered a moment ago; then the watch knows when to look again.
            assert!(!events.is_empty() || watch.due_in().is_some_and(|due| due <= Duration::from_secs(1)));
            !events.is_empty()
        });
        assert!(nodes(&events.last().unwrap().object) > 3_000);
    }
    // A change of a run may be more than one commit.
    let rendered = registry.whole_renderings() - before - 1;
    assert!((1..=2).contains(&rendered), "{rendered} renderings for 20 watches");
}

#[test]
fn a_large_run_that_was_just_rendered_rests_before_it_is_rendered_again() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    wide(&registry, "wide", 4_000);
    let mut watch = watches(&registry, 1).remove(0);
    let began = std::time::Instant::now();
    command(&registry, "wide", Command::Suspend);
    let mut empty = 0;
    while watch.poll().unwrap().is_empty() {
        let due = watch.due_in().expect("it knows when to look again");
        assert!(due <= Duration::from_secs(1));
        assert!(due.is_zero() || watch.is_quiet(), "nobody looks before that");
        empty += 1;
        std::thread::sleep(due);
    }
    // Rendering takes milliseconds, and the rest ten times that.
    assert!(empty > 0 || began.elapsed() > Duration::from_millis(100), "it was rendered again at once");
}

#[test]
fn lists_and_watches_do_not_render_what_is_too_large_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    wide(&registry, "wide", 6_000);
    let before = registry.whole_renderings();
    let mut watch = registry.watch(kind("Workflow"), ListOptions::default(), None).unwrap();
    let seen = watch.poll().unwrap().remove(0).object;
    let listed = registry.list(kind("Workflow"), &ListOptions::default()).unwrap().items.remove(0);
    for object in [seen, listed] {
        assert!(nodes(&object) == 0 && object["status"]["conditions"].to_string().contains("NodesOmitted"));
    }
    assert_eq!(registry.whole_renderings(), before);
    assert!(nodes(&registry.get(kind("Workflow"), "default", "wide").unwrap()) > 6_000, "a get has them");
}

#[test]
fn many_who_get_the_same_large_run_share_one_text() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    wide(&registry, "wide", 3_000);
    let before = registry.whole_renderings();
    let get =
        || registry.shown_text(kind("Workflow"), "default", "wide", "whole", |object| object.to_string().into_bytes());
    // Held as an answer holds it until it is sent.
    let first = get().unwrap();
    let texts: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap().unwrap()).collect()
    });
    assert_eq!(registry.whole_renderings() - before, 1);
    assert!(texts.iter().all(|text| text.as_ref().as_ptr() == first.as_ref().as_ptr()));
    command(&registry, "wide", Command::Suspend);
    let later = get().unwrap();
    assert_ne!(later.as_ref(), first.as_ref(), "what changed is rendered anew");
    let missing = registry.shown_text(kind("Workflow"), "default", "none", "whole", |_| Vec::new());
    assert!(matches!(missing, Err(Fault::NotFound { .. })));
}
