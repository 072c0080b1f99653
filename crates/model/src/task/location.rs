//! Resolved artifact locations: complete with credentials, so that a runtime needs no lookups. A location is part of a
//! `Task` only; the journal names secrets and never holds them.

use serde::{Deserialize, Serialize};

use crate::task::EnvValue;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Location {
    /// The default repository: the local store of this machine, by key.
    Local(LocalKey),
    S3(Box<Bucket>),
    Http(Box<Web>),
    Git(Box<Repository>),
}

/// A key of the local store. Keys are scoped to their namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalKey {
    pub namespace: String,
    pub key: String,
}

/// An object, or everything below a prefix, in an S3 bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bucket {
    /// Host and port; empty means the public service of the region.
    pub endpoint: String,
    pub bucket: String,
    pub region: String,
    pub key: String,
    /// Use plain HTTP.
    pub insecure: bool,
    /// Credentials; requests are unsigned when absent.
    pub keys: Option<Keys>,
    /// Certificates (PEM) to trust instead of the public ones.
    pub authority: Option<EnvValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Keys {
    pub access: EnvValue,
    pub secret: EnvValue,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<EnvValue>,
}

/// A URL to GET or PUT.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Web {
    pub url: String,
    pub headers: Vec<(String, EnvValue)>,
    pub user: Option<(EnvValue, EnvValue)>,
}

/// A checkout of a git repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repository {
    pub repo: String,
    /// A commit, tag or branch; the tip of the branch when it is absent.
    pub revision: Option<String>,
    pub branch: Option<String>,
    pub single_branch: bool,
    pub depth: Option<u64>,
    /// Refspecs to fetch before the checkout.
    pub fetch: Vec<String>,
    pub submodules: bool,
    pub user: Option<EnvValue>,
    pub password: Option<EnvValue>,
    pub ssh_key: Option<EnvValue>,
    pub ignore_host_key: bool,
}

impl Location {
    /// Returns the same location with another key. HTTP and git locations have no key and stay unchanged.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        let mut moved = self.clone();
        match &mut moved {
            Self::Local(local) => key.clone_into(&mut local.key),
            Self::S3(bucket) => key.clone_into(&mut bucket.key),
            Self::Http(_) | Self::Git(_) => {}
        }
        moved
    }
}
