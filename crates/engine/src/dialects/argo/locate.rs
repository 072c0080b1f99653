//! Resolves artifact locations: from the manifest's form to one that a runtime can reach, with secrets looked up.
//! The result holds credentials; it may only go into a task.

use octoflow_manifest::{Limits, read};
use octoflow_model::{
    argo::{
        ArtifactLocation,
        location::{GitLocation, HttpLocation, S3Location},
    },
    location::{self, Bucket, Keys, LocalKey, Location, Web},
    podspec::KeyRef,
    task::EnvValue,
};
use serde::Deserialize;
use serde_json::Value;

use super::standin;
use crate::{
    engine::{Keyed, SharedState},
    pod::keyed,
};

/// Default format of keys.
pub(super) const KEY_FORMAT: &str = "{{workflow.name}}/{{pod.name}}";

/// Default ConfigMap of repositories, and the annotation with the key of its default repository.
pub(super) const REPOSITORIES: &str = "artifact-repositories";
pub(super) const DEFAULT_MARK: &str = "workflows.argoproj.io/default-artifact-repository";

/// The repository of artifacts without a location of their own.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// The store; `None` for the local store.
    pub(super) store: Option<ArtifactLocation>,
    /// Format of keys; `None` for the default.
    pub(super) key_format: Option<String>,
    pub(super) archive_logs: bool,
}

impl Repository {
    /// Parses a repository from its description in a ConfigMap.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let documents = read("artifact repository", text, &Limits::default()).map_err(|problems| {
            problems.iter().next().map_or_else(|| "it cannot be read".to_owned(), |problem| problem.message.clone())
        })?;
        let value = documents.first().map_or(&Value::Null, |document| &document.value);
        let place = ArtifactLocation::deserialize(value).map_err(|error| error.to_string())?;
        let archive_logs = place.archive_logs.unwrap_or(false);
        match (&place.s3, &place.plugin) {
            (Some(s3), _) if s3.bucket.is_none() => Err("s3 names no bucket".to_owned()),
            (Some(s3), _) => {
                let prefixed = |prefix: &String| format!("{}/{KEY_FORMAT}", prefix.trim_end_matches('/'));
                let key_format = s3.key_format.clone().or_else(|| s3.key_prefix.as_ref().map(prefixed));
                Ok(Self { store: Some(place), key_format, archive_logs })
            }
            (None, Some(plugin)) if plugin.name.is_empty() => Err("plugin has no name".to_owned()),
            (None, Some(_)) => {
                // A plugin's repository has its key format in the same place as one of s3.
                let format = value["plugin"]["keyFormat"].as_str().map(str::to_owned);
                Ok(Self { store: Some(place), key_format: format, archive_logs })
            }
            (None, None) if place.is_given() => {
                Err("it is no s3 repository, and no other kind is supported".to_owned())
            }
            (None, None) => Ok(Self { archive_logs, ..Self::default() }),
        }
    }
}

/// Decides whether the local store replaces a location, unless that was decided before.
pub(super) fn with_stand_in(world: &SharedState, namespace: &str, mut place: ArtifactLocation) -> ArtifactLocation {
    if place.stand_in.is_none() && standin::is_open(&place) {
        let has_secret = |name: &str| world.keyed(Keyed::Secret, namespace, name).is_some();
        place.stand_in = Some(standin::obstacle(&place, &has_secret).is_some());
    }
    place
}

/// Completes a location with everything a runtime needs to reach it. Without a stand-in decision it is used as written.
pub(super) fn complete(world: &SharedState, namespace: &str, place: &ArtifactLocation) -> Result<Location, String> {
    if place.s3.as_ref().is_some_and(|s3| s3.key.as_deref().unwrap_or_default().is_empty()) {
        return Err("s3 needs a bucket and a key, or a key alone for the default repository".to_owned());
    }
    complete_prefix(world, namespace, place)
}

/// Completes a location whose key may be empty, for the whole store.
pub(super) fn complete_prefix(
    world: &SharedState,
    namespace: &str,
    place: &ArtifactLocation,
) -> Result<Location, String> {
    if let (Some(true), Some(key)) = (place.stand_in, standin::key(place)) {
        return Ok(Location::Local(LocalKey { namespace: namespace.to_owned(), key }));
    }
    let secrets = Secrets { world, namespace };
    if let Some(s3) = &place.s3 {
        return secrets.bucket(s3).map(|bucket| Location::S3(Box::new(bucket)));
    }
    if let Some(http) = &place.http {
        return secrets.web(http).map(|web| Location::Http(Box::new(web)));
    }
    if let Some(git) = &place.git {
        return secrets.repository(git).map(|repository| Location::Git(Box::new(repository)));
    }
    Err("it names a store that is not supported; use s3, http, git or a key of the default repository".to_owned())
}

struct Secrets<'a> {
    world: &'a SharedState,
    namespace: &'a str,
}

impl Secrets<'_> {
    fn get(&self, reference: Option<&KeyRef>) -> Result<Option<EnvValue>, String> {
        let Some(reference) = reference.filter(|reference| !reference.name.is_empty()) else { return Ok(None) };
        Ok(keyed(self.world, Keyed::Secret, self.namespace, reference)?.map(EnvValue::Secret))
    }

    fn bucket(&self, s3: &S3Location) -> Result<Bucket, String> {
        let given = |text: &Option<String>| text.clone().unwrap_or_default();
        let bucket = given(&s3.bucket);
        let key = given(&s3.key);
        if bucket.is_empty() {
            return Err("s3 needs a bucket and a key, or a key alone for the default repository".to_owned());
        }
        let keys = match (self.get(s3.access_key_secret.as_ref())?, self.get(s3.secret_key_secret.as_ref())?) {
            (Some(access), Some(secret)) => {
                // Secrets from files often end with a newline that no key has.
                let trimmed = |value: &EnvValue| EnvValue::Secret(value.reveal().trim().to_owned());
                let session = self.get(s3.session_token_secret.as_ref())?.as_ref().map(trimmed);
                Some(Keys { access: trimmed(&access), secret: trimmed(&secret), session })
            }
            (None, None) => None,
            _ => return Err("s3 needs accessKeySecret and secretKeySecret, or neither".to_owned()),
        };
        Ok(Bucket {
            endpoint: given(&s3.endpoint),
            bucket,
            region: given(&s3.region),
            key,
            insecure: s3.insecure.unwrap_or(false),
            keys,
            authority: self.get(s3.ca_secret.as_ref())?,
        })
    }

    fn web(&self, http: &HttpLocation) -> Result<Web, String> {
        if http.url.is_empty() {
            return Err("http needs a url".to_owned());
        }
        let basic = http.auth.as_ref().and_then(|auth| auth.basic_auth.as_ref());
        let user = match basic {
            None => None,
            Some(basic) => {
                let empty = || EnvValue::Secret(String::new());
                let name = self.get(basic.username_secret.as_ref())?.unwrap_or_else(empty);
                Some((name, self.get(basic.password_secret.as_ref())?.unwrap_or_else(empty)))
            }
        };
        let headers = http.headers.iter();
        Ok(Web {
            url: http.url.clone(),
            // A token in a header is treated as a secret too.
            headers: headers.map(|header| (header.name.clone(), EnvValue::Secret(header.value.clone()))).collect(),
            user,
        })
    }

    fn repository(&self, git: &GitLocation) -> Result<location::Repository, String> {
        if git.repo.is_empty() {
            return Err("git needs a repo".to_owned());
        }
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Ok(location::Repository {
            repo: git.repo.clone(),
            revision: said(&git.revision),
            branch: said(&git.branch),
            single_branch: git.single_branch.unwrap_or(false),
            depth: git.depth,
            fetch: git.fetch.clone(),
            submodules: !git.disable_submodules.unwrap_or(false),
            user: self.get(git.username_secret.as_ref())?,
            password: self.get(git.password_secret.as_ref())?,
            ssh_key: self.get(git.ssh_private_key_secret.as_ref())?,
            ignore_host_key: git.insecure_ignore_host_key.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::meta::KeyedData;
    use serde_json::json;

    use super::*;

    fn world() -> SharedState {
        let mut world = SharedState::default();
        let mut data = KeyedData::default();
        data.entries.insert("a".to_owned(), b"AK\n".to_vec());
        data.entries.insert("s".to_owned(), b"SK".to_vec());
        world.put(Keyed::Secret, "ns", "cred", data);
        world
    }

    fn completed(place: Value) -> Result<Location, String> {
        complete(&world(), "ns", &serde_json::from_value(place).unwrap())
    }

    #[test]
    fn secrets_are_looked_up_and_print_as_stars() {
        let place = json!({"s3": {"bucket": "b", "key": "k", "endpoint": "h:9000", "insecure": true,
            "accessKeySecret": {"name": "cred", "key": "a"}, "secretKeySecret": {"name": "cred", "key": "s"}}});
        let Location::S3(bucket) = completed(place).unwrap() else { panic!("a bucket") };
        let keys = bucket.keys.as_ref().unwrap();
        assert_eq!((keys.access.reveal(), keys.secret.reveal()), ("AK", "SK"));
        let shown = format!("{bucket:?}");
        assert!(!shown.contains("SK") && !shown.contains("AK"), "{shown}");
    }

    #[test]
    fn what_is_missing_is_named() {
        for (place, why) in [
            (json!({"s3": {"bucket": "b"}}), "bucket and a key"),
            (json!({"s3": {"bucket": "b", "key": "k", "accessKeySecret": {"name": "cred", "key": "a"}}}), "or neither"),
            (json!({"s3": {"bucket": "b", "key": "k", "accessKeySecret": {"name": "x", "key": "a"}}}), "Secret 'x'"),
            (json!({"http": {}}), "needs a url"),
            (json!({"git": {"revision": "main"}}), "needs a repo"),
            (json!({"gcs": {"bucket": "b", "key": "k"}}), "not supported"),
        ] {
            let error = completed(place).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn whether_the_local_store_stands_in_is_decided_once() {
        let place = |secret: &str| -> ArtifactLocation {
            serde_json::from_value(json!({"s3": {"bucket": "b", "key": "k", "endpoint": "h:9000",
                "accessKeySecret": {"name": secret, "key": "a"}, "secretKeySecret": {"name": secret, "key": "s"}}}))
            .unwrap()
        };
        let (empty, later) = (SharedState::default(), world());
        let here = with_stand_in(&empty, "ns", place("cred"));
        assert_eq!(here.stand_in, Some(true));
        let local = LocalKey { namespace: "ns".to_owned(), key: "s3://h:9000/b/k".to_owned() };
        assert_eq!(complete(&empty, "ns", &here), Ok(Location::Local(local.clone())));
        // A Secret that is created or deleted later changes nothing for this artifact.
        let again = with_stand_in(&later, "ns", here);
        assert_eq!(complete(&later, "ns", &again), Ok(Location::Local(local)));
        let there = with_stand_in(&later, "ns", place("cred"));
        assert_eq!(there.stand_in, Some(false));
        assert!(complete(&empty, "ns", &with_stand_in(&empty, "ns", there)).unwrap_err().contains("Secret 'cred'"));
        let open: ArtifactLocation = serde_json::from_value(json!({"s3": {"bucket": "b", "key": "k"}})).unwrap();
        assert_eq!(with_stand_in(&empty, "ns", open).stand_in, None, "there is nothing to decide");
    }

    #[test]
    fn a_repository_is_read_as_its_config_map_describes_it() {
        let read = |text: &str| Repository::read(text.as_bytes());
        let found = read("archiveLogs: true\ns3:\n  bucket: b\n  keyFormat: x/{{pod.name}}\n").unwrap();
        assert_eq!((found.archive_logs, found.key_format.as_deref()), (true, Some("x/{{pod.name}}")));
        let found = read("s3: {bucket: b, keyPrefix: old/}").unwrap();
        assert_eq!(found.key_format.as_deref(), Some("old/{{workflow.name}}/{{pod.name}}"));
        assert!(read("archiveLogs: true").unwrap().store.is_none());
        let found = read("plugin: {name: p, keyFormat: 'x/{{pod.name}}'}").unwrap();
        assert_eq!((found.store.is_some(), found.key_format.as_deref()), (true, Some("x/{{pod.name}}")));
        for wrong in ["gcs: {bucket: b}", "plugin: {}", "s3: {endpoint: e}", "s3: [", "s3: text"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_alone_is_a_key_of_the_default_repository() {
        let key = |place: Value| {
            let place: ArtifactLocation = serde_json::from_value(place).unwrap();
            place.key_only().map(str::to_owned)
        };
        assert_eq!(key(json!({"s3": {"key": "k"}})).as_deref(), Some("k"));
        assert_eq!(key(json!({"gcs": {"key": "k"}})).as_deref(), Some("k"));
        assert_eq!(key(json!({"azure": {"blob": "k"}})).as_deref(), Some("k"));
        assert_eq!(key(json!({"s3": {"key": "k", "bucket": "b"}})), None);
        assert_eq!(key(json!({"http": {"url": "u"}})), None);
    }
}
