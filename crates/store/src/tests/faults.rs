//! A failing disk and panicking callbacks: nothing is reported as durable that is not, and no caller hangs.

use super::*;

fn big_append(first: u64) -> Change {
    append(1, first, &[&"x".repeat(100_000)])
}

#[test]
fn a_full_disk_fails_the_commit_and_everything_after_it_until_it_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), 80);
    let failures = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (ear, heard) = (failures.clone(), Arc::new(std::sync::Mutex::new(Vec::new())));
    store.on_failure(Arc::new(move |error| ear.lock().unwrap().push(error)));
    let reopened = heard.clone();
    store.observe(Arc::new(move |told| {
        if let Notification::Reopened(revision) = told {
            reopened.lock().unwrap().push(revision);
        }
    }));
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        match store.commit_wait(big_append(acknowledged).into()) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(acknowledged > 0 && acknowledged < 10, "{acknowledged} commits fitted");
    assert!(error.is_full() && error.is_outage(), "{error:?}");
    assert!(error.to_string().contains("free some space") && error.to_string().contains("is full"), "{error}");
    assert_eq!(failures.lock().unwrap().len(), 1);

    // A batch that would fit is refused as well: what memory holds may be ahead of the disk.
    let later = store.commit_wait(put("small", "x").into()).unwrap_err();
    assert!(matches!(later, Error::Unwritable { .. }), "{later:?}");
    assert!(store.failure().is_some());
    assert!(matches!(Store::open(dir.path()), Err(Error::Locked { .. })), "the directory stays taken");
    let kept = || facts(&store.reader().unwrap(), 1, 0).iter().map(|row| row.1).sum::<u64>();
    assert_eq!(kept(), acknowledged, "what is there can be read");

    let revision = store.reopen().unwrap();
    assert_eq!(*heard.lock().unwrap(), [revision]);
    assert!(store.failure().is_none());
    let next = store.commit_wait(put("small", "x").into()).unwrap();
    assert_eq!(next.0, revision.0 + 1, "revisions go on from what is on disk");
    assert_eq!(kept(), acknowledged);
    assert!(store.commit_wait(big_append(acknowledged).into()).unwrap_err().is_full(), "it is as full as before");
    assert!(matches!(store.close(), Err(Error::Unwritable { .. })), "closing says that not all was written");

    let store = Store::open(dir.path()).unwrap();
    let kept: u64 = facts(&store.reader().unwrap(), 1, 0).iter().map(|row| row.1).sum();
    assert_eq!(kept, acknowledged);
    store.commit_wait(big_append(acknowledged).into()).unwrap();
}

#[test]
fn a_store_that_has_not_failed_can_be_opened_again_and_keeps_everything() {
    let (_dir, store) = store();
    for run in 1..=20 {
        store.commit(new_run(run, &format!("run-{run}")).into(), |outcome| assert!(outcome.is_ok()));
    }
    let before = store.reader().unwrap().revision().unwrap();
    assert!(store.reopen().unwrap() >= before);
    assert_eq!(store.reader().unwrap().count(&Filter::default()).unwrap(), 20, "what was queued is written first");
    store.commit_wait(new_run(21, "last").into()).unwrap();
    let clone = store.clone();
    store.close().unwrap();
    assert!(matches!(clone.reopen(), Err(Error::Closed)));
}

#[test]
fn all_batches_of_a_failed_group_are_told_and_none_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = open_with(dir.path(), 66);
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
