//! Decides when the local store stands in for a location that cannot be reached from here: a bucket whose Secret is
//! missing, or a store that needs a plugin. Decided once for each artifact, and recorded with it.

use octoflow_model::{
    argo::{ArtifactLocation, location::S3Location},
    podspec::KeyRef,
};

/// Why a location cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle<'a> {
    /// The Secret with its credentials is missing.
    Secret(&'a str),
    Plugin(&'a str),
}

/// Returns what keeps a location from being used itself. A Secret that exists without its key is a mistake rather than
/// an obstacle, and reported when the location is used.
pub(super) fn obstacle<'a>(place: &'a ArtifactLocation, has_secret: &dyn Fn(&str) -> bool) -> Option<Obstacle<'a>> {
    if let Some(s3) = &place.s3 {
        s3.bucket.as_deref().filter(|bucket| !bucket.is_empty())?;
        return credentials(s3).find(|name| !has_secret(name)).map(Obstacle::Secret);
    }
    let plugin = place.plugin.as_ref().filter(|plugin| !plugin.name.is_empty())?;
    Some(Obstacle::Plugin(&plugin.name))
}

/// Whether a stand-in has to be decided for the location at all.
pub(super) fn is_open(place: &ArtifactLocation) -> bool {
    obstacle(place, &|_| false).is_some()
}

/// Returns the location without its key. It is a prefix of all keys of that store, and of no key of another store.
pub(super) fn store(place: &ArtifactLocation) -> Option<String> {
    if let Some(s3) = &place.s3 {
        let endpoint = s3.endpoint.as_deref().map(|text| text.trim_end_matches('/')).filter(|text| !text.is_empty());
        let bucket = s3.bucket.as_deref()?;
        return Some(format!("s3://{}/{bucket}/", endpoint.unwrap_or(PUBLIC)));
    }
    place.plugin.as_ref().map(|plugin| format!("plugin://{}/", plugin.name))
}

/// Returns the key in the local store that stands for the whole location.
pub(super) fn key(place: &ArtifactLocation) -> Option<String> {
    let own = place.s3.as_ref().and_then(|s3| s3.key.as_deref());
    let own = own.or_else(|| place.plugin.as_ref().and_then(|plugin| plugin.key.as_deref()));
    Some(format!("{}{}", store(place)?, own.unwrap_or_default()))
}

/// Default endpoint of buckets.
const PUBLIC: &str = "s3.amazonaws.com";

fn credentials(s3: &S3Location) -> impl Iterator<Item = &str> {
    let references = [&s3.access_key_secret, &s3.secret_key_secret, &s3.session_token_secret];
    let needed = |reference: &&KeyRef| !reference.name.is_empty() && reference.optional != Some(true);
    references.into_iter().flatten().filter(needed).map(|reference| reference.name.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn place(value: Value) -> ArtifactLocation {
        serde_json::from_value(value).unwrap()
    }

    fn bucket(name: &str, optional: bool) -> ArtifactLocation {
        place(
            json!({"s3": {"bucket": "b", "key": "k", "accessKeySecret": {"name": name, "key": "a", "optional": optional},
            "secretKeySecret": {"name": "cred", "key": "s"}}}),
        )
    }

    #[test]
    fn only_a_secret_that_is_not_there_and_a_plugin_are_obstacles() {
        let has = |name: &str| name == "cred";
        assert_eq!(obstacle(&bucket("cred", false), &has), None);
        assert_eq!(obstacle(&bucket("gone", false), &has), Some(Obstacle::Secret("gone")));
        assert_eq!(obstacle(&bucket("gone", true), &has), None, "it may be missing");
        assert_eq!(obstacle(&place(json!({"s3": {"bucket": "b", "key": "k"}})), &has), None, "nothing is signed");
        assert_eq!(obstacle(&place(json!({"plugin": {"name": "p"}})), &has), Some(Obstacle::Plugin("p")));
        let web =
            json!({"http": {"url": "u", "auth": {"basicAuth": {"usernameSecret": {"name": "gone", "key": "k"}}}}});
        assert_eq!(obstacle(&place(web), &has), None);
    }

    #[test]
    fn the_whole_place_is_the_key() {
        let keys = [
            json!({"s3": {"bucket": "b", "key": "x/y", "endpoint": "minio:9000"}}),
            json!({"s3": {"bucket": "c", "key": "x/y", "endpoint": "minio:9000"}}),
            json!({"s3": {"bucket": "b", "key": "x/y"}}),
            json!({"plugin": {"name": "p", "key": "x/y", "configuration": "any"}}),
        ]
        .map(|value| key(&place(value)).unwrap());
        assert_eq!(
            keys,
            ["s3://minio:9000/b/x/y", "s3://minio:9000/c/x/y", "s3://s3.amazonaws.com/b/x/y", "plugin://p/x/y"]
        );
    }
}
