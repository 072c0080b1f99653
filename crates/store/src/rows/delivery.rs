//! An event of a run on its way to a life hook, and what became of it.

use octoflow_model::Time;

/// A delivery: one event for one plugin. Those of a run go out one after the other, in the order in which they were stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Identifies the event for the plugin; the same in every repetition.
    pub event: String,
    /// Key of the plugin.
    pub plugin: String,
    /// The uid of the run.
    pub run: String,
    pub job: String,
    pub namespace: String,
    /// Number of the event in the life of its run.
    pub sequence: u32,
    pub state: String,
    /// What is sent, opaque to the store.
    pub body: Vec<u8>,
    pub created: Time,
    /// Not sent before.
    pub due: Time,
    /// How often it was sent.
    pub tries: u32,
    pub status: DeliveryStatus,
    /// Why the last try failed.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// Behind an earlier event of the same run.
    Behind,
    /// Sent as soon as it is due.
    Next,
    /// Given up: a dead letter.
    Dead,
}

impl DeliveryStatus {
    pub(crate) fn number(self) -> i64 {
        match self {
            Self::Behind => 0,
            Self::Next => 1,
            Self::Dead => 2,
        }
    }

    pub(crate) fn of(number: i64) -> Self {
        match number {
            0 => Self::Behind,
            1 => Self::Next,
            _ => Self::Dead,
        }
    }
}

/// Which deliveries to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    pub plugin: Option<String>,
    pub job: Option<String>,
    /// The uid of the run.
    pub run: Option<String>,
    /// Only dead letters, or only what is still to be sent.
    pub dead: Option<bool>,
}

/// The number of deliveries of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCount {
    pub plugin: String,
    pub pending: u64,
    pub dead: u64,
}
