//! What workflows publish about themselves: one reading of a custom metric, as a fact keeps it.
//! Numbers here are finite; what is not was refused before it became a fact.

use serde::{Deserialize, Serialize};

use crate::ids::NodeIx;

/// One reading of a metric, with every variable put in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metered {
    /// The node that gave it; none when the run itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeIx>,
    /// Without the prefix it is published under.
    pub name: String,
    pub help: String,
    /// Sorted by key, each key once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    pub reading: Reading,
}

/// What a reading does to the metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Reading {
    /// A counter goes up by this, which is never below zero.
    Count(f64),
    /// A gauge becomes this.
    Set(f64),
    /// A gauge changes by this.
    Shift(f64),
    /// A histogram sees one more value. The upper bounds of its buckets go up.
    Observe { value: f64, buckets: Vec<f64> },
    /// A gauge follows how long the node, or the run, has been at work, until the run ends.
    Follow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MeterKind {
    Counter,
    Gauge,
    Histogram,
}

impl Reading {
    pub fn kind(&self) -> MeterKind {
        match self {
            Self::Count(_) => MeterKind::Counter,
            Self::Set(_) | Self::Shift(_) | Self::Follow => MeterKind::Gauge,
            Self::Observe { .. } => MeterKind::Histogram,
        }
    }
}

impl MeterKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}
