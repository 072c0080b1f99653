//! Encrypts Secrets at rest: each with a key of its own, which is overwritten in place when the Secret is replaced or
//! deleted. So no old value can be recovered from the file, whatever copies of its pages remain; wiping the value
//! itself was tried and leaves copies where pages were split. With a key file those keys are encrypted too, and a copy
//! of the database is useless without that file.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
};

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use rusqlite::{Connection, OptionalExtension};

use crate::{Error, Object, Reader, error::Doing, writer::rewrite};

/// The kinds whose objects are sealed: Secrets, and the credentials of features.
const SEALED: [&str; 2] = ["Secret", "FeatureSecrets"];

/// Prefix of an encrypted body; an unencrypted one is JSON and starts with a brace.
const MAGIC: &[u8; 4] = b"ofs1";

const KEY_LEN: usize = 32;
const TAG_LEN: usize = 16;
const ID_LEN: usize = 8;

/// States of a key row. All have one length, so that a row is overwritten in place.
const FREE: u8 = 0;
const PLAIN: u8 = 1;
const WRAPPED: u8 = 2;
const RECORD_LEN: usize = 1 + ID_LEN + NONCE_LEN + KEY_LEN + TAG_LEN;

/// Master key that encrypts the keys of Secrets. It never leaves this process and is never printed.
#[derive(Clone)]
pub struct SecretsKey(Arc<Master>);

struct Master {
    id: [u8; ID_LEN],
    key: LessSafeKey,
    name: String,
}

impl fmt::Debug for SecretsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SecretsKey").field(&self.0.name).finish()
    }
}

impl SecretsKey {
    /// Reads a key file: 32 random bytes that only the owner can read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |why: String| Error::SecretsKey { path: path.display().to_string(), why };
        let mut file = File::open(path).map_err(|error| refuse(format!("it cannot be opened: {error}")))?;
        let about = file.metadata().map_err(|error| refuse(format!("it cannot be looked at: {error}")))?;
        if !about.is_file() {
            return Err(refuse("it is not a file".to_owned()));
        }
        let mode = about.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(refuse(format!("others can read it (mode {mode:04o}); make it private with: chmod 600 FILE")));
        }
        let mut bytes = Vec::new();
        let read = file.by_ref().take(KEY_LEN as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| refuse(format!("it cannot be read: {error}")))?;
        let Ok(bytes) = <[u8; KEY_LEN]>::try_from(bytes.as_slice()) else {
            let why = "it must hold 32 random bytes and nothing else; make one with: head -c 32 /dev/urandom > FILE";
            return Err(refuse(why.to_owned()));
        };
        Ok(Self::new(&bytes, path.display().to_string()))
    }

    fn new(bytes: &[u8; KEY_LEN], name: String) -> Self {
        let hash = digest(&SHA256, &[b"octoflow secrets key id\n", &bytes[..]].concat());
        let mut id = [0; ID_LEN];
        id.copy_from_slice(&hash.as_ref()[..ID_LEN]);
        Self(Arc::new(Master { id, key: cipher(bytes), name }))
    }
}

/// Number of Secrets by how their keys are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecretsCount {
    /// Secrets whose keys are stored in plain text beside them.
    pub plain_keys: u64,
    /// Secrets whose keys are encrypted with the key file.
    pub wrapped_keys: u64,
}

impl Reader {
    /// Counts Secrets by how their keys are protected.
    pub fn count_secrets(&self) -> Result<SecretsCount, Error> {
        let count = |state: u8| -> Result<u64, Error> {
            self.conn
                .query_row("SELECT count(*) FROM secret_keys WHERE substr(key, 1, 1) = ?1", [&[state][..]], |row| {
                    row.get::<_, i64>(0)
                })
                .map(|count| count.unsigned_abs())
                .doing("count Secrets")
        };
        Ok(SecretsCount { plain_keys: count(PLAIN)?, wrapped_keys: count(WRAPPED)? })
    }

    /// Checks that this key decrypts every Secret that needs a key file.
    pub fn check_secrets_key(&self, key: Option<&SecretsKey>) -> Result<(), Error> {
        check(&self.conn, key)
    }
}

/// Kind, namespace and name.
type Key<'a> = (&'a str, &'a str, &'a str);

pub(crate) fn is_sealed(kind: &str) -> bool {
    SEALED.contains(&kind)
}

/// Encrypts the body of a Secret under a new key, and destroys the key of the current value.
pub(crate) fn seal(
    conn: &Connection,
    master: Option<&SecretsKey>,
    key: Key<'_>,
    uid: &str,
    body: &[u8],
) -> Result<Vec<u8>, Error> {
    destroy(conn, key)?;
    let own = random::<KEY_LEN>()?;
    let slot = take_slot(conn, &record(&own, master)?)?;
    let nonce = random::<NONCE_LEN>()?;
    let mut sealed = body.to_vec();
    cipher(&own)
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(identity(key, uid)), &mut sealed)
        .map_err(|_| failed("encrypt a Secret"))?;
    Ok([&MAGIC[..], &slot.to_le_bytes(), &nonce, &sealed].concat())
}

/// Overwrites the key of a Secret that is about to be replaced or deleted.
pub(crate) fn destroy(conn: &Connection, key: Key<'_>) -> Result<(), Error> {
    let found: Option<Vec<u8>> = conn
        .prepare_cached("SELECT substr(body, 1, 12) FROM objects WHERE kind = ?1 AND namespace = ?2 AND name = ?3")
        .and_then(|mut find| find.query_row(key, |row| row.get(0)).optional())
        .doing("look at a Secret")?;
    let Some(slot) = found.as_deref().and_then(slot_of) else { return Ok(()) };
    overwrite(conn, slot, &[FREE; RECORD_LEN])
}

/// Returns the object in plain text, whether it is stored encrypted or not.
pub(crate) fn open(conn: &Connection, master: Option<&SecretsKey>, mut object: Object) -> Result<Object, Error> {
    if !is_sealed(&object.kind) || !object.body.starts_with(MAGIC) {
        return Ok(object);
    }
    let damaged = || damaged(&object);
    let slot = slot_of(&object.body).ok_or_else(damaged)?;
    let record: Vec<u8> = conn
        .prepare_cached("SELECT key FROM secret_keys WHERE slot = ?1")
        .and_then(|mut find| find.query_row([slot], |row| row.get(0)))
        .doing("read the key of a Secret")?;
    let own = unwrap(&record, master)?.ok_or_else(damaged)?;
    let (nonce, sealed) = object.body[12..].split_at_checked(NONCE_LEN).ok_or_else(damaged)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
    let aad = Aad::from(identity((&object.kind, &object.namespace, &object.name), &object.uid));
    let mut bytes = sealed.to_vec();
    let length = cipher(&own).open_in_place(nonce, aad, &mut bytes).map_err(|_| damaged())?.len();
    bytes.truncate(length);
    object.body = bytes;
    Ok(object)
}

/// Number of Secrets and keys that were encrypted when the database was opened.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EncryptedExisting {
    /// Values that were stored in plain text.
    pub sealed: usize,
    /// Keys that were stored in plain text.
    pub wrapped: usize,
}

/// Checks the master key, encrypts values that are stored in plain text, and with a master key also keys.
pub(crate) fn encrypt_existing(conn: &Connection, master: Option<&SecretsKey>) -> Result<EncryptedExisting, Error> {
    check(conn, master)?;
    let open: Vec<(String, String, String, String, Vec<u8>)> = conn
        .prepare(
            "SELECT kind, namespace, name, uid, body FROM objects WHERE kind IN (?1, ?2) AND substr(body, 1, 4) <> ?3",
        )
        .and_then(|mut find| {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
            find.query_map((SEALED[0], SEALED[1], &MAGIC[..]), row)?.collect()
        })
        .doing("look for Secrets")?;
    let bare: Vec<(i64, Vec<u8>)> = match master {
        None => Vec::new(),
        Some(_) => conn
            .prepare("SELECT slot, key FROM secret_keys WHERE substr(key, 1, 1) = ?1")
            .and_then(|mut find| find.query_map([&[PLAIN][..]], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
            .doing("look for keys of Secrets")?,
    };
    let done = EncryptedExisting { sealed: open.len(), wrapped: bare.len() };
    if done == EncryptedExisting::default() {
        return Ok(done);
    }
    set_secure_delete(conn, true)?;
    let outcome = within_transaction(conn, || {
        for (kind, namespace, name, uid, body) in &open {
            let key = (kind.as_str(), namespace.as_str(), name.as_str());
            let sealed = seal(conn, master, key, uid, body)?;
            conn.execute(
                "UPDATE objects SET body = ?4 WHERE kind = ?1 AND namespace = ?2 AND name = ?3",
                (kind, namespace, name, sealed),
            )
            .doing("encrypt a Secret")?;
        }
        if !open.is_empty() {
            rewrite::require(conn)?;
        }
        for (slot, record_now) in &bare {
            let own = unwrap(record_now, None)?.ok_or_else(|| failed("read the key of a Secret"))?;
            overwrite(conn, *slot, &record(&own, master)?)?;
        }
        Ok(())
    });
    set_secure_delete(conn, false)?;
    outcome.map(|()| done)
}

/// Makes SQLite overwrite deleted content, in pages that stay and in pages that are freed. It costs extra writes, so it
/// is on only while a Secret changes.
pub(crate) fn set_secure_delete(conn: &Connection, on: bool) -> Result<(), Error> {
    conn.pragma_update_and_check(None, "secure_delete", on, |_| Ok(())).doing("wipe what is deleted")
}

/// Checks that every encrypted key can be decrypted with this master key.
fn check(conn: &Connection, master: Option<&SecretsKey>) -> Result<(), Error> {
    let ids: Vec<Vec<u8>> = conn
        .prepare("SELECT DISTINCT substr(key, 2, 8) FROM secret_keys WHERE substr(key, 1, 1) = ?1")
        .and_then(|mut find| find.query_map([&[WRAPPED][..]], |row| row.get(0))?.collect())
        .doing("look for keys of Secrets")?;
    match (master, ids.is_empty()) {
        (_, true) => Ok(()),
        (None, false) => Err(Error::NoSecretsKey),
        (Some(master), false) if ids.iter().all(|id| id[..] == master.0.id) => Ok(()),
        (Some(master), false) => Err(Error::SecretsKey {
            path: master.0.name.clone(),
            why: "the Secrets of this data directory were encrypted with another key".to_owned(),
        }),
    }
}

fn within_transaction(conn: &Connection, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    conn.execute_batch("BEGIN IMMEDIATE").doing("begin a transaction")?;
    let outcome = work().and_then(|()| conn.execute_batch("COMMIT").doing("commit"));
    if outcome.is_err() && !conn.is_autocommit() {
        // If this fails too, the next open rolls back.
        let _ = conn.execute_batch("ROLLBACK");
    }
    outcome
}

/// Encodes a key as a row, encrypted if there is a master key.
fn record(own: &[u8; KEY_LEN], master: Option<&SecretsKey>) -> Result<Vec<u8>, Error> {
    let Some(master) = master else {
        let mut record = [&[PLAIN][..], &[0; ID_LEN + NONCE_LEN], own].concat();
        record.resize(RECORD_LEN, 0);
        return Ok(record);
    };
    let nonce = random::<NONCE_LEN>()?;
    let mut wrapped = own.to_vec();
    let aad = Aad::from(master.0.id);
    let sealed = master.0.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut wrapped);
    sealed.map_err(|_| failed("encrypt the key of a Secret"))?;
    Ok([&[WRAPPED][..], &master.0.id, &nonce, &wrapped].concat())
}

/// Decodes the key in a row; `None` if the row is not valid.
fn unwrap(record: &[u8], master: Option<&SecretsKey>) -> Result<Option<[u8; KEY_LEN]>, Error> {
    let body = record.get(1 + ID_LEN + NONCE_LEN..RECORD_LEN);
    match (record.first(), body) {
        (Some(&PLAIN), Some(body)) => Ok(body[..KEY_LEN].try_into().ok()),
        (Some(&WRAPPED), Some(body)) => {
            let master = master.ok_or(Error::NoSecretsKey)?;
            let nonce = Nonce::try_assume_unique_for_key(&record[1 + ID_LEN..1 + ID_LEN + NONCE_LEN]);
            let nonce = nonce.map_err(|_| failed("read the key of a Secret"))?;
            let mut bytes = body.to_vec();
            let opened = master.0.key.open_in_place(nonce, Aad::from(master.0.id), &mut bytes);
            Ok(opened.ok().and_then(|own| (&*own).try_into().ok()))
        }
        _ => Ok(None),
    }
}

/// Stores a key in a free row if there is one, so that there are never more rows than there were Secrets at once.
fn take_slot(conn: &Connection, record: &[u8]) -> Result<i64, Error> {
    let free: Option<i64> = conn
        .prepare_cached("SELECT slot FROM secret_keys WHERE substr(key, 1, 1) = ?1 LIMIT 1")
        .and_then(|mut find| find.query_row([&[FREE][..]], |row| row.get(0)).optional())
        .doing("find room for the key of a Secret")?;
    if let Some(slot) = free {
        overwrite(conn, slot, record)?;
        return Ok(slot);
    }
    conn.execute("INSERT INTO secret_keys (key) VALUES (?1)", [record]).doing("store the key of a Secret")?;
    Ok(conn.last_insert_rowid())
}

fn overwrite(conn: &Connection, slot: i64, record: &[u8]) -> Result<(), Error> {
    conn.prepare_cached("UPDATE secret_keys SET key = ?2 WHERE slot = ?1")
        .and_then(|mut update| update.execute((slot, record)))
        .map(drop)
        .doing("overwrite the key of a Secret")
}

fn slot_of(body: &[u8]) -> Option<i64> {
    let rest = body.strip_prefix(MAGIC)?;
    Some(i64::from_le_bytes(rest.get(..8)?.try_into().ok()?))
}

/// Returns the authenticated data of a Secret, which binds the encrypted body to this one object.
fn identity(key: Key<'_>, uid: &str) -> Vec<u8> {
    [key.0, key.1, key.2, uid].join("\0").into_bytes()
}

fn cipher(bytes: &[u8; KEY_LEN]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).expect("a key of this cipher has this length"))
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| failed("draw random numbers"))?;
    Ok(bytes)
}

fn failed(doing: &'static str) -> Error {
    Error::Database { doing, source: Arc::new(io::Error::other("the system or the cipher refused")) }
}

fn damaged(object: &Object) -> Error {
    let what = format!("the Secret {}/{}", object.namespace, object.name);
    let why = "it cannot be decrypted with the key that is kept for it";
    Error::Damaged { what, source: Arc::new(io::Error::other(why)) }
}
