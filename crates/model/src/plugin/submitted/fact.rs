//! Facts about a submitted job: its way through the stages, and the run that came out. A released fact never changes: new
//! facts may be added, new fields must have defaults.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ids::RunId,
    plugin::{Factor, PluginType, increment::Increment},
    time::Time,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum WalkFact {
    /// A stage began. These plugins match and have their turn in this order, whatever becomes of their features meanwhile.
    Bound {
        stage: PluginType,
        at: Time,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        plugins: Vec<BoundPlugin>,
    },
    /// The plugin whose turn it is was called. Every call has a number, which is never reused.
    Called { at: Time },
    /// The call brought nothing that can be used.
    Erred { at: Time, why: String, then: ErredCall },
    /// The plugin's answer is the job from now on.
    Translated { at: Time, job: Value },
    /// The plugin added something to the job: `edits` are what changes, and `added` tells it to people.
    Extended {
        at: Time,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        edits: Vec<Edit>,
        #[serde(default)]
        added: Increment,
    },
    /// The plugin gave factors, or none.
    Advised {
        at: Time,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        factors: Vec<Factor>,
    },
    /// The gate has decided. One that suspends the job may ask to be asked again at a time.
    Judged {
        at: Time,
        verdict: GateVerdict,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        recheck: Option<Time>,
    },
    /// Somebody resumed a job that a gate had suspended: it goes on with the next gate, or asks the same one again.
    Released {
        at: Time,
        #[serde(default)]
        recheck: bool,
    },
    /// The time has come to ask the gate again that has suspended the job. It stays suspended until the gate lets it pass.
    RecheckDue { at: Time },
    /// Somebody said why a command was given.
    Told { at: Time, command: String, reason: String },
    /// The walk is over, and the run that came out is ordered.
    HandedOver { at: Time },
    /// The run cannot be created yet; it is once the reason is gone.
    Held { at: Time, why: String },
    /// The run was created.
    Made { at: Time, run: RunId, api_version: String, kind: String, name: String, uid: String },
    /// The run has changed: this is its phase from now on, and when it began to run.
    Observed {
        at: Time,
        phase: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Time>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        suspended: bool,
    },
    /// It is decided how the job ended.
    Over {
        at: Time,
        end: WalkEnd,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// A plugin as a stage calls it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BoundPlugin {
    pub key: String,
    /// The name of its feature, which keeps the credentials.
    pub feature: String,
    /// A URL, or `builtin:NAME`.
    pub address: String,
    pub timeout_seconds: u32,
    pub tries: u32,
    /// How many of its calls may be under way at once.
    pub concurrency: u32,
    /// True if the walk goes on without it when it fails.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
    /// Settings of a built-in plugin.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub options: Value,
}

/// What follows a call that brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum ErredCall {
    /// The plugin is called again at this time.
    Retried(Time),
    /// The walk goes on without the plugin.
    Ignored,
    /// The job fails.
    Fatal,
}

/// What a gate decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateVerdict {
    Pass,
    Suspend,
    Stop,
}

impl GateVerdict {
    pub const ALL: [Self; 3] = [Self::Pass, Self::Suspend, Self::Stop];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Suspend => "suspend",
            Self::Stop => "stop",
        }
    }
}

/// A change of a document: a value that is set, or removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// A JSON pointer (RFC 6901).
    pub path: String,
    #[serde(default)]
    pub value: Value,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// How a submitted job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WalkEnd {
    Succeeded,
    Failed,
    Stopped,
}
