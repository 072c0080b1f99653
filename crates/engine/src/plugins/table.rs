//! The table of plugins: all plugins of all features by type, in the order in which they are called.

use std::{collections::BTreeMap, sync::Arc};

use octoflow_model::plugin::{FeatureSecrets, FeatureSpec, LifeState, PluginType};
use serde_json::Value;

use super::feature::{self, Plugin};

/// A stored feature, as the table is built from it.
#[derive(Clone, Debug)]
pub struct FeatureRecord {
    pub name: String,
    pub spec: FeatureSpec,
    pub secrets: FeatureSecrets,
}

/// All plugins, by type and in order.
#[derive(Clone, Debug, Default)]
pub struct PluginTable {
    by_type: BTreeMap<PluginType, Vec<Arc<Plugin>>>,
}

impl PluginTable {
    /// Builds the table. `order` has the keys of each type, first to last; plugins that it does not name follow by key.
    /// Also returns what is wrong: plugins that do not compile, which are left out, and keys of several features, which
    /// are not. A stored feature was checked before, by this version or another.
    pub fn new(features: &[FeatureRecord], order: &BTreeMap<PluginType, Vec<String>>) -> (Self, Vec<String>) {
        let (mut by_type, mut broken) = (BTreeMap::<PluginType, Vec<Arc<Plugin>>>::new(), Vec::new());
        for record in features {
            match feature::compile(&record.name, &record.spec, &record.secrets) {
                Ok(plugins) => {
                    for plugin in plugins {
                        by_type.entry(plugin.plugin_type).or_default().push(Arc::new(plugin));
                    }
                }
                Err(problems) => {
                    broken
                        .extend(problems.iter().map(|problem| format!("feature {}: {}", record.name, problem.message)));
                }
            }
        }
        for (plugin_type, plugins) in &mut by_type {
            let order = order.get(plugin_type).map_or(&[][..], Vec::as_slice);
            let place = |plugin: &Plugin| order.iter().position(|key| *key == plugin.key).unwrap_or(usize::MAX);
            plugins.sort_by(|one, other| (place(one), &one.key).cmp(&(place(other), &other.key)));
            let shared = plugins.windows(2).filter(|pair| pair[0].key == pair[1].key);
            broken.extend(shared.map(|pair| {
                let (one, other, key) = (&pair[0].feature, &pair[1].feature, &pair[0].key);
                format!("the features {one} and {other} have plugins with the same key {key}; rename one of them")
            }));
        }
        (Self { by_type }, broken)
    }

    /// Returns the plugins of a type in order, those of disabled features included.
    pub fn of_type(&self, plugin_type: PluginType) -> &[Arc<Plugin>] {
        self.by_type.get(&plugin_type).map_or(&[], Vec::as_slice)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.by_type.values().flatten()
    }

    pub fn by_key(&self, key: &str) -> Option<&Arc<Plugin>> {
        self.all().find(|plugin| plugin.key == key)
    }

    /// Returns the plugin of this key and feature. Data of earlier versions may have the key in two features.
    pub fn of_feature(&self, feature: &str, key: &str) -> Option<&Arc<Plugin>> {
        self.all().find(|plugin| plugin.key == key && plugin.feature == feature)
    }

    /// Returns the enabled plugins of a type that a job with this header meets, in order.
    pub fn matching(&self, plugin_type: PluginType, header: &Value) -> Vec<Arc<Plugin>> {
        let plugins = self.of_type(plugin_type).iter();
        plugins.filter(|plugin| plugin.enabled && plugin.selector.matches(header)).cloned().collect()
    }

    /// Returns the enabled life hooks that hear of this state of a job with this header, in order.
    pub fn hooks(&self, header: &Value, state: LifeState) -> Vec<Arc<Plugin>> {
        let mut hooks = self.matching(PluginType::LifeHook, header);
        hooks.retain(|hook| hook.states.contains(&state));
        hooks
    }

    /// Reports whether any enabled life hook exists, so that runs need no header otherwise.
    pub fn has_hooks(&self) -> bool {
        self.of_type(PluginType::LifeHook).iter().any(|hook| hook.enabled)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_that_two_features_have_is_told_and_each_keeps_its_credentials() {
        let record = |name: &str, author: &str, word: &str| FeatureRecord {
            name: name.to_owned(),
            spec: serde_json::from_value(json!({
                "author": author, "jobSelector": {"expression": "*"},
                "plugins": [{"pluginType": "AccessGate", "callAddress": "http://127.0.0.1:9/"}],
            }))
            .unwrap(),
            secrets: FeatureSecrets { authorization: Some(word.to_owned()), ..FeatureSecrets::default() },
        };
        let (table, wrong) =
            PluginTable::new(&[record("a", "b.c", "one"), record("a.b", "c", "two")], &BTreeMap::new());
        let word = |feature: &str| {
            let plugin = table.of_feature(feature, "AccessGate.a.b.c").unwrap();
            plugin.secrets.authorization.clone()
        };
        assert_eq!((word("a").as_deref(), word("a.b").as_deref()), (Some("one"), Some("two")));
        assert!(table.of_feature("b", "AccessGate.a.b.c").is_none());
        assert_eq!(wrong.len(), 1, "{wrong:?}");
    }
}
