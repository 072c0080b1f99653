//! Readings of custom metrics, as facts keep them. Numbers are finite; others were refused before they became facts.

use serde::{Deserialize, Serialize};

use crate::ids::NodeIx;

/// One reading of a metric, with every variable substituted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metered {
    /// The node that published it; `None` for the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeIx>,
    /// The metric name without its common prefix.
    pub name: String,
    pub help: String,
    /// Sorted by key, each key once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, String)>,
    pub reading: Reading,
}

/// The effect of a reading on the metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Reading {
    /// Adds to a counter; never negative.
    Count(f64),
    /// Sets a gauge.
    Set(f64),
    /// Adds to a gauge.
    Shift(f64),
    /// Adds one observation to a histogram. The bucket bounds are ascending upper bounds.
    Observe { value: f64, buckets: Vec<f64> },
    /// A gauge tracks the duration of the node or run until the run ends.
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
