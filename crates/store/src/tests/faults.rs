//! A failing disk and failing callers: nobody is told that something is durable when it is not, and nobody hangs.

use super::*;

fn big_append(first: u64) -> Change {
    append(1, first, &[&"x".repeat(100_000)])
}

#[test]
fn a_full_disk_fails_the_commit_and_everything_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), 60);
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        match store.commit_wait(big_append(acknowledged).into()) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(acknowledged > 0 && acknowledged < 10, "{acknowledged} commits fitted");
    assert!(matches!(error, Error::Database { .. }), "{error:?}");

    // A batch that would fit is refused as well: what memory holds may be ahead of the disk.
    let later = store.commit_wait(put("small", "x").into()).unwrap_err();
    assert!(matches!(later, Error::Poisoned { .. }), "{later:?}");
    assert!(later.to_string().contains("is full"), "{later}");
    assert!(matches!(Store::open(dir.path()), Err(Error::Locked { .. })), "the directory stays taken");
    assert!(matches!(store.close(), Err(Error::Poisoned { .. })));

    let store = Store::open(dir.path()).unwrap();
    let reader = store.reader().unwrap();
    let kept: u64 = facts(&reader, 1, 0).iter().map(|row| row.1).sum();
    assert_eq!(kept, acknowledged);
    store.commit_wait(big_append(acknowledged).into()).unwrap();
}

#[test]
fn all_batches_of_a_failed_group_are_told_and_none_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), 60);
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let mut batches = vec![Batch::from(put("fits", "x"))];
    batches.extend((0..10).map(|first| Batch::from(big_append(first))));
    let outcomes = as_one_group(&store, batches);
    assert_eq!(outcomes.len(), 11);
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    drop(store);
    let reader = Reader::open(dir.path()).unwrap();
    assert_eq!(reader.object("Workflow", "default", "fits").unwrap(), None);
    assert_eq!(facts(&reader, 1, 0), []);
}

#[test]
fn a_panic_in_a_callback_poisons_the_store_and_leaves_nobody_waiting() {
    let (dir, store) = store();
    let (entered, inside) = mpsc::channel::<()>();
    let (release, released) = mpsc::channel::<()>();
    store.commit(new_run(1, "one").into(), move |_| {
        entered.send(()).unwrap();
        released.recv().unwrap();
        panic!("a fault put there by the test");
    });
    inside.recv().unwrap();
    let (tell, told) = mpsc::channel();
    store.commit(new_run(2, "two").into(), move |outcome| tell.send(outcome).unwrap());
    release.send(()).unwrap();
    assert!(matches!(told.recv().unwrap(), Err(Error::Poisoned { .. })));
    assert!(matches!(store.commit_wait(Batch::new()), Err(Error::Poisoned { .. })));
    drop(store);
    let reader = Reader::open(dir.path()).unwrap();
    assert!(reader.run(RunId(1)).unwrap().is_some());
    assert!(reader.run(RunId(2)).unwrap().is_none());
}

#[test]
fn a_panic_in_a_callback_does_not_hide_the_outcome_from_the_rest_of_its_group() {
    let (dir, store) = store();
    let release = hold(&store);
    store.commit(new_run(1, "one").into(), |_| panic!("a fault put there by the test"));
    let (tell, told) = mpsc::channel();
    store.commit(new_run(2, "two").into(), move |outcome| tell.send(outcome).unwrap());
    release.send(()).unwrap();
    assert!(told.recv().unwrap().is_ok());
    assert!(matches!(store.close(), Err(Error::Poisoned { .. })));
    assert!(Reader::open(dir.path()).unwrap().run(RunId(2)).unwrap().is_some());
}
