//! Tokens, passwords, idempotency keys and timestamps are stored, and keys are deleted when they expire.

use octoflow_model::{RunId, Time};

use super::store;
use crate::{Batch, Change, IdempotencyKey, Password, Token};

fn claim(key: &str, run: u64, expires: i64) -> IdempotencyKey {
    let (scope, key) = ("http/admin".to_owned(), key.to_owned());
    IdempotencyKey { scope, key, fingerprint: vec![1, 2, 3], run: RunId(run), expires: Time(expires) }
}

#[test]
fn tokens_and_passwords_are_kept_until_they_are_deleted() {
    let (_dir, store) = store();
    let token = Token {
        id: "t1".to_owned(),
        hash: vec![7; 32],
        who: "ann".to_owned(),
        note: "laptop".to_owned(),
        privileges: "read_job".to_owned(),
        created: Time(5),
        expires: Some(Time(9)),
    };
    let password = Password { who: "admin".to_owned(), salt: vec![1], rounds: 2, hash: vec![3], changed: Time(4) };
    let mut batch = Batch::new();
    batch.push(Change::PutToken(Box::new(token.clone())));
    batch.push(Change::PutPassword(Box::new(password.clone())));
    batch.push(Change::PutTimestamp { name: "ready".to_owned(), at: Time(11) });
    store.commit_wait(batch).unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.tokens().unwrap(), [token]);
    assert_eq!(reader.password("admin").unwrap(), Some(password));
    assert_eq!(reader.password("ann").unwrap(), None);
    assert_eq!(reader.timestamp("ready").unwrap(), Some(Time(11)));
    store.commit_wait(Change::DeleteToken { id: "t1".to_owned() }.into()).unwrap();
    assert!(reader.tokens().unwrap().is_empty());
}

#[test]
fn a_key_is_remembered_until_it_expires_and_may_then_be_used_again() {
    let (_dir, store) = store();
    let put = |claim: &IdempotencyKey, now| {
        store.commit_wait(Change::PutIdempotencyKey { key: Box::new(claim.clone()), now: Time(now) }.into()).unwrap();
    };
    put(&claim("a", 1, 100), 0);
    let reader = store.reader().unwrap();
    assert_eq!(reader.idempotency_key("http/admin", "a", Time(99)).unwrap(), Some(claim("a", 1, 100)));
    assert_eq!(reader.idempotency_key("http/other", "a", Time(99)).unwrap(), None);
    assert_eq!(reader.idempotency_key("http/admin", "a", Time(100)).unwrap(), None);
    put(&claim("b", 2, 300), 150);
    assert_eq!(reader.idempotency_key("http/admin", "a", Time(0)).unwrap(), None, "it was swept away");
    put(&claim("b", 3, 900), 400);
    assert_eq!(reader.idempotency_key("http/admin", "b", Time(400)).unwrap().unwrap().run, RunId(3));
}
