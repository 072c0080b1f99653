//! Secrets in the raw files: never readable, erased once they are deleted, and unusable without their key.

use std::{
    fs,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::PathBuf,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::*;
use crate::SecretsKey;

const CANARY: &str = "a-canary-that-nobody-else-writes";

fn put(kind: &str, name: &str, body: &str) -> Change {
    Change::PutObject {
        kind: kind.to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        body: body.as_bytes().to_vec(),
    }
}

fn delete(kind: &str, name: &str) -> Change {
    Change::DeleteObject { kind: kind.to_owned(), namespace: "default".to_owned(), name: name.to_owned() }
}

fn body(store: &Store, name: &str) -> String {
    let found = store.reader().unwrap().object("Secret", "default", name).unwrap().unwrap();
    String::from_utf8(found.body).unwrap()
}

/// Counts the occurrences of the bytes in the files of the directory.
fn found(dir: &Path, bytes: &[u8]) -> usize {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    files.map(|path| fs::read(path).unwrap().windows(bytes.len()).filter(|window| *window == bytes).count()).sum()
}

/// Returns the keys that are stored in plain text.
fn keys(dir: &Path) -> Vec<Vec<u8>> {
    let conn = Connection::open(dir.join("octoflow.db")).unwrap();
    let mut find = conn.prepare("SELECT substr(key, 22, 32) FROM secret_keys WHERE substr(key, 1, 1) = x'01'").unwrap();
    find.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// Waits until the bytes are gone: the log is truncated as soon as no reader holds it, here at once or shortly after.
fn gone(dir: &Path, bytes: &[u8]) -> bool {
    let until = Instant::now() + Duration::from_secs(30);
    while found(dir, bytes) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    found(dir, bytes) == 0
}

fn key_file(dir: &Path, name: &str, byte: u8) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, [byte; 32]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[test]
fn the_value_of_a_secret_is_in_no_file_and_reads_as_it_was_written() {
    let (dir, store) = store();
    let long = format!("{{\"data\": \"{}\"}}", CANARY.repeat(2000));
    store.commit_wait(put("Secret", "long", &long).into()).unwrap();
    store.commit_wait(put("Secret", "short", CANARY).into()).unwrap();
    store.commit_wait(put("ConfigMap", "map", "{}").into()).unwrap();
    assert_eq!((body(&store, "long"), body(&store, "short")), (long, CANARY.to_owned()));
    assert_eq!(store.reader().unwrap().objects("Secret", None).unwrap().len(), 2);
    assert_eq!(found(dir.path(), CANARY.as_bytes()), 0);
    store.close().unwrap();
    assert_eq!(found(dir.path(), CANARY.as_bytes()), 0);
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(body(&store, "short"), CANARY);
}

#[test]
fn the_keys_of_deleted_and_replaced_secrets_are_in_no_file_whatever_happened_to_their_pages() {
    let (dir, store) = store();
    let mut dead = Vec::new();
    for round in 0..12 {
        for at in 0..40 {
            let text = format!("{CANARY}-{round}-{at}").repeat(1 + at % 7);
            store.commit_wait(put("Secret", &format!("s-{}", (at * 7 + round) % 50), &text).into()).unwrap();
            let noise = "x".repeat(50 + (at * 131 + round * 17) % 3000);
            store.commit_wait(put("ConfigMap", &format!("m-{round}-{at}"), &noise).into()).unwrap();
            if at % 3 == 0 {
                store.commit_wait(delete("ConfigMap", &format!("m-{round}-{}", at / 2)).into()).unwrap();
            }
        }
        let before = keys(dir.path());
        for at in 0..25 {
            store.commit_wait(delete("Secret", &format!("s-{at}")).into()).unwrap();
        }
        let after = keys(dir.path());
        dead.extend(before.into_iter().filter(|key| !after.contains(key)));
    }
    assert!(dead.len() > 200, "only {} keys were destroyed", dead.len());
    assert!(gone(dir.path(), dead.last().unwrap()));
    for key in &dead {
        assert_eq!(found(dir.path(), key), 0, "a key that was destroyed is still there");
    }
    assert_eq!(found(dir.path(), CANARY.as_bytes()), 0);
    assert!(body(&store, "s-30").starts_with(CANARY), "the others are still readable");
    let rows = keys(dir.path()).len();
    assert!(rows <= 50, "rows of keys are used again: {rows}");
}

#[test]
fn a_reader_of_an_old_state_delays_forgetting_and_does_not_stop_the_writer() {
    let (dir, store) = store();
    store.commit_wait(put("Secret", "s", CANARY).into()).unwrap();
    let key = keys(dir.path()).pop().unwrap();
    let reader = store.reader().unwrap();
    reader
        .snapshot(|reader| -> Result<(), Error> {
            assert!(reader.object("Secret", "default", "s")?.is_some());
            store.commit_wait(delete("Secret", "s").into())?;
            store.commit_wait(put("ConfigMap", "m", "{}").into())?;
            assert!(reader.object("Secret", "default", "s")?.is_some(), "the old state is as it was");
            Ok(())
        })
        .unwrap();
    assert!(gone(dir.path(), &key));
}

#[test]
fn with_a_key_file_nothing_opens_the_database_without_it() {
    let (dir, store) = store();
    let elsewhere = tempfile::tempdir().unwrap();
    store.commit_wait(put("Secret", "s", CANARY).into()).unwrap();
    let bare = keys(dir.path()).pop().unwrap();
    store.close().unwrap();

    let (right, wrong) = (key_file(elsewhere.path(), "right", 7), key_file(elsewhere.path(), "wrong", 8));
    let key = SecretsKey::read(&right).unwrap();
    let store = Store::open_keyed(dir.path(), Some(key.clone())).unwrap();
    assert_eq!(body(&store, "s"), CANARY);
    assert!(keys(dir.path()).is_empty() && gone(dir.path(), &bare), "the key from before is wrapped now");
    store.commit_wait(put("Secret", "t", CANARY).into()).unwrap();
    store.commit_wait(put("Secret", "s", "another").into()).unwrap();
    store.close().unwrap();

    assert!(matches!(Store::open(dir.path()), Err(Error::NoSecretsKey)));
    let error = Store::open_keyed(dir.path(), Some(SecretsKey::read(&wrong).unwrap())).unwrap_err();
    assert!(error.to_string().contains("wrong") && error.to_string().contains("another key"), "{error}");
    let store = Store::open_keyed(dir.path(), Some(key)).unwrap();
    assert_eq!((body(&store, "s"), body(&store, "t")), ("another".to_owned(), CANARY.to_owned()));
    let bare = Reader::open(dir.path()).unwrap();
    assert!(matches!(bare.object("Secret", "default", "s"), Err(Error::NoSecretsKey)));
}

#[test]
fn a_key_file_is_private_and_has_thirty_two_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let refused = |why: &str| {
        let error = SecretsKey::read(&path).unwrap_err().to_string();
        assert!(error.contains("key") && error.contains(why), "{error}");
    };
    refused("cannot be opened");
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
    refused("32 random bytes");
    fs::write(&path, [1; 33]).unwrap();
    refused("32 random bytes");
    fs::write(&path, [1; 32]).unwrap();
    SecretsKey::read(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    refused("0640");
}

#[test]
fn secrets_that_lay_open_before_this_format_are_encrypted_and_gone_from_the_file() {
    let (dir, store) = store();
    store.close().unwrap();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    let insert =
        "INSERT INTO objects (kind, namespace, name, uid, revision, body) VALUES ('Secret', 'default', ?1, 'u', 1, ?2)";
    for at in 0..50 {
        let body = format!("{{\"k\": \"{}\"}}", CANARY.repeat(at * 5)).into_bytes();
        conn.execute(insert, (format!("s-{at}"), body)).unwrap();
    }
    conn.execute("DELETE FROM objects WHERE name = 's-49'", []).unwrap();
    drop(conn);
    assert!(found(dir.path(), CANARY.as_bytes()) > 0);
    let store = Store::open(dir.path()).unwrap();
    assert!(body(&store, "s-3").contains(CANARY));
    assert!(gone(dir.path(), CANARY.as_bytes()));
}

#[test]
fn a_secret_that_was_moved_to_another_name_by_hand_does_not_open() {
    let (dir, store) = store();
    store.commit_wait(put("Secret", "s", CANARY).into()).unwrap();
    store.close().unwrap();
    let conn = Connection::open(dir.path().join("octoflow.db")).unwrap();
    conn.execute("UPDATE objects SET name = 'mine'", []).unwrap();
    drop(conn);
    let store = Store::open(dir.path()).unwrap();
    let error = store.reader().unwrap().object("Secret", "default", "mine").unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}
