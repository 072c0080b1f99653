//! Plain text of Secrets from before they were encrypted: it is removed from the files, or `plaintext_left` says that
//! it may remain, whatever fails on the way.

use std::fs;

use rusqlite::Connection;

use super::*;
use crate::{
    database::connect,
    faults::{Fault, install},
    writer::{
        checkpoint::Checkpointer,
        rewrite::{PlaintextStatus, Rewriter},
    },
};

const CANARY: &str = "a-canary-from-before-encryption";

/// Returns a data directory as an earlier version left it: Secrets in plain text, one of them deleted, and no record of
/// a rewrite.
fn old_directory(keep: bool) -> TempDir {
    let (dir, store) = store();
    store.commit_wait(new_run(1, "one").into()).unwrap();
    store.close().unwrap();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    let insert =
        "INSERT INTO objects (kind, namespace, name, uid, revision, body) VALUES ('Secret', 'default', ?1, 'u', 1, ?2)";
    for at in 0..8 {
        conn.execute(insert, (format!("s-{at}"), CANARY.repeat(40 * (at + 1)).into_bytes())).unwrap();
    }
    let gone =
        if keep { "DELETE FROM objects WHERE name = 's-7'" } else { "DELETE FROM objects WHERE kind = 'Secret'" };
    conn.execute(gone, []).unwrap();
    conn.execute("DELETE FROM meta WHERE key = 'rewritten'", []).unwrap();
    drop(conn);
    assert!(holds_canary(dir.path()));
    dir
}

fn holds_canary(dir: &Path) -> bool {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.into_iter().any(|path| {
        let content = fs::read(path).unwrap();
        content.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
    })
}

#[test]
fn secrets_that_were_deleted_before_they_could_be_encrypted_are_gone_too() {
    let dir = old_directory(false);
    assert!(Reader::open(dir.path()).unwrap().may_hold_plaintext().unwrap());
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.plaintext_left(), None);
    assert!(!holds_canary(dir.path()));
    assert!(!store.reader().unwrap().may_hold_plaintext().unwrap());
}

#[test]
fn a_new_database_has_nothing_to_write_anew() {
    let (dir, store) = store();
    assert!(!store.reader().unwrap().may_hold_plaintext().unwrap());
    store.commit_wait(new_run(1, "one").into()).unwrap();
    assert!(!store.reader().unwrap().may_hold_plaintext().unwrap());
    store.close().unwrap();
    assert!(!Reader::open(dir.path()).unwrap().may_hold_plaintext().unwrap());
}

#[test]
fn whatever_fails_while_the_file_is_written_anew_is_told_and_done_by_the_next_start() {
    let (disk, old) = (install(), old_directory(true));
    for (fault, step) in [(Fault::Full, 1), (Fault::Broken, 4)] {
        let mut told = 0;
        for n in (1..).step_by(step) {
            let dir = tempfile::tempdir().unwrap();
            for file in fs::read_dir(old.path()).unwrap().map(|entry| entry.unwrap().path()) {
                fs::copy(&file, dir.path().join(file.file_name().unwrap())).unwrap();
            }
            disk.fail_nth(n, fault);
            let opened = Store::open(dir.path());
            let met = disk.has_failed();
            disk.fail_all(None);
            match opened {
                Ok(store) => {
                    let left = store.plaintext_left();
                    assert!(left.is_some() || !holds_canary(dir.path()), "{fault:?} at call {n}: nobody was told");
                    assert_eq!(store.reader().unwrap().may_hold_plaintext().unwrap(), left.is_some());
                    store.commit_wait(append(1, 0, &["it goes on"]).into()).unwrap();
                    if let Some(left) = left {
                        told += 1;
                        let text = left.to_string();
                        assert!(text.contains("octoflow.db") && text.contains("OF1116"), "{text}");
                    }
                    store.close().unwrap();
                }
                Err(error) => assert!(error.is_outage(), "{fault:?} at call {n}: {error}"),
            }
            let store = Store::open(dir.path()).unwrap();
            assert_eq!(store.plaintext_left(), None, "{fault:?} at call {n}");
            assert!(!holds_canary(dir.path()), "{fault:?} at call {n}");
            store.reader().unwrap().check_integrity().unwrap();
            store.close().unwrap();
            if !met {
                break;
            }
        }
        assert!(told > 3, "{fault:?}: writing anew failed only {told} times");
    }
}

#[test]
fn a_store_that_is_open_tries_again_and_forgets_what_it_told() {
    let disk = install();
    let dir = old_directory(false);
    let mut conn = connect::writer(dir.path()).unwrap();
    let mut checkpointer = Checkpointer::watch(&mut conn, dir.path()).unwrap();
    let left = PlaintextStatus::default();
    disk.fail_all(Some(Fault::Full));
    let mut rewriter = Rewriter::start(&conn, &mut checkpointer, dir.path(), left.clone()).unwrap();
    rewriter.retry(&conn, &mut checkpointer);
    assert!(left.lock().unwrap().is_some() && rewriter.due_in().is_some());
    disk.fail_all(None);
    rewriter.retry(&conn, &mut checkpointer);
    assert_eq!((left.lock().unwrap().clone(), rewriter.due_in()), (None, None));
    assert!(!holds_canary(dir.path()));
}

#[test]
fn a_reader_of_an_old_state_delays_the_end_and_it_is_not_noted_before() {
    let dir = old_directory(false);
    let mut conn = connect::writer(dir.path()).unwrap();
    let mut checkpointer = Checkpointer::watch(&mut conn, dir.path()).unwrap();
    let left = PlaintextStatus::default();
    let reader = Reader::open(dir.path()).unwrap();
    let mut rewriter = reader
        .snapshot(|reader| -> Result<Rewriter, Error> {
            assert!(reader.may_hold_plaintext()?);
            let rewriter = Rewriter::start(&conn, &mut checkpointer, dir.path(), left.clone())?;
            assert!(left.lock().unwrap().is_some());
            Ok(rewriter)
        })
        .unwrap();
    assert!(reader.may_hold_plaintext().unwrap(), "the log was not emptied yet");
    checkpointer.quiet(&conn);
    rewriter.log_moved(&conn, &checkpointer);
    assert_eq!(left.lock().unwrap().clone(), None);
    assert!(!reader.may_hold_plaintext().unwrap() && !holds_canary(dir.path()));
}
