//! Runs too large for one transaction: their records are written in parts, their facts are deleted in chunks, and
//! whatever interrupts that, a reader finds either the whole journal or the whole record.

use std::time::{Duration, Instant};

use super::*;
use crate::{
    Notification,
    faults::{Disk, Fault, Tear, install},
    writer::stage::PART_BYTES,
};

/// More facts than one transaction deletes.
const FACTS: u64 = 20_000;

/// Bytes that cannot be compressed, so that the record has several parts.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1_u64;
    (0..size)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u8::try_from(state >> 56).unwrap()
        })
        .collect()
}

/// A run with `facts` facts of so many bytes each, in several rows.
fn large_run(store: &Store, run: u64, name: &str, facts: u64, width: usize) {
    store.commit_wait(new_run(run, name).into()).unwrap();
    append_all(store, run, facts, width);
}

fn append_all(store: &Store, run: u64, facts: u64, width: usize) {
    let per_row = 1_000;
    for first in (0..facts).step_by(per_row) {
        let lines = vec!["x".repeat(width - 1); per_row];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        store.commit_wait(append(run, first, &lines).into()).unwrap();
    }
}

fn end_of(run: u64, archive: Archive) -> Change {
    Change::Finish { run: RunId(run), archive, row: RunUpdate::default() }
}

fn finish_in_parts(store: &Store, run: u64, record: &[u8]) -> Result<(), Error> {
    let archive = store.stage(RunId(run), Archive::pack(record))?;
    store.commit_wait(end_of(run, archive).into()).map(drop)
}

fn number_of_facts(reader: &Reader, run: u64) -> u64 {
    facts(reader, run, 0).iter().map(|row| row.1).sum()
}

fn rows(dir: &Path, table: &str) -> u32 {
    try_rows(dir, table).unwrap()
}

fn try_rows(dir: &Path, table: &str) -> rusqlite::Result<u32> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let conn = rusqlite::Connection::open_with_flags(dir.join("octoflow.db"), flags)?;
    conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
}

/// Waits until nothing is left to delete.
fn wait_for_deletion(dir: &Path) {
    let began = Instant::now();
    while rows(dir, "garbage") > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "what nobody needs is never deleted");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Commits the batches in one group and closes the store before anything can be deleted.
fn close_at_once(store: Store, batches: Vec<Batch>) {
    let release = hold(&store);
    for batch in batches {
        store.commit(batch, |outcome| assert!(outcome.is_ok(), "{outcome:?}"));
    }
    let closing = std::thread::spawn(move || store.close());
    std::thread::sleep(Duration::from_millis(20));
    release.send(()).unwrap();
    closing.join().unwrap().unwrap();
}

#[test]
fn a_large_run_ends_without_a_large_transaction() {
    let disk = install();
    let (dir, store) = store();
    store.close().unwrap();
    disk.record();
    let store = Store::open(dir.path()).unwrap();
    large_run(&store, 1, "large", 50_000, 200);
    let record = noise(3 << 20);
    finish_in_parts(&store, 1, &record).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.archive(RunId(1)).unwrap().unwrap(), record);
    assert_eq!(reader.archive_size(RunId(1)).unwrap(), Some(3 << 20));
    assert_eq!((number_of_facts(&reader, 1), reader.facts_bytes(RunId(1)).unwrap()), (0, 0));
    assert!(reader.unfinished().unwrap().is_empty() && reader.run(RunId(1)).unwrap().unwrap().archived);
    wait_for_deletion(dir.path());
    assert_eq!((rows(dir.path(), "facts"), rows(dir.path(), "staged_records")), (0, 0));
    assert!(rows(dir.path(), "record_parts") > 20);

    store.commit_wait(Change::DeleteRun { run: RunId(1) }.into()).unwrap();
    assert_eq!(reader.archive(RunId(1)).unwrap(), None);
    wait_for_deletion(dir.path());
    assert_eq!(rows(dir.path(), "record_parts"), 0);
    let largest = disk.largest_transaction();
    // A row of 200 kB of facts, or a part and some pages around it.
    assert!((20..100).contains(&largest), "{largest} pages in one transaction");
    store.close().unwrap();
    Reader::open(dir.path()).unwrap().check_integrity().unwrap();
}

#[test]
fn a_small_record_stays_in_one_row_and_its_facts_go_with_it() {
    let (dir, store) = store();
    store.commit_wait(Batch::from_iter([new_run(1, "small"), append(1, 0, &["a", "b"])])).unwrap();
    let before = store.stats().seconds.below().last().unwrap().1;
    finish_in_parts(&store, 1, b"the end").unwrap();
    assert_eq!(store.stats().seconds.below().last().unwrap().1, before + 1, "one transaction");
    for table in ["facts", "garbage", "record_parts", "staged_records"] {
        assert_eq!(rows(dir.path(), table), 0, "{table}");
    }
    assert_eq!(store.reader().unwrap().archive(RunId(1)).unwrap().unwrap(), b"the end");
}

#[test]
fn a_restart_goes_on_deleting_and_shows_nothing_of_it() {
    let (dir, store) = store();
    large_run(&store, 1, "large", FACTS, 200);
    let record = noise(2 * PART_BYTES);
    let archive = store.stage(RunId(1), Archive::pack(&record)).unwrap();
    close_at_once(store, vec![end_of(1, archive).into()]);
    assert!(rows(dir.path(), "facts") > 10 && rows(dir.path(), "garbage") == 1);

    let reader = Reader::open(dir.path()).unwrap();
    reader.check_integrity().unwrap();
    assert_eq!(number_of_facts(&reader, 1), 0);
    assert!(reader.unfinished().unwrap().is_empty());
    let store = Store::open(dir.path()).unwrap();
    let late = store.commit_wait(append(1, FACTS, &["late"]).into()).unwrap_err();
    assert!(matches!(late, Error::RunFinished { .. }), "{late}");
    wait_for_deletion(dir.path());
    assert_eq!(rows(dir.path(), "facts"), 0);
    assert_eq!(store.reader().unwrap().archive(RunId(1)).unwrap().unwrap(), record);
}

#[test]
fn parts_that_a_crash_left_behind_are_deleted_and_the_run_is_packed_again() {
    let (dir, store) = store();
    large_run(&store, 1, "large", FACTS, 20);
    let record = noise(3 * PART_BYTES);
    let staged = store.stage(RunId(1), Archive::pack(&record)).unwrap();
    store.close().unwrap();
    assert!(rows(dir.path(), "record_parts") >= 3);

    let store = Store::open(dir.path()).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!((number_of_facts(&reader, 1), reader.archive(RunId(1)).unwrap()), (FACTS, None));
    assert_eq!(reader.unfinished().unwrap().len(), 1);
    let stale = store.commit_wait(end_of(1, staged).into()).unwrap_err();
    assert!(matches!(stale, Error::RecordDropped { run: RunId(1) }), "{stale}");
    finish_in_parts(&store, 1, &record).unwrap();
    wait_for_deletion(dir.path());
    assert_eq!(reader.archive(RunId(1)).unwrap().unwrap(), record);
    assert_eq!(rows(dir.path(), "record_parts"), 4, "only the parts of the record that counts");
}

#[test]
fn a_run_is_deleted_or_replaced_while_it_is_being_deleted_and_leaves_nothing() {
    for finished in [false, true] {
        for replaced in [false, true] {
            let (dir, store) = store();
            large_run(&store, 1, "w", FACTS, 200);
            let mut batches = Vec::new();
            if finished {
                let archive = store.stage(RunId(1), Archive::pack(&noise(2 * PART_BYTES))).unwrap();
                batches.push(Batch::from(end_of(1, archive)));
            }
            batches.push(if replaced {
                let row = Box::new(row(2, "w"));
                Batch::from_iter([Change::ReplaceRun { old: RunId(1), row }, append(2, 0, &["own"])])
            } else {
                Change::DeleteRun { run: RunId(1) }.into()
            });
            close_at_once(store, batches);
            assert!(rows(dir.path(), "facts") > 10, "they are deleted later");

            let store = Store::open(dir.path()).unwrap();
            let reader = store.reader().unwrap();
            assert!(reader.run(RunId(1)).unwrap().is_none() && reader.archive(RunId(1)).unwrap().is_none());
            assert_eq!(number_of_facts(&reader, 1), 0);
            assert_eq!(facts(&reader, 2, 0).len(), usize::from(replaced));
            wait_for_deletion(dir.path());
            let left = ["facts", "record_parts", "staged_records", "archive"].map(|table| rows(dir.path(), table));
            assert_eq!(left, [u32::from(replaced), 0, 0, 0], "finished {finished}, replaced {replaced}");
        }
    }
}

#[test]
fn a_record_of_a_run_that_is_deleted_meanwhile_is_given_up() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "w").into()).unwrap();
    let part = |part| {
        let (record, body) = (crate::RecordId(1), noise(PART_BYTES));
        store.commit_wait(Change::StageRecord { record, run: RunId(1), part, body }.into())
    };
    part(0).unwrap();
    part(1).unwrap();
    assert!(rows(dir.path(), "record_parts") == 2 && store.reader().unwrap().archive(RunId(1)).unwrap().is_none());
    store.commit_wait(Change::DeleteRun { run: RunId(1) }.into()).unwrap();
    assert!(matches!(part(2), Err(Error::RecordDropped { run: RunId(1) })));
    assert!(matches!(part(0), Err(Error::UnknownRun { run: RunId(1) })));
    wait_for_deletion(dir.path());
    assert_eq!((rows(dir.path(), "record_parts"), rows(dir.path(), "staged_records")), (0, 0));
}

#[test]
fn a_refused_commit_takes_the_parts_of_its_record_with_it() {
    let (dir, store) = store();
    store.commit_wait(Batch::from_iter([new_run(1, "w"), new_run(2, "other")])).unwrap();
    let archive = store.stage(RunId(1), Archive::pack(&noise(2 * PART_BYTES))).unwrap();
    let expect = Change::ExpectRun { run: RunId(1), revision: Revision(1) };
    let refused = as_one_group(
        &store,
        vec![Batch::from_iter([expect, end_of(1, archive)]), Batch::from(append(2, 0, &["neighbour"]))],
    );
    assert!(matches!(refused[0], Err(Error::Stale { .. })) && refused[1].is_ok(), "{refused:?}");
    wait_for_deletion(dir.path());
    assert_eq!((rows(dir.path(), "record_parts"), rows(dir.path(), "staged_records")), (0, 0));
    assert_eq!(store.reader().unwrap().unfinished().unwrap().len(), 2);
}

#[test]
fn a_record_is_rewritten_from_and_to_every_size_under_a_reader() {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "w").into()).unwrap();
    let records = [noise(2 * PART_BYTES), b"small".to_vec(), noise(3 * PART_BYTES), noise(4 * PART_BYTES)];
    finish_in_parts(&store, 1, &records[0]).unwrap();
    let reader = store.reader().unwrap();
    for pair in records.windows(2) {
        reader
            .snapshot(|reader| {
                assert_eq!(reader.archive(RunId(1))?.unwrap(), pair[0]);
                let archive = store.stage(RunId(1), Archive::pack(&pair[1]))?;
                store.commit_wait(Change::Rewrite { run: RunId(1), archive }.into())?;
                wait_for_deletion(dir.path());
                assert!(reader.archive(RunId(1))?.unwrap() == pair[0], "it reads what it began with");
                Ok::<(), Error>(())
            })
            .unwrap();
        assert!(reader.archive(RunId(1)).unwrap().unwrap() == pair[1]);
    }
    assert_eq!(rows(dir.path(), "record_parts"), 5, "of the last record only");
    let archive = store.stage(RunId(1), Archive::pack(&records[0])).unwrap();
    store.commit_wait(Change::Rewrite { run: RunId(1), archive }.into()).unwrap();
    let nowhere = store.stage(RunId(9), Archive::pack(&records[0])).unwrap_err();
    assert!(matches!(nowhere, Error::UnknownRun { run: RunId(9) }), "{nowhere}");
}

/// Returns whether the run is over. Either all facts are there and no record, or the record and no facts.
fn whole_or_over(reader: &Reader, record: &[u8]) -> bool {
    reader
        .snapshot(|reader| {
            let (facts, archive) = (number_of_facts(reader, 1), reader.archive(RunId(1))?);
            let open = reader.unfinished()?.len() as u64;
            match archive {
                None => assert_eq!((facts, open), (FACTS, 1)),
                Some(archive) => assert!((facts, open) == (0, 0) && archive == record),
            }
            Ok::<bool, Error>(open == 0)
        })
        .unwrap()
}

#[test]
fn power_may_be_cut_at_every_part_and_there_is_the_journal_or_the_record() {
    let disk = install();
    let (dir, store) = store();
    large_run(&store, 1, "large", FACTS, 20);
    store.close().unwrap();
    disk.record();
    let store = Store::open(dir.path()).unwrap();
    let record = noise(2 * PART_BYTES + 100);
    finish_in_parts(&store, 1, &record).unwrap();
    disk.mark(1);
    wait_for_deletion(dir.path());
    store.close().unwrap();
    let mut ends = [0, 0];
    // Every point would take minutes; a stride that shares no factor with the writes of a page covers all kinds of
    // them.
    for moment in (0..disk.moments()).step_by(7) {
        for tear in [Tear::None, Tear::All, Tear::Last] {
            let left = tempfile::tempdir().unwrap();
            let Some(marked) = disk.cut_power(moment, tear, left.path()) else { continue };
            if !left.path().join(crate::database::schema::FILE).exists() {
                continue;
            }
            let store = Store::open(left.path()).unwrap_or_else(|error| panic!("{tear:?} at {moment}: {error}"));
            let over = whole_or_over(&store.reader().unwrap(), &record);
            assert!(over || marked.is_none(), "{tear:?} at {moment}: what was acknowledged is lost");
            ends[usize::from(over)] += 1;
            if !over {
                finish_in_parts(&store, 1, &record).unwrap();
            }
            wait_for_deletion(left.path());
            assert!(whole_or_over(&store.reader().unwrap(), &record));
            assert_eq!((rows(left.path(), "facts"), rows(left.path(), "record_parts")), (0, 3));
            store.close().unwrap();
        }
    }
    assert!(ends.iter().all(|count| *count > 5), "{ends:?}");
}

/// Finishes the run, however often the disk fails.
fn end_somehow(store: &Store, dir: &Path, disk: &Disk, record: &[u8]) {
    for _ in 0..20 {
        let over = match store.reader() {
            Ok(reader) => whole_or_over(&reader, record),
            Err(error) => {
                assert!(error.is_outage(), "{error:?}");
                continue;
            }
        };
        let done = if over {
            store.commit_wait(put("probe", "x").into()).map(drop)
        } else {
            finish_in_parts(store, 1, record)
        };
        match done {
            Ok(())
                if over
                    && (disk.has_failed() || matches!(try_rows(dir, "garbage"), Ok(0)))
                    && store.failure().is_none() =>
            {
                return;
            }
            Ok(()) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => {
                assert!(error.is_outage(), "{error:?}");
                while let Err(error) = store.reopen() {
                    assert!(error.is_outage(), "{error:?}");
                }
            }
        }
    }
    panic!("it never ends");
}

#[test]
fn every_call_may_fail_once_while_a_large_run_ends() {
    let disk = install();
    let record = noise(PART_BYTES + 100);
    for fault in [Fault::Broken, Fault::Full] {
        let mut n = 1;
        loop {
            let (dir, store) = store();
            large_run(&store, 1, "large", FACTS, 20);
            disk.fail_nth(n, fault);
            end_somehow(&store, dir.path(), disk, &record);
            let met = disk.has_failed();
            disk.fail_all(None);
            // The disk may have failed while something was being deleted.
            while store.failure().is_some() {
                store.reopen().unwrap();
            }
            let began = Instant::now();
            while rows(dir.path(), "garbage") > 0 {
                if store.failure().is_some() {
                    store.reopen().unwrap();
                }
                assert!(began.elapsed() < Duration::from_secs(60), "{fault:?} at call {n}");
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(whole_or_over(&store.reader().unwrap(), &record));
            assert_eq!((rows(dir.path(), "facts"), rows(dir.path(), "record_parts")), (0, 2), "{fault:?} at call {n}");
            store.close().unwrap();
            if !met {
                assert!(n > 100, "{n} calls are too few to have tried anything");
                break;
            }
            n += 11;
        }
    }
}

#[test]
fn nobody_hears_of_parts_and_of_what_is_deleted() {
    let (dir, store) = store();
    large_run(&store, 1, "large", FACTS, 20);
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ear = heard.clone();
    store.observe(Arc::new(move |told| match told {
        Notification::Commits(events) => ear.lock().unwrap().extend(events),
        Notification::Reopened(_) => panic!("nothing failed"),
    }));
    finish_in_parts(&store, 1, &noise(3 * PART_BYTES)).unwrap();
    wait_for_deletion(dir.path());
    store.commit_wait(Batch::new()).unwrap();
    let heard = heard.lock().unwrap();
    assert!(
        matches!(heard.as_slice(), [crate::ChangeEvent { what: crate::ChangedItem::Run(RunId(1)), .. }]),
        "{heard:?}"
    );
}
