//! Artifact locations as manifests write them: one store with its fields, credentials as references to Secrets. Shared
//! by artifact repositories in ConfigMaps, `archiveLocation` and artifacts. Holds no credentials; `crate::task::location`
//! does.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::{garbage::GcStrategy, podspec::KeyRef};

/// At most one store. Unsupported stores are kept as written, because their key may still be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArtifactLocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdfs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifactory: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<PluginLocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_logs: Option<bool>,
    /// True if the local store substitutes for this store. Set when an artifact is resolved, never by a manifest;
    /// `None` while undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<bool>,
}

impl ArtifactLocation {
    /// Reports whether it names a store, or a key in one.
    pub fn is_given(&self) -> bool {
        let foreign = [&self.gcs, &self.oss, &self.azure, &self.hdfs, &self.artifactory];
        self.s3.is_some()
            || self.http.is_some()
            || self.git.is_some()
            || self.plugin.is_some()
            || foreign.iter().any(|store| store.is_some())
    }

    /// Returns the key if it is the only field given; the rest then comes from the default repository.
    pub fn key_only(&self) -> Option<&str> {
        if let Some(s3) = &self.s3 {
            return (s3.bucket.is_none() && s3.endpoint.is_none()).then_some(s3.key.as_deref()?);
        }
        if let Some(plugin) = &self.plugin {
            return plugin.name.is_empty().then_some(plugin.key.as_deref()?);
        }
        let foreign = [&self.gcs, &self.oss, &self.azure, &self.hdfs, &self.artifactory];
        let store = foreign.into_iter().flatten().next()?;
        let key = store.get("key").or_else(|| store.get("blob"))?.as_str()?;
        (store.as_object()?.len() == 1).then_some(key)
    }

    /// Returns the same store with this key, without the fields that only repositories have.
    #[must_use]
    pub fn keyed(mut self, key: &str) -> Self {
        if let Some(s3) = &mut self.s3 {
            s3.key = Some(key.to_owned());
            (s3.key_format, s3.key_prefix) = (None, None);
        }
        if let Some(plugin) = &mut self.plugin {
            plugin.key = Some(key.to_owned());
        }
        self.archive_logs = None;
        self
    }
}

/// A store accessed through a third-party plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginLocation {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct S3Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_key_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_token_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_secret: Option<KeyRef>,
    /// Repositories only: the template of new keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_format: Option<String>,
    /// Repositories only: a prefix of the default key (the older way to choose keys).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_prefix: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpLocation {
    pub url: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<HttpAuth>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpAuth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basic_auth: Option<BasicAuth>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BasicAuth {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<KeyRef>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GitLocation {
    pub repo: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_branch: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fetch: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_submodules: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_private_key_secret: Option<KeyRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure_ignore_host_key: Option<bool>,
}

/// When artifacts are garbage-collected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArtifactGc {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<GcStrategy>,
}

/// Reference to the default repository: a key of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RepositoryRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}
