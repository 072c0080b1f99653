//! The background checkpoint: the log stays bounded under constant load, and nothing is lost.

use std::fs;

use super::*;

fn log_size(dir: &Path) -> u64 {
    fs::metadata(dir.join("octoflow.db-wal")).map_or(0, |meta| meta.len())
}

#[test]
fn the_log_stays_bounded_though_it_is_never_quiet() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let line = "x".repeat(500_000);
    let mut most = 0;
    for first in 0..500 {
        // Two commits are in flight at any time.
        store.commit(append(1, first, &[&line]).into(), |outcome| assert!(outcome.is_ok(), "{outcome:?}"));
        if first % 2 == 1 {
            store.commit_wait(Batch::new()).unwrap();
        }
        most = most.max(log_size(dir.path()));
    }
    assert!((8 << 20..36 << 20).contains(&most), "250 MB went through a log of {} MiB", most >> 20);
    let reader = store.reader().unwrap();
    assert_eq!(facts(&reader, 1, 0).iter().map(|row| row.1).sum::<u64>(), 500);
    drop(reader);
    store.close().unwrap();
    assert_eq!(log_size(dir.path()), 0, "closing merges the log");
    Reader::open(dir.path()).unwrap().check_integrity().unwrap();
}

#[test]
fn a_reader_of_an_old_state_holds_the_log_back_and_afterwards_it_begins_anew() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let line = "x".repeat(500_000);
    let commit = |first| store.commit_wait(append(1, first, &[&line]).into()).map(drop).unwrap();
    let reader = store.reader().unwrap();
    reader
        .snapshot(|reader| {
            assert!(facts(reader, 1, 0).is_empty());
            (0..100).for_each(commit);
            assert!(facts(reader, 1, 0).is_empty(), "it still reads what it began with");
            Ok::<(), Error>(())
        })
        .unwrap();
    let held = log_size(dir.path());
    assert!(held > 45 << 20, "{held}");
    (100..300).for_each(commit);
    let later = log_size(dir.path());
    assert!(later < held + (45 << 20), "the log began anew: {} MiB, then {} MiB", held >> 20, later >> 20);
}

#[test]
fn a_secret_is_forgotten_at_once_while_the_log_is_being_moved() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let secret = |body: &str| Change::PutObject {
        kind: "Secret".to_owned(),
        namespace: "default".to_owned(),
        name: "s".to_owned(),
        uid: "uid".to_owned(),
        body: body.as_bytes().to_vec(),
    };
    let line = "x".repeat(900_000);
    // A background round starts at 4 MiB; one of these commits arrives while it runs.
    for first in 0..60 {
        store.commit_wait(append(1, first, &[&line]).into()).unwrap();
        if first % 10 == 9 {
            store.commit_wait(secret(r#"{"data":{}}"#).into()).unwrap();
            store.commit_wait(Batch::new()).unwrap();
            assert_eq!(log_size(dir.path()), 0, "the log was emptied after commit {first}");
        }
    }
}
