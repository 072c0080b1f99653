//! A disk that fails once at every call, and a power cut at every point: nothing acknowledged is lost, nothing
//! unacknowledged is shown as if it had been, and the store recovers by itself.

use super::*;
use crate::faults::{Disk, Fault, Tear, install};

const COMMITS: u64 = 6;

/// Commits facts one after the other up to `COMMITS`, continuing from what the disk has. The store is reopened whenever
/// something fails.
fn commit_all(store: &Store, disk: &Disk) {
    let mut failures = 0;
    loop {
        let next = count(&reader(store));
        if next == COMMITS {
            return;
        }
        let text = format!("fact {next}");
        match store.commit_wait(Batch::from_iter([append(1, next, &[&text]), put("last", &text)])) {
            Ok(_) => {
                disk.mark(next + 1);
                assert_eq!(count(&reader(store)), next + 1, "what was acknowledged is there");
            }
            Err(error) => {
                assert!(error.is_outage(), "{error:?}");
                failures += 1;
                assert!(failures < 10, "it never goes on: {error}");
                let seen = count(&reader(store));
                assert!((next..=next + 1).contains(&seen), "{seen} of {next}");
                while let Err(error) = store.reopen() {
                    assert!(error.is_outage(), "{error:?}");
                    failures += 1;
                    assert!(failures < 10, "it is never opened again: {error}");
                }
            }
        }
    }
}

fn count(reader: &Reader) -> u64 {
    let rows = facts(reader, 1, 0);
    for (at, row) in rows.iter().enumerate() {
        assert_eq!((row.0, row.2.as_str()), (at as u64, format!("fact {at}\n").as_str()), "facts have no holes");
    }
    rows.len() as u64
}

/// Opens a reader; the failing call may be one of the reader's, so a failure is retried.
fn reader(store: &Store) -> Reader {
    let opened = store.reader().or_else(|error| {
        assert!(error.is_outage(), "{error:?}");
        store.reader()
    });
    opened.unwrap()
}

fn check(store: &Store) {
    let reader = reader(store);
    let kept = count(&reader);
    // Changes that were committed together are there together.
    let last = reader.object("Workflow", "default", "last").unwrap().map(|object| object.body);
    assert_eq!(last, kept.checked_sub(1).map(|last| format!("fact {last}").into_bytes()));
    reader.check_integrity().unwrap();
}

#[test]
fn every_call_may_fail_once_and_nothing_is_lost() {
    let disk = install();
    for fault in [Fault::Broken, Fault::Full, Fault::Interrupted] {
        let mut n = 1;
        loop {
            let (dir, store) = store();
            store.commit_wait(new_run(1, "one").into()).unwrap();
            disk.fail_nth(n, fault);
            commit_all(&store, disk);
            let met = disk.has_failed();
            disk.fail_all(None);
            check(&store);
            // A failed close is found by the next open.
            store.close().unwrap();
            let store = Store::open(dir.path()).unwrap();
            assert_eq!(count(&reader(&store)), COMMITS, "{fault:?} at call {n}");
            check(&store);
            if !met {
                assert!(n > 20, "{n} calls are too few to have tried anything");
                break;
            }
            n += 1;
        }
    }
    assert!(disk.interrupts() > 10, "writes are interrupted: {} times", disk.interrupts());
}

#[test]
fn opening_may_fail_at_every_call_and_the_next_time_it_opens() {
    let disk = install();
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    commit_all(&store, disk);
    store.close().unwrap();
    for fault in [Fault::Broken, Fault::Full] {
        for n in 1.. {
            disk.fail_nth(n, fault);
            let opened = Store::open(dir.path());
            let met = disk.has_failed();
            disk.fail_all(None);
            if let Err(error) = &opened {
                assert!(error.is_outage(), "{fault:?} at call {n}: {error:?}");
            }
            drop(opened);
            let store = Store::open(dir.path()).unwrap();
            check(&store);
            store.close().unwrap();
            if !met {
                break;
            }
        }
    }
}

#[test]
fn a_disk_that_stays_full_turns_everything_down_until_there_is_room() {
    let disk = install();
    let (_dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    disk.fail_all(Some(Fault::Full));
    for _ in 0..3 {
        let error = store.commit_wait(append(1, 0, &["fact 0"]).into()).unwrap_err();
        assert!(error.is_outage(), "{error:?}");
        assert!(store.reopen().is_err());
        assert!(store.reader().unwrap().run(RunId(1)).unwrap().is_some(), "what is there can be read");
    }
    disk.fail_all(None);
    store.reopen().unwrap();
    store.commit_wait(append(1, 0, &["fact 0"]).into()).unwrap();
}

#[test]
fn power_may_be_cut_at_every_moment_and_whatever_was_acknowledged_is_there() {
    let disk = install();
    let (dir, store) = store();
    store.close().unwrap();
    // Writes are recorded from here on.
    disk.record();
    let store = Store::open(dir.path()).unwrap();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    disk.mark(0);
    commit_all(&store, disk);
    store.close().unwrap();
    let moments = disk.moments();
    let mut tried = 0;
    for moment in 0..moments {
        for tear in [Tear::None, Tear::All, Tear::Last, Tear::OnlyLast] {
            let left = tempfile::tempdir().unwrap();
            let Some(marked) = disk.cut_power(moment, tear, left.path()) else { continue };
            if !left.path().join(crate::database::schema::FILE).exists() {
                continue;
            }
            let store = Store::open(left.path()).unwrap_or_else(|error| panic!("{tear:?} at {moment}: {error}"));
            let reader = store.reader().unwrap();
            if let Some(marked) = marked {
                assert!(reader.run(RunId(1)).unwrap().is_some(), "{tear:?} at {moment}: the run is lost");
                let kept = count(&reader);
                assert!((marked..=marked + 1).contains(&kept), "{tear:?} at {moment}: {kept} of {marked}");
            }
            check(&store);
            drop(reader);
            store.close().unwrap();
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried} of {moments} moments are too few");
}
