//! Features and their plugins as faces ask for them. Every way of writing one ends in the same commit; see
//! `controller::features`.

use std::sync::Arc;

use octoflow_engine::plugins::{Plugin, PluginTable};
use octoflow_model::plugin::{FEATURE_KIND, FeatureSpec, PluginType};
use serde_json::{Value, json};

use super::{DeleteOptions, Fault, Kind, Registry, WriteOptions, kinds};
use crate::{Error, objects::features};

/// Number of tries when others register and delete the same feature meanwhile.
const TRIES: usize = 8;

/// A plugin and its place among those of its type, counted from 0.
#[derive(Clone, Debug)]
pub struct PlacedPlugin {
    pub plugin: Arc<Plugin>,
    pub sequence: usize,
}

/// A feature with its plugins.
#[derive(Clone, Debug)]
pub struct RegisteredFeature {
    pub name: String,
    pub spec: FeatureSpec,
    pub plugins: Vec<PlacedPlugin>,
}

/// Returns the kind of features.
pub fn feature_kind() -> &'static Kind {
    kinds::of_key(FEATURE_KIND).expect("the table of kinds has features")
}

impl Registry {
    /// Registers a feature, or replaces the one of this name. Whether it is enabled counts only for a new one: later the
    /// switch decides. Credentials that `spec` does not name stay as they are.
    pub fn put_feature(&self, name: &str, spec: &Value, options: &WriteOptions) -> Result<(), Fault> {
        let kind = feature_kind();
        for _ in 0..TRIES {
            let written = match self.stored_object(kind, "", name)? {
                None => self.create(kind, "", json!({"metadata": {"name": name}, "spec": spec}), options),
                Some(_) => self.update(kind, "", name, options, |before| {
                    let mut after = before.clone();
                    after["spec"] = spec.clone();
                    after["spec"]["enabled"] = json!(before["spec"]["enabled"] == true);
                    Ok(after)
                }),
            };
            match written {
                Err(Fault::Exists { .. } | Fault::NotFound { .. } | Fault::Conflict { .. }) => {}
                written => return written.map(drop),
            }
        }
        Err(Fault::stale(kind, name))
    }

    /// Enables or disables a feature. Nothing changes if it is so already.
    pub fn switch_feature(&self, name: &str, enabled: bool, options: &WriteOptions) -> Result<(), Fault> {
        let switch = |before: &Value| {
            let mut after = before.clone();
            after["spec"]["enabled"] = json!(enabled);
            Ok(if (before["spec"]["enabled"] == true) == enabled { before.clone() } else { after })
        };
        self.update(feature_kind(), "", name, options, switch).map(drop)
    }

    pub fn delete_feature(&self, name: &str) -> Result<(), Fault> {
        self.delete(feature_kind(), "", name, &DeleteOptions::default()).map(drop)
    }

    /// Returns all features by name.
    pub fn features(&self) -> Result<Vec<RegisteredFeature>, Fault> {
        let table = self.plugins()?;
        let objects = self.read(|reader| Ok(reader.objects(FEATURE_KIND, None)?))?;
        let mut found = Vec::new();
        for object in objects {
            let body: Value = serde_json::from_slice(&object.body).unwrap_or_default();
            // One that cannot be read has been warned of at the start; it has no plugins.
            let Ok(spec) = features::spec(&body) else { continue };
            found.push(RegisteredFeature { plugins: plugins_of(&table, &object.name), name: object.name, spec });
        }
        Ok(found)
    }

    pub fn feature(&self, name: &str) -> Result<RegisteredFeature, Fault> {
        let kind = feature_kind();
        let missing = || Fault::NotFound { kind, name: name.to_owned() };
        let stored = self.stored_object(kind, "", name)?.ok_or_else(missing)?;
        let refused = |why| Fault::Controller(Error::Object { what: format!("{FEATURE_KIND} `{name}`"), why });
        let spec = features::spec(&stored.object).map_err(refused)?;
        Ok(RegisteredFeature { name: name.to_owned(), spec, plugins: plugins_of(&self.plugins()?, name) })
    }

    /// Judges the plugin keys of a feature that is not stored now as storing it would.
    pub(super) fn check_plugin_keys(&self, kind: &Kind, object: &Value) -> Result<(), Fault> {
        if kind.key != FEATURE_KIND {
            return Ok(());
        }
        self.read(|reader| Ok(features::check_keys(reader, object)?))
    }

    /// Returns the plugins of all features as they are stored.
    pub fn plugins(&self) -> Result<PluginTable, Fault> {
        Ok(self.handle().plugins()?)
    }

    /// Has one plugin run before another of its type; nothing changes if it does already.
    pub fn move_plugin(&self, plugin_type: PluginType, first: &str, second: &str) -> Result<(), Fault> {
        match self.handle().move_plugin(plugin_type, first, second)? {
            Ok(()) => Ok(()),
            // A plugin is part of a feature, and there is no other kind for it.
            Err(unknown) => Err(Fault::NotFound { kind: feature_kind(), name: unknown }),
        }
    }
}

/// Returns the plugins of one type with their places.
pub fn placed(table: &PluginTable, plugin_type: PluginType) -> impl Iterator<Item = PlacedPlugin> {
    let plugins = table.of_type(plugin_type).iter().enumerate();
    plugins.map(|(sequence, plugin)| PlacedPlugin { plugin: plugin.clone(), sequence })
}

fn plugins_of(table: &PluginTable, feature: &str) -> Vec<PlacedPlugin> {
    let all = PluginType::ALL.into_iter().flat_map(|plugin_type| placed(table, plugin_type));
    all.filter(|placed| placed.plugin.feature == feature).collect()
}
