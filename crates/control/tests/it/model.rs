//! Random sequences of changes against a naive model: existence, termination and ownership. A watch from any revision
//! over a list gives what a new list gives, and writers who compare lose nothing.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_control::registry::{
    ApplyOptions, Change, DeleteOptions, Fault, ListOptions, Propagation, Registry, WriteOptions,
};
use octoflow_engine::Command;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::registry::{create, held, kind, map, registry, until};

const KIND: &str = "ConfigMap";
const NAMES: u8 = 6;

#[derive(Clone, Debug)]
enum Act {
    Create { name: u8, owners: Vec<u8>, finalizer: bool },
    Change { name: u8, value: u8 },
    Release { name: u8 },
    Delete { name: u8, propagation: Propagation },
}

fn act() -> impl Strategy<Value = Act> {
    let ways = prop_oneof![Just(Propagation::Background), Just(Propagation::Foreground), Just(Propagation::Orphan)];
    prop_oneof![
        4 => (0..NAMES, prop::collection::vec(0..NAMES, 0..3), prop::bool::weighted(0.25))
            .prop_map(|(name, owners, finalizer)| Act::Create { name, owners, finalizer }),
        1 => (0..NAMES, 0..4_u8).prop_map(|(name, value)| Act::Change { name, value }),
        1 => (0..NAMES).prop_map(|name| Act::Release { name }),
        2 => (0..NAMES, ways).prop_map(|(name, propagation)| Act::Delete { name, propagation }),
    ]
}

#[derive(Clone, Debug, PartialEq)]
struct Thing {
    id: u64,
    value: String,
    owners: BTreeSet<u64>,
    finalizers: BTreeSet<&'static str>,
    deleted: bool,
}

#[derive(Default)]
struct Model {
    things: BTreeMap<String, Thing>,
    next: u64,
}

impl Model {
    fn mark(&mut self, name: &str, propagation: Propagation) {
        let Some(thing) = self.things.get(name).cloned() else { return };
        let owns = self.things.values().any(|other| other.owners.contains(&thing.id));
        let thing = self.things.get_mut(name).unwrap();
        thing.deleted = true;
        let wanted = match propagation {
            Propagation::Background => None,
            Propagation::Foreground => Some("foregroundDeletion"),
            Propagation::Orphan => Some("orphan"),
        };
        if let Some(wanted) = wanted.filter(|_| owns) {
            thing.finalizers.remove("foregroundDeletion");
            thing.finalizers.remove("orphan");
            thing.finalizers.insert(wanted);
        }
    }

    fn is_there(&self, id: u64) -> bool {
        self.things.values().any(|thing| thing.id == id)
    }

    /// Runs until nothing is left to do.
    fn settle(&mut self) {
        loop {
            let before = self.things.clone();
            for name in before.keys() {
                self.step(name);
            }
            if self.things == before {
                return;
            }
        }
    }

    fn step(&mut self, name: &str) {
        let Some(thing) = self.things.get(name).cloned() else { return };
        if !thing.deleted {
            let gone: BTreeSet<u64> = thing.owners.iter().copied().filter(|owner| !self.is_there(*owner)).collect();
            if !gone.is_empty() && gone == thing.owners {
                self.mark(name, Propagation::Background);
            } else {
                self.things.get_mut(name).unwrap().owners.retain(|owner| !gone.contains(owner));
            }
            return;
        }
        let children: Vec<String> = self
            .things
            .iter()
            .filter(|(_, other)| other.owners.contains(&thing.id))
            .map(|(name, _)| name.clone())
            .collect();
        if thing.finalizers.contains("orphan") {
            for child in children {
                self.things.get_mut(&child).unwrap().owners.remove(&thing.id);
            }
            self.things.get_mut(name).unwrap().finalizers.remove("orphan");
        } else if thing.finalizers.contains("foregroundDeletion") {
            let mut left = false;
            for child in children {
                let other = self.things[&child].clone();
                if other.owners.iter().any(|owner| *owner != thing.id && self.is_there(*owner)) {
                    self.things.get_mut(&child).unwrap().owners.remove(&thing.id);
                } else {
                    left = true;
                    if !other.deleted {
                        self.mark(&child, Propagation::Foreground);
                    }
                }
            }
            if !left {
                self.things.get_mut(name).unwrap().finalizers.remove("foregroundDeletion");
            }
        } else if thing.finalizers.is_empty() {
            self.things.remove(name);
        }
    }

    /// By name: value, whether it is terminating, its finalizers, and its number of owners.
    fn seen(&self) -> BTreeMap<String, (String, bool, Vec<String>, usize)> {
        let of = |thing: &Thing| {
            let finalizers = thing.finalizers.iter().map(|name| (*name).to_owned()).collect();
            (thing.value.clone(), thing.deleted, finalizers, thing.owners.len())
        };
        self.things.iter().map(|(name, thing)| (name.clone(), of(thing))).collect()
    }
}

fn list(registry: &Registry) -> (BTreeMap<String, Value>, octoflow_model::Revision) {
    let listing = registry.list(kind(KIND), &ListOptions::default()).unwrap();
    let named = |item: Value| (item["metadata"]["name"].as_str().unwrap().to_owned(), item);
    (listing.items.into_iter().map(named).collect(), listing.revision)
}

fn seen(registry: &Registry) -> BTreeMap<String, (String, bool, Vec<String>, usize)> {
    let texts = |value: &Value| -> Vec<String> {
        let mut all: Vec<String> =
            value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect();
        all.sort_unstable();
        all
    };
    let of = |object: &Value| {
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array().map_or(0, Vec::len);
        let value = object["data"]["k"].as_str().unwrap().to_owned();
        (value, metadata["deletionTimestamp"].is_string(), texts(&metadata["finalizers"]), owners)
    };
    list(registry).0.iter().map(|(name, object)| (name.clone(), of(object))).collect()
}

fn perform(registry: &Registry, model: &mut Model, ids: &mut BTreeMap<u64, String>, act: &Act) {
    let called = |name: u8| format!("n{name}");
    match act {
        Act::Create { name, owners, finalizer } => {
            let name = called(*name);
            if model.things.contains_key(&name) {
                assert!(matches!(create(registry, KIND, map(&name)), Err(Fault::Exists { .. })));
                return;
            }
            let owners: BTreeSet<u64> =
                owners.iter().filter_map(|owner| Some(model.things.get(&called(*owner))?.id)).collect();
            let mut object = map(&name);
            let reference = |id: &u64| {
                let owner = model.things.iter().find(|(_, thing)| thing.id == *id).unwrap().0;
                json!({"apiVersion": "v1", "kind": KIND, "name": owner, "uid": ids[id], "blockOwnerDeletion": true})
            };
            object["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
            let mut finalizers = BTreeSet::new();
            if *finalizer {
                object["metadata"]["finalizers"] = json!(["octoflow.io/test"]);
                finalizers.insert("octoflow.io/test");
            }
            let made = create(registry, KIND, object).unwrap();
            let id = model.next;
            model.next += 1;
            ids.insert(id, made["metadata"]["uid"].as_str().unwrap().to_owned());
            model.things.insert(name, Thing { id, value: "v".to_owned(), owners, finalizers, deleted: false });
        }
        Act::Change { name, value } => {
            let (name, value) = (called(*name), format!("v{value}"));
            let changed = registry.update(kind(KIND), "default", &name, &WriteOptions::default(), |before| {
                let mut after = before.clone();
                after["data"]["k"] = json!(value);
                Ok(after)
            });
            match model.things.get_mut(&name) {
                Some(thing) => {
                    changed.unwrap();
                    thing.value = value;
                }
                None => assert!(matches!(changed, Err(Fault::NotFound { .. }))),
            }
        }
        Act::Release { name } => {
            let name = called(*name);
            let changed = registry.update(kind(KIND), "default", &name, &WriteOptions::default(), |before| {
                let mut after = before.clone();
                if let Some(finalizers) = after["metadata"]["finalizers"].as_array_mut() {
                    finalizers.retain(|name| name != "octoflow.io/test");
                }
                Ok(after)
            });
            match model.things.get_mut(&name) {
                Some(thing) => {
                    changed.unwrap();
                    thing.finalizers.remove("octoflow.io/test");
                }
                None => assert!(matches!(changed, Err(Fault::NotFound { .. }))),
            }
        }
        Act::Delete { name, propagation } => {
            let name = called(*name);
            let options = DeleteOptions { propagation: *propagation, ..DeleteOptions::default() };
            let deleted = registry.delete(kind(KIND), "default", &name, &options);
            assert_eq!(deleted.is_ok(), model.things.contains_key(&name), "{deleted:?}");
            model.mark(&name, *propagation);
        }
    }
    model.settle();
    until(registry, || seen(registry) == model.seen());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_changes_ends_as_the_model_does_and_a_watch_tells_it(
        acts in prop::collection::vec(act(), 1..16), from in 0..16_usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(dir.path());
        let (mut model, mut ids) = (Model::default(), BTreeMap::new());
        let mut watched = None;
        for (at, act) in acts.iter().enumerate() {
            if at == from.min(acts.len() - 1) {
                let (items, revision) = list(&registry);
                watched = Some((items, registry.watch(kind(KIND), ListOptions::default(), Some(revision)).unwrap()));
            }
            perform(&registry, &mut model, &mut ids, act);
        }
        let (mut items, mut watch) = watched.unwrap();
        for event in watch.poll().unwrap() {
            let name = event.object["metadata"]["name"].as_str().unwrap().to_owned();
            match event.change {
                Change::Added | Change::Modified => drop(items.insert(name, event.object)),
                Change::Deleted => drop(items.remove(&name)),
            }
        }
        prop_assert_eq!(items, list(&registry).0);
        registry.close().unwrap();
    }
}

#[test]
fn writers_who_compare_never_lose_an_update() {
    const WRITERS: usize = 4;
    const EACH: usize = 12;
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    create(&registry, KIND, map("c")).unwrap();
    create(&registry, "Workflow", held("w")).unwrap();
    let count = |of: &'static str, name: &'static str| {
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < EACH {
                        let mut object = registry.get(kind(of), "default", name).unwrap();
                        let number = &mut object["metadata"]["annotations"]["count"];
                        let next = number.as_str().map_or(0, |text| text.parse::<usize>().unwrap()) + 1;
                        *number = json!(next.to_string());
                        match registry.replace(kind(of), "default", name, object, &WriteOptions::default()) {
                            Ok(_) => done += 1,
                            Err(Fault::Conflict { .. }) => {}
                            Err(fault) => panic!("{fault}"),
                        }
                    }
                });
            }
        });
        registry.get(kind(of), "default", name).unwrap()["metadata"]["annotations"]["count"].clone()
    };
    let all = |times: usize| json!((WRITERS * EACH * times).to_string());
    assert_eq!(count(KIND, "c"), all(1));
    assert_eq!(count("Workflow", "w"), all(1), "while it is open");
    let run = registry.find_run(kind("Workflow"), "default", "w").unwrap().run;
    registry.command(run, Command::Terminate).unwrap();
    until(&registry, || registry.find_run(kind("Workflow"), "default", "w").unwrap().row.archived);
    assert_eq!(count("Workflow", "w"), all(2), "and when it is over");
}

#[test]
fn what_is_applied_is_shared_fought_over_and_taken() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let apply = |manager: &str, object: Value, force: bool| {
        let options = ApplyOptions { manager: manager.to_owned(), force, ..ApplyOptions::default() };
        registry.apply(kind(KIND), "default", "c", object, &options)
    };
    let of = |data: Value| json!({"metadata": {"name": "c"}, "data": data});
    let first = apply("one", of(json!({"a": "1", "b": "2"})), false).unwrap();
    assert!(first.created);
    let again = apply("one", of(json!({"a": "1", "b": "2"})), false).unwrap();
    assert!(!again.created);
    assert_eq!(again.object, first.object, "nothing changed, so there is no new revision");
    let fought = apply("two", of(json!({"a": "x", "c": "3"})), false);
    match fought {
        Err(Fault::Owned { causes, .. }) => {
            assert_eq!(causes.len(), 1);
            assert_eq!((causes[0].field.as_str(), causes[0].reason), (".data.a", "FieldManagerConflict"));
            assert!(causes[0].message.contains("\"one\""), "{}", causes[0].message);
        }
        other => panic!("{other:?}"),
    }
    let taken = apply("two", of(json!({"a": "x", "c": "3"})), true).unwrap().object;
    assert_eq!(taken["data"], json!({"a": "x", "b": "2", "c": "3"}));
    let less = apply("one", of(json!({})), false).unwrap().object;
    assert_eq!(less["data"], json!({"a": "x", "c": "3"}));
    let options = WriteOptions { manager: "hand".to_owned(), ..WriteOptions::default() };
    registry
        .update(kind(KIND), "default", "c", &options, |before| {
            let mut after = before.clone();
            after["data"]["c"] = json!("9");
            Ok(after)
        })
        .unwrap();
    assert!(matches!(apply("two", of(json!({"a": "x", "c": "3"})), false), Err(Fault::Owned { .. })));
    assert!(matches!(apply("", of(json!({})), false), Err(Fault::BadRequest(_))));
    // A run can be applied too: its progress is kept, its metadata changes.
    let mut run = held("w");
    let options = ApplyOptions { manager: "one".to_owned(), ..ApplyOptions::default() };
    let made = registry.apply(kind("Workflow"), "default", "w", run.clone(), &options).unwrap();
    assert!(made.created);
    run["metadata"]["labels"] = json!({"team": "a"});
    let labelled = registry.apply(kind("Workflow"), "default", "w", run.clone(), &options).unwrap().object;
    assert_eq!(labelled["metadata"]["labels"]["team"], "a");
    run["spec"]["entrypoint"] = json!("gate");
    assert!(matches!(registry.apply(kind("Workflow"), "default", "w", run, &options), Err(Fault::Invalid { .. })));
}

#[test]
fn a_change_that_changes_nothing_makes_no_revision_and_only_the_specification_counts() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let template =
        json!({"metadata": {"name": "t"}, "spec": {"entrypoint": "a", "templates": [{"name": "a", "suspend": {}}]}});
    let made = create(&registry, "WorkflowTemplate", template).unwrap();
    assert_eq!(made["metadata"]["generation"], 1);
    let change = |change: &dyn Fn(&mut Value)| {
        registry
            .update(kind("WorkflowTemplate"), "default", "t", &WriteOptions::default(), |before| {
                let mut after = before.clone();
                change(&mut after);
                Ok(after)
            })
            .unwrap()
    };
    assert_eq!(change(&|_| {}), made);
    let labelled = change(&|after| after["metadata"]["labels"] = json!({"a": "b"}));
    assert_eq!(labelled["metadata"]["generation"], 1);
    assert_ne!(labelled["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let other = change(&|after| after["spec"]["entrypoint"] = json!("a"));
    assert_eq!(other, labelled);
    let deeper = change(&|after| after["spec"]["priority"] = json!(3));
    assert_eq!(deeper["metadata"]["generation"], 2);
}

#[test]
fn texts_of_secrets_become_data_and_what_is_immutable_stays() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"a": "hi"}, "immutable": true});
    let made = create(&registry, "Secret", secret).unwrap();
    assert_eq!(
        (&made["data"]["a"], &made["stringData"], &made["type"]),
        (&json!("aGk="), &Value::Null, &json!("Opaque"))
    );
    let refused = registry.update(kind("Secret"), "default", "s", &WriteOptions::default(), |before| {
        let mut after = before.clone();
        after["stringData"]["a"] = json!("ho");
        Ok(after)
    });
    assert!(matches!(refused, Err(Fault::Invalid { .. })), "{refused:?}");
    registry
        .update(kind("Secret"), "default", "s", &WriteOptions::default(), |before| {
            let mut after = before.clone();
            after["metadata"]["labels"]["team"] = json!("a");
            Ok(after)
        })
        .unwrap();
}

#[test]
fn those_who_belong_to_each_other_can_still_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let registry = registry(dir.path());
    let one = create(&registry, KIND, map("one")).unwrap();
    let two = create(&registry, KIND, map("two")).unwrap();
    for (name, owner) in [("one", &two), ("two", &one)] {
        registry
            .update(kind(KIND), "default", name, &WriteOptions::default(), |before| {
                let mut after = before.clone();
                after["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "v1", "kind": KIND, "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
                }]);
                Ok(after)
            })
            .unwrap();
    }
    let options = DeleteOptions { propagation: Propagation::Foreground, ..DeleteOptions::default() };
    registry.delete(kind(KIND), "default", "one", &options).unwrap();
    until(&registry, || list(&registry).0.is_empty());
}
