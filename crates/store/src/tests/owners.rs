//! Owner references and pending deletions: written with the object and deleted with it.

use super::*;
use crate::Name;

fn put(kind: &str, namespace: &str, name: &str) -> Change {
    let (kind, namespace, name) = (kind.to_owned(), namespace.to_owned(), name.to_owned());
    Change::PutObject { kind, namespace, name, uid: "u".to_owned(), body: b"{}".to_vec() }
}

fn tie(kind: &str, namespace: &str, name: &str, owners: &[&str], deleting: bool) -> Change {
    let owners = owners.iter().map(|owner| (*owner).to_owned()).collect();
    Change::SetOwners {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        owners,
        deleting,
    }
}

fn name(kind: &str, namespace: &str, name: &str) -> Name {
    Name { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

#[test]
fn ties_are_replaced_and_go_with_what_they_tie() {
    let (_dir, store) = store();
    store.commit_wait(Batch::from_iter([put("K", "n", "a"), tie("K", "n", "a", &["o", "p"], true)])).unwrap();
    store.commit_wait(Batch::from_iter([new_run(1, "one"), tie("Workflow", "default", "one", &["o"], false)])).unwrap();
    let reader = store.reader().unwrap();
    let run = reader.run(RunId(1)).unwrap().unwrap();
    store.commit_wait(Batch::from_iter([tie(&run.kind, &run.namespace, "one", &["o"], false)])).unwrap();
    assert!(reader.owned_by("o").unwrap().contains(&name("K", "n", "a")));
    assert!(reader.has_owner(&name(&run.kind, &run.namespace, "one")).unwrap());
    assert_eq!(reader.being_deleted().unwrap(), [name("K", "n", "a")]);
    store.commit_wait(Batch::from_iter([put("K", "n", "a"), tie("K", "n", "a", &["p"], false)])).unwrap();
    assert_eq!((reader.owned_by("p").unwrap().len(), reader.being_deleted().unwrap().len()), (1, 0));
    assert!(!reader.owned_by("o").unwrap().contains(&name("K", "n", "a")));
    let deleted = Change::DeleteObject { kind: "K".to_owned(), namespace: "n".to_owned(), name: "a".to_owned() };
    store.commit_wait(Batch::from_iter([deleted, Change::DeleteRun { run: RunId(1) }])).unwrap();
    assert!(reader.owned_by("p").unwrap().is_empty());
    assert!(!reader.has_owner(&name(&run.kind, &run.namespace, "one")).unwrap());
}

#[test]
fn a_run_that_changed_is_not_overwritten() {
    let (_dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let reader = store.reader().unwrap();
    let before = reader.run(RunId(1)).unwrap().unwrap().revision;
    let update = || Change::UpdateRun { run: RunId(1), row: RunUpdate::default() };
    let expect = |revision| Change::ExpectRun { run: RunId(1), revision };
    store.commit_wait(Batch::from_iter([expect(before), update()])).unwrap();
    let refused = store.commit_wait(Batch::from_iter([expect(before), update()]));
    assert!(matches!(refused, Err(Error::Stale { .. })), "{refused:?}");
    let unknown = store.commit_wait(Change::ExpectRun { run: RunId(9), revision: before }.into());
    assert!(matches!(unknown, Err(Error::UnknownRun { .. })), "{unknown:?}");
}

#[test]
fn namespaces_are_those_with_runs_or_objects_of_the_kinds_that_count() {
    let (_dir, store) = store();
    store
        .commit_wait(Batch::from_iter([
            put("K", "a", "x"),
            put("K", "c", "x"),
            put("K", "c", "y"),
            put("Own", "b", "x"),
        ]))
        .unwrap();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let reader = store.reader().unwrap();
    let run = reader.run(RunId(1)).unwrap().unwrap();
    let mut expected = vec!["a".to_owned(), "c".to_owned(), run.namespace.clone()];
    expected.sort_unstable();
    assert_eq!(reader.namespaces(&["K"]).unwrap(), expected);
    assert_eq!(reader.contents("c", &["K"], 10).unwrap(), [name("K", "c", "x"), name("K", "c", "y")]);
    assert_eq!(reader.contents("c", &["K"], 1).unwrap().len(), 1);
    assert_eq!(reader.contents(&run.namespace, &["K"], 10).unwrap(), [name(&run.kind, &run.namespace, "one")]);
}
