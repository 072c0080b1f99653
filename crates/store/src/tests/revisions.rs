//! Revisions: no two items of a batch share one.

use std::sync::Mutex;

use super::*;

#[test]
fn things_of_one_batch_have_revisions_of_their_own_in_their_order() {
    let (_dir, store) = store();
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = events.clone();
    store.observe(Arc::new(move |told| {
        if let Notification::Commits(more) = told {
            heard.lock().unwrap().extend(more);
        }
    }));
    let before = store.reader().unwrap().revision().unwrap();
    let batch = Batch::from_iter([
        put("a", "{}"),
        new_run(1, "one"),
        append(1, 0, &["{}"]),
        new_run(2, "two"),
        append(2, 0, &["{}"]),
        put("b", "{}"),
    ]);
    let behind = batch.revisions_behind();
    let last = store.commit_wait(batch).unwrap();
    assert_eq!(last.0, before.0 + 4);
    let revisions: Vec<u64> = events.lock().unwrap().iter().map(|note| note.revision.0 - before.0).collect();
    assert_eq!(revisions, [1, 2, 3, 4]);
    let reader = store.reader().unwrap();
    assert_eq!(reader.revision().unwrap(), last);
    for (run, expected) in [(1, 2), (2, 3)] {
        let own = reader.run_revision(RunId(run)).unwrap().unwrap();
        assert_eq!(own.0, before.0 + expected);
        assert_eq!(own.0, last.0 - behind[&RunId(run)], "whoever commits can tell it without reading");
    }
    assert_eq!(reader.object("Workflow", "default", "a").unwrap().unwrap().revision.0, before.0 + 1);
    assert_eq!(reader.object("Workflow", "default", "b").unwrap().unwrap().revision, last);
}

#[test]
fn a_batch_about_one_thing_has_one_revision() {
    let (_dir, store) = store();
    let before = store.reader().unwrap().revision().unwrap();
    let batch = Batch::from_iter([new_run(1, "one"), append(1, 0, &["{}"]), finish(1, "{}")]);
    assert_eq!(batch.revisions_behind()[&RunId(1)], 0);
    assert_eq!(store.commit_wait(batch).unwrap().0, before.0 + 1);
}
