//! Plugins of the submission pipeline: which there are, in which order, and which jobs each is for. Compiled from the
//! stored features; immutable, so that everybody shares one table. It calls nobody.

pub mod builtin;
pub mod feature;
pub mod increment;
pub mod selector;
mod table;

use octoflow_model::plugin::PluginType;

pub use feature::{Address, OnFailure, Plugin};
pub use selector::JobSelector;
pub use table::{FeatureRecord, PluginTable};

/// The plugins that are part of this program, with their types. They are called like all others, but not over the
/// network.
const BUILTINS: [(&str, PluginType); 11] = [
    ("tfjob", PluginType::TemplateTranslator),
    ("pytorchjob", PluginType::TemplateTranslator),
    ("mpijob", PluginType::TemplateTranslator),
    ("job-form", PluginType::TemplateTranslator),
    ("priority-by-user", PluginType::FactorGenerator),
    ("priority-by-history", PluginType::FactorGenerator),
    ("quota", PluginType::AccessGate),
    ("working-hours", PluginType::AccessGate),
    ("shared-volume", PluginType::TemplateDecorator),
    ("peer-discovery", PluginType::TemplateDecorator),
    ("gang", PluginType::SchedulerBinder),
];

/// Returns the names of the built-in plugins of a type.
pub fn builtins(plugin_type: PluginType) -> impl Iterator<Item = &'static str> {
    BUILTINS.into_iter().filter(move |(_, of)| *of == plugin_type).map(|(name, _)| name)
}

/// Returns the type of a built-in plugin.
pub fn builtin_type(name: &str) -> Option<PluginType> {
    BUILTINS.into_iter().find(|(known, _)| *known == name).map(|(_, plugin_type)| plugin_type)
}
