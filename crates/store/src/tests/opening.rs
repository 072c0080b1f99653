//! Who may open a data directory, when, and what the others are told.

use super::*;
use crate::schema;

#[test]
fn a_second_writer_is_refused_and_told_who_holds_the_directory() {
    let (dir, store) = store();
    let error = Store::open(dir.path()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Locked { .. }), "{text}");
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
    assert!(text.contains(&format!("pid {}", std::process::id())), "{text}");

    store.close().unwrap();
    Store::open(dir.path()).unwrap();
}

#[test]
fn the_directory_is_free_again_when_the_last_clone_is_gone() {
    let (dir, store) = store();
    let clone = store.clone();
    drop(store);
    assert!(matches!(Store::open(dir.path()), Err(Error::Locked { .. })));
    clone.commit_wait(new_run(1, "one").into()).unwrap();
    drop(clone);
    Store::open(dir.path()).unwrap();
}

#[test]
fn closing_writes_what_is_queued_and_closes_every_clone() {
    let (dir, store) = store();
    let clone = store.clone();
    for run in 1..=100 {
        store.commit(new_run(run, &format!("run-{run}")).into(), |outcome| assert!(outcome.is_ok()));
    }
    store.close().unwrap();
    assert!(matches!(clone.commit_wait(new_run(101, "late").into()), Err(Error::Closed)));
    assert_eq!(Reader::open(dir.path()).unwrap().count(&Filter::default()).unwrap(), 100);
}

#[test]
fn the_last_clone_may_die_inside_a_callback() {
    let (dir, store) = store();
    let release = hold(&store);
    let (dropped, seen) = mpsc::channel();
    let clone = store.clone();
    store.commit(new_run(1, "one").into(), move |outcome| {
        outcome.unwrap();
        drop(clone);
        dropped.send(()).unwrap();
    });
    drop(store);
    release.send(()).unwrap();
    seen.recv().unwrap();
    assert!(Reader::open(dir.path()).unwrap().run(RunId(1)).unwrap().is_some());
}

#[test]
fn readers_work_beside_a_writer_and_without_one() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let beside = Reader::open(dir.path()).unwrap();
    assert!(beside.run(RunId(1)).unwrap().is_some());
    store.commit_wait(new_run(2, "two").into()).unwrap();
    assert!(beside.run(RunId(2)).unwrap().is_some());
    store.close().unwrap();
    assert!(beside.run(RunId(2)).unwrap().is_some());
    drop(beside);

    let without = Reader::open(dir.path()).unwrap();
    assert!(without.run(RunId(2)).unwrap().is_some());
    let again = Store::open(dir.path()).unwrap();
    again.commit_wait(new_run(3, "three").into()).unwrap();
    assert!(without.run(RunId(3)).unwrap().is_some());
}

#[test]
fn reading_where_nothing_was_stored_says_so_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = Reader::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert!(error.to_string().contains(&dir.path().display().to_string()));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);

    std::fs::write(dir.path().join(schema::FILE), b"").unwrap();
    assert!(matches!(Reader::open(dir.path()), Err(Error::Missing { .. })));
}

#[test]
fn a_new_data_directory_is_made_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b");
    Store::open(&deep).unwrap().close().unwrap();
    assert_eq!(std::fs::metadata(&deep).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_newer_database_is_refused_by_writers_and_readers_with_both_formats_named() {
    let (dir, store) = store();
    store.close().unwrap();
    let conn = rusqlite::Connection::open(dir.path().join(schema::FILE)).unwrap();
    conn.pragma_update(None, "user_version", 4711).unwrap();
    drop(conn);
    let supported = schema::MIGRATIONS.last().unwrap().format;
    for error in [Store::open(dir.path()).unwrap_err(), Reader::open(dir.path()).unwrap_err()] {
        assert!(matches!(error, Error::Newer { found: 4711, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("4711") && text.contains(&format!("up to {supported}")), "{text}");
    }
}

#[test]
fn a_database_of_something_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(schema::FILE);
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(conn);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(Error::Foreign { .. })));
    assert!(matches!(Reader::open(dir.path()), Err(Error::Foreign { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(schema::FILE);
    let text = "not a database\n".repeat(1000);
    std::fs::write(&path, &text).unwrap();
    assert!(matches!(Store::open(dir.path()), Err(Error::Foreign { .. })));
    assert!(matches!(Reader::open(dir.path()), Err(Error::Foreign { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn the_log_is_merged_again_and_again_and_stays_small_however_much_is_committed() {
    let (dir, store) = store();
    let log = dir.path().join("octoflow.db-wal");
    let size = || std::fs::metadata(&log).unwrap().len();
    let ready = size();
    assert_eq!(ready, 1 << 20);
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let much = "x".repeat(64 << 10);
    for first in 0..1_100 {
        store.commit_wait(append(1, first, &[&much]).into()).unwrap();
    }
    // Far more than this was written, and there was no pause in it.
    assert!(size() <= 34 << 20, "{} bytes", size());
    store.close().unwrap();
    assert!(!log.exists());
}

#[test]
fn in_quiet_times_the_log_does_not_grow() {
    let (dir, store) = store();
    let log = dir.path().join("octoflow.db-wal");
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let much = "x".repeat(64 << 10);
    let before = std::fs::metadata(dir.path().join("octoflow.db")).unwrap().len();
    for round in 0..4 {
        for first in 20 * round..20 * (round + 1) {
            store.commit_wait(append(1, first, &[&much]).into()).unwrap();
        }
        // What was written moves into the file once nobody writes.
        let moved =
            || std::fs::metadata(dir.path().join("octoflow.db")).unwrap().len() > before + (round + 1) * (1 << 20);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !moved() {
            assert!(std::time::Instant::now() < deadline, "round {round}: nothing was moved");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    let size = std::fs::metadata(&log).unwrap().len();
    assert!(size <= 4 << 20, "{size} bytes");
}
