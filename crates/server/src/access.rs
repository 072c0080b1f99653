//! Who may do what: a token stands for a caller, a caller has privileges, a route needs one of them.

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::{fault::Fault, route::Need};

/// Whoever made the request, once the token was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub name: String,
}

/// The admin's token, hashed. Comparing hashes of fixed length tells nothing about the token through time.
pub(crate) struct Access {
    admin: [u8; 32],
}

impl Access {
    pub(crate) fn new(admin: &str) -> Self {
        Self { admin: hash(admin) }
    }

    pub(crate) fn check(&self, headers: &HeaderMap, need: Need) -> Result<Caller, Fault> {
        if need == Need::Nothing {
            return Ok(Caller { name: "anonymous".to_owned() });
        }
        let Some(token) = token(headers) else {
            return Err(Fault::unauthorized("no token: send it as `Authorization: Bearer TOKEN` or as header `token`"));
        };
        if hash(token) != self.admin {
            return Err(Fault::unauthorized("the token is not valid"));
        }
        Ok(Caller { name: "admin".to_owned() })
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let own = headers.get("token").and_then(|value| value.to_str().ok());
    let usual = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    own.or_else(|| usual.map(|value| value.strip_prefix("Bearer ").unwrap_or(value)))
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
