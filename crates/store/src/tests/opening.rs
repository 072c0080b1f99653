//! Opening a data directory: locks, formats, owners, and the errors for each.

use super::*;
use crate::database::schema;

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

/// A directory that only its owner can enter.
fn private() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    dir
}

/// A directory with some content, closed.
fn used() -> TempDir {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    store.close().unwrap();
    dir
}

#[test]
fn a_database_that_is_gone_or_empty_is_not_taken_for_a_new_beginning() {
    type Harm = fn(&Path);
    let harms: [Harm; 3] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::write(path, b"").unwrap(),
        |path| {
            std::fs::remove_file(path).unwrap();
            rusqlite::Connection::open(path).unwrap().execute_batch("VACUUM").unwrap();
        },
    ];
    for (at, harm) in harms.into_iter().enumerate() {
        let dir = used();
        let path = dir.path().join(schema::FILE);
        harm(&path);
        let before = std::fs::read(&path).ok();
        for error in [Store::open(dir.path()).unwrap_err(), Reader::open(dir.path()).unwrap_err()] {
            assert!(matches!(error, Error::Lost { .. }), "harm {at}: {error}");
            let text = error.to_string();
            assert!(text.contains("backup") && text.contains("move the whole directory away"), "{text}");
        }
        assert_eq!(std::fs::read(&path).ok(), before, "harm {at}: it is left as it is");
    }
}

#[test]
fn a_log_without_its_database_is_kept_for_whoever_restores_it() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    let copy = private();
    let log = "octoflow.db-wal";
    std::fs::copy(dir.path().join(log), copy.path().join(log)).unwrap();
    let size = std::fs::metadata(copy.path().join(log)).unwrap().len();
    assert!(matches!(Store::open(copy.path()), Err(Error::Lost { .. })));
    assert_eq!(std::fs::metadata(copy.path().join(log)).unwrap().len(), size);
}

#[test]
fn what_runs_left_proves_that_there_was_a_database() {
    let dir = private();
    std::fs::create_dir_all(dir.path().join("logs/1")).unwrap();
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }) && error.to_string().contains("logs/"), "{error}");
}

#[test]
fn a_directory_of_before_the_marker_opens_and_gets_one() {
    let dir = used();
    let marker = dir.path().join(crate::database::marker::FILE);
    let id = std::fs::read_to_string(&marker).unwrap();
    std::fs::remove_file(&marker).unwrap();
    Store::open(dir.path()).unwrap().close().unwrap();
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), id, "the number is the database's");
}

#[test]
fn a_damaged_database_is_refused_with_the_way_to_restore_it() {
    let whole = used();
    let bytes = std::fs::read(whole.path().join(schema::FILE)).unwrap();
    let cut = bytes[..bytes.len() / 2].to_vec();
    let mut scribbled = bytes;
    scribbled[..100].fill(b'x');
    for (what, harmed) in [("cut off", cut), ("overwritten", scribbled)] {
        let dir = used();
        std::fs::write(dir.path().join(schema::FILE), &harmed).unwrap();
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(error, Error::Broken { .. }), "{what}: {error:?}");
        assert!(error.to_string().contains("restore both from a backup"), "{what}: {error}");
        assert!(!error.is_outage(), "{what}: waiting does not help");
        assert_eq!(std::fs::read(dir.path().join(schema::FILE)).unwrap(), harmed, "{what}: it is left as it is");
    }
}

#[test]
fn damage_deep_inside_is_found_by_looking_at_everything() {
    let (dir, store) = store();
    let body = "x".repeat(2_000);
    for at in 0..50 {
        store.commit_wait(put(&format!("object-{at}"), &body).into()).unwrap();
    }
    store.close().unwrap();
    let reader = Reader::open(dir.path()).unwrap();
    reader.check_integrity().unwrap();
    drop(reader);
    let path = dir.path().join(schema::FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, to) = (bytes.len() / 2, bytes.len() / 2 + 8 * 4096);
    bytes[from..to].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let error = Reader::open(dir.path()).and_then(|reader| reader.check_integrity()).unwrap_err();
    assert!(matches!(error, Error::Broken { .. }), "{error:?}");
}

#[test]
fn a_database_that_vanishes_while_it_is_open_takes_nothing_more() {
    type Harm = fn(&Path);
    let harms: [Harm; 3] = [
        |dir| std::fs::remove_file(dir.join("octoflow.db")).unwrap(),
        |dir| std::fs::remove_file(dir.join("octoflow.db-wal")).unwrap(),
        |dir| {
            std::fs::copy(dir.join("octoflow.db"), dir.join("copy")).unwrap();
            std::fs::rename(dir.join("copy"), dir.join("octoflow.db")).unwrap();
        },
    ];
    for harm in harms {
        let (dir, store) = store();
        store.commit_wait(new_run(1, "one").into()).unwrap();
        harm(dir.path());
        // No commit is acknowledged that is not stored; a caller that only asks gets the error too.
        for batch in [Batch::from(new_run(2, "two")), Batch::new()] {
            let error = store.commit_wait(batch).unwrap_err();
            assert!(matches!(error, Error::Lost { .. }) && !error.is_outage(), "{error}");
        }
        assert!(matches!(store.failure(), Some(Error::Lost { .. })));
        assert!(store.close().is_err());
    }
}
