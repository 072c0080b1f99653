//! Features and their plugins, as clients write them, and the documents that plugins exchange with the pipeline. Plain
//! data; `engine::plugins` checks and compiles it.

pub mod increment;
pub mod submitted;

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Group and version of the kinds of the submission pipeline.
pub const GROUP: &str = "octoflow.io";
pub const API_VERSION: &str = "octoflow.io/v1alpha1";
/// The kind of a submitted job: the run that walks through the stages.
pub const JOB_KIND: &str = "SubmittedJob";
pub const FEATURE_KIND: &str = "Feature";

/// Names under which lists find submitted jobs. No label can have them, so nobody writes or removes one.
pub mod term {
    pub const USER: &str = "=user";
    pub const JOB_NAME: &str = "=name";
    pub const JOB_KIND: &str = "=kind";
    pub const CLUSTER: &str = "=cluster";

    /// Reports whether a name is one of these and no label.
    pub fn is_term(name: &str) -> bool {
        name.starts_with('=')
    }
}

/// What a plugin does. The first five are the stages of the walk, in this order; a life hook stands beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PluginType {
    TemplateTranslator,
    FactorGenerator,
    AccessGate,
    TemplateDecorator,
    SchedulerBinder,
    LifeHook,
}

impl PluginType {
    pub const ALL: [Self; 6] = [
        Self::TemplateTranslator,
        Self::FactorGenerator,
        Self::AccessGate,
        Self::TemplateDecorator,
        Self::SchedulerBinder,
        Self::LifeHook,
    ];
    /// The stages of the walk, in order.
    pub const STAGES: [Self; 5] = [
        Self::TemplateTranslator,
        Self::FactorGenerator,
        Self::AccessGate,
        Self::TemplateDecorator,
        Self::SchedulerBinder,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Self::TemplateTranslator => "TemplateTranslator",
            Self::FactorGenerator => "FactorGenerator",
            Self::AccessGate => "AccessGate",
            Self::TemplateDecorator => "TemplateDecorator",
            Self::SchedulerBinder => "SchedulerBinder",
            Self::LifeHook => "LifeHook",
        }
    }

    /// Finds a type by its exact word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }

    /// Returns the stage that follows this one; `None` after the last.
    pub fn next_stage(self) -> Option<Self> {
        let at = Self::STAGES.iter().position(|stage| *stage == self)?;
        Self::STAGES.get(at + 1).copied()
    }
}

impl fmt::Display for PluginType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// State of a run as life hooks and job lists name it. Every dialect's phases map to these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LifeState {
    /// Accepted; nothing of it runs yet.
    Waiting,
    Running,
    /// Nothing new starts until it is resumed.
    Suspended,
    Succeeded,
    Failed,
    /// Ended by somebody's command.
    Stopped,
}

impl LifeState {
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Running, Self::Suspended, Self::Succeeded, Self::Failed, Self::Stopped];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }

    pub fn is_final(self) -> bool {
        match self {
            Self::Waiting | Self::Running | Self::Suspended => false,
            Self::Succeeded | Self::Failed | Self::Stopped => true,
        }
    }
}

impl fmt::Display for LifeState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

/// A feature: plugins that are registered, enabled and deleted together. The content of a stored `Feature` object's
/// `spec`; its name is the object's. Credentials are never part of it: see [`FeatureSecrets`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FeatureSpec {
    pub author: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub enabled: bool,
    /// The selector that plugins without one of their own have, and whose conditions the others may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_selector: Option<SelectorSpec>,
    pub plugins: Vec<PluginSpec>,
}

/// A plugin of a feature.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginSpec {
    /// The word of a [`PluginType`].
    pub plugin_type: String,
    /// A URL, or `builtin:NAME` for a plugin of this program.
    pub call_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_selector: Option<SelectorSpec>,
    /// Timeout of one call in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u32>,
    /// How often a call is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// How many of its calls may be under way at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// What a factor generator's failure means: `ignore` or `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
    /// Settings of a built-in plugin.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub options: Value,
}

/// Which jobs a plugin is for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectorSpec {
    pub conditions: Vec<ConditionSpec>,
    pub expression: String,
    /// The states a life hook wants to hear of; `*` means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConditionSpec {
    pub name: String,
    /// Path of a value in the header, names joined by dots.
    pub key: String,
    /// `/…/` searches, with `i` behind it without regard to case; anything else matches the whole value.
    pub expect: String,
}

/// Credentials of a feature, kept apart from it: they are written and never read back.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FeatureSecrets {
    /// Sent to its plugins as `Authorization: Basic …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization: Option<String>,
    /// Key of the signatures (HMAC-SHA256) of its life hooks' deliveries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing: Option<String>,
}

impl fmt::Debug for FeatureSecrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("FeatureSecrets(***)")
    }
}

impl FeatureSecrets {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A factor: what one generator says about a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Factor {
    pub topic: String,
    pub advice: String,
    pub reason: String,
}

/// Factors by topic, each topic in the order of the generators.
pub type Factors = BTreeMap<String, Vec<Factor>>;
