//! Memoizes templates: outputs are cached by key in a ConfigMap and reused instead of running the template again.
//! Lookups and writes are decisions of the run; the ConfigMap itself belongs to the engine, which applies the facts.

use octoflow_model::{
    NodeIx, Time,
    argo::{Memoize, NodeList, OutputArtifactValue, OutputValues, Phase, WorkflowFact},
    meta::KeyedData,
};
use serde::{Deserialize, Serialize};

use super::{duration, turn::Turn};
use crate::engine::Keyed;

/// Label that marks a ConfigMap as a cache.
pub const CACHE_LABEL: (&str, &str) = ("workflows.argoproj.io/configmap-type", "Cache");
/// Maximum size of all entries of one cache; the oldest are evicted first. Kubernetes limits ConfigMaps alike.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum size of one entry. Larger outputs are not cached: one entry must not evict all others.
pub const MAX_ENTRY_BYTES: usize = MAX_BYTES / 4;
/// Maximum length of a ConfigMap's key.
const MAX_KEY_LENGTH: usize = 253;

/// A cache entry as serialized in the ConfigMap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "nodeID")]
    node_id: String,
    #[serde(default)]
    outputs: CachedOutputs,
    creation_timestamp: String,
    #[serde(default)]
    last_hit_timestamp: String,
}

impl Entry {
    fn created(&self) -> Option<Time> {
        Some(Time(self.creation_timestamp.parse::<jiff::Timestamp>().ok()?.as_microsecond()))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CachedOutputs {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<CachedParameter>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<OutputArtifactValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct CachedParameter {
    name: String,
    value: String,
}

/// Whether a text can be the key of an entry.
pub(crate) fn is_key(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.len() <= MAX_KEY_LENGTH && text.bytes().all(fits) && !text.starts_with('-') && !text.is_empty()
}

impl Turn<'_> {
    /// Looks the node's outputs up in its cache. Returns true if that ended the node.
    pub(super) fn recall(&mut self, at: NodeIx) -> bool {
        if self.run.has_reused_child(at)
            || self.run.state.node(at).memo.is_some()
            || self.run.compiled_of(at).template.memoize.is_none()
        {
            return false;
        }
        match self.look_up(at) {
            Ok((cache, key, found)) => {
                let hit = found.is_some();
                self.decide(WorkflowFact::Recalled { node: at, cache, key, hit });
                if let Some(outputs) = found {
                    self.export(at, &outputs);
                    self.finish_with(at, Phase::Succeeded, String::new(), outputs, NodeList::default());
                }
                hit
            }
            Err(why) => {
                self.finish(at, Phase::Error, why);
                true
            }
        }
    }

    fn look_up(&mut self, at: NodeIx) -> Result<(String, String, Option<OutputValues>), String> {
        let instance = self.instance(at)?;
        let memoize = instance.template.memoize.clone().unwrap_or_default();
        let (cache, key) = named(&memoize)?;
        let age = memoize.max_age.as_ref().filter(|text| !text.0.is_empty());
        let age = age.map(|text| {
            duration::parse(&text.0).ok_or_else(|| format!("memoize.maxAge is not a duration: '{}'", text.0))
        });
        let age = age.transpose()?;
        let map = self.world.keyed(Keyed::ConfigMap, &self.run.state.head.namespace, &cache);
        if let Some(map) = map
            && !is_cache(map)
        {
            return Err(format!(
                "ConfigMap '{cache}' is no cache: give it the label `{}: {}`, or name another one",
                CACHE_LABEL.0, CACHE_LABEL.1
            ));
        }
        // Entries written in this turn are not in the ConfigMap yet.
        let text = match self.written.get(&(cache.clone(), key.clone())) {
            Some(text) => Some(text.as_slice()),
            None => map.and_then(|map| map.entries.get(&key)).map(Vec::as_slice),
        };
        let Some(text) = text else { return Ok((cache, key, None)) };
        let malformed =
            |why: String| format!("malformed cache entry '{key}' in ConfigMap '{cache}': {why}; remove it from there");
        let entry: Entry = serde_json::from_slice(text).map_err(|error| malformed(error.to_string()))?;
        let created = entry.created().ok_or_else(|| malformed("its creationTimestamp is no time".to_owned()))?;
        let fresh = age.is_none_or(|age| self.now <= created.saturating_add(age));
        Ok((cache, key, fresh.then(|| entry.outputs.into())))
    }

    /// Caches the outputs of a memoized node that missed its cache and had to run.
    pub(super) fn memoize_outputs(&mut self, at: NodeIx, outputs: &OutputValues) {
        let Some(memo) = self.run.state.node(at).memo.as_deref().filter(|memo| !memo.hit) else { return };
        let (cache, key) = (memo.cache.clone(), memo.key.clone());
        let entry = entry(&self.run.state.id_of(at), self.now, outputs);
        if entry.len() <= MAX_ENTRY_BYTES {
            self.written.insert((cache.clone(), key.clone()), entry);
            self.decide(WorkflowFact::Memoized { node: at, at: self.now, cache, key, outputs: outputs.clone() });
        }
    }
}

fn named(memoize: &Memoize) -> Result<(String, String), String> {
    let cache = memoize.cache.as_ref().and_then(|cache| cache.config_map.as_ref()).map(|map| map.name.clone());
    let cache = cache.filter(|name| !name.is_empty()).ok_or("memoize.cache.configMap.name is required")?;
    let key = memoize.key.0.clone();
    if is_key(&key) {
        return Ok((cache, key));
    }
    Err(format!(
        "invalid cache key: '{}'; use letters, digits and '-', at most {MAX_KEY_LENGTH}",
        crate::admit::shape::short(&key)
    ))
}

fn entry(node_id: &str, at: Time, outputs: &OutputValues) -> Vec<u8> {
    let outputs = outputs.clone();
    let parameters = outputs.parameters.into_iter().map(|(name, value)| CachedParameter { name, value }).collect();
    let entry = Entry {
        node_id: node_id.to_owned(),
        outputs: CachedOutputs {
            parameters,
            artifacts: outputs.artifacts,
            result: outputs.result,
            exit_code: outputs.exit_code,
        },
        creation_timestamp: at.to_string(),
        last_hit_timestamp: at.to_string(),
    };
    serde_json::to_vec(&entry).expect("an entry has only keys that are text")
}

impl From<CachedOutputs> for OutputValues {
    fn from(kept: CachedOutputs) -> Self {
        Self {
            parameters: kept.parameters.into_iter().map(|parameter| (parameter.name, parameter.value)).collect(),
            artifacts: kept.artifacts,
            result: kept.result,
            exit_code: kept.exit_code,
            ..Self::default()
        }
    }
}

pub(crate) fn is_cache(map: &KeyedData) -> bool {
    map.labels.get(CACHE_LABEL.0).map(String::as_str) == Some(CACHE_LABEL.1)
}

/// Puts an entry into a cache. A full cache evicts its oldest entries, a quarter of its size at once.
pub(crate) fn keep(map: &mut KeyedData, node_id: &str, at: Time, key: &str, outputs: &OutputValues) {
    map.labels.entry(CACHE_LABEL.0.to_owned()).or_insert_with(|| CACHE_LABEL.1.to_owned());
    map.entries.insert(key.to_owned(), entry(node_id, at, outputs));
    let mut total: usize = map.entries.iter().map(|(key, text)| key.len() + text.len()).sum();
    if total <= MAX_BYTES {
        return;
    }
    let aged = |(other, text): (&String, &Vec<u8>)| {
        let entry: Entry = serde_json::from_slice(text).ok().filter(|_| other != key)?;
        Some((entry.created()?, other.clone()))
    };
    let mut oldest: Vec<_> = map.entries.iter().filter_map(aged).collect();
    oldest.sort();
    for (_, other) in oldest {
        if total <= MAX_BYTES / 4 * 3 {
            return;
        }
        total -= other.len() + map.entries.remove(&other).map_or(0, |text| text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_lets_the_oldest_entries_go() {
        let mut map = KeyedData::default();
        let outputs = OutputValues { result: Some("x".repeat(MAX_ENTRY_BYTES / 2)), ..OutputValues::default() };
        for number in 0..20 {
            keep(&mut map, "w", Time::from_secs(number), &format!("k{number}"), &outputs);
            let total: usize = map.entries.values().map(Vec::len).sum();
            assert!(total <= MAX_BYTES, "{total}");
            assert!(map.entries.contains_key(&format!("k{number}")), "the newest stays");
        }
        assert!(!map.entries.contains_key("k0") && map.entries.contains_key("k18"));
        assert_eq!(map.labels[CACHE_LABEL.0], CACHE_LABEL.1);
    }

    #[test]
    fn keys_are_plain_words() {
        for good in ["a", "A-1", "hello-world-7"] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", "-a", "a b", "a/b", "{{x}}", "ä", &"k".repeat(300)] {
            assert!(!is_key(bad), "{bad}");
        }
    }

    #[test]
    fn an_entry_gives_back_what_was_kept() {
        let outputs = OutputValues {
            parameters: vec![("p".to_owned(), "1".to_owned())],
            result: Some("r".to_owned()),
            exit_code: Some("0".to_owned()),
            ..OutputValues::default()
        };
        let read: Entry = serde_json::from_slice(&entry("w-1", Time(1_700_000_000_999_999), &outputs)).unwrap();
        assert_eq!(read.creation_timestamp, "2023-11-14T22:13:20Z");
        assert_eq!(OutputValues::from(read.outputs), outputs);
    }
}
