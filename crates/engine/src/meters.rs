//! The values of all custom metrics: the fold of every reading that runs have published. It aggregates and rejects
//! readings; it never reads a clock, and its owner persists it.

mod render;

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::meter::{MeterKind, Metered, Reading};
use serde::{Deserialize, Serialize};

pub use render::PREFIX;

/// Maximum number of series of one metric. A label with a new value for every run would otherwise grow without end.
pub const MAX_SERIES: usize = 10_000;
/// Maximum number of metrics.
pub const MAX_METRICS: usize = 2_000;
/// Maximum length of a label's value; a whole file as a label helps nobody.
pub const MAX_LABEL_LENGTH: usize = 4_096;

/// Sorted by key, each key once.
pub type SeriesLabels = Vec<(String, String)>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meters {
    families: BTreeMap<String, Family>,
    /// Series changed since the last call of [`Meters::take_touched`].
    touched: BTreeSet<(String, SeriesLabels)>,
}

/// One metric: its definition, and its values by labels.
#[derive(Clone, Debug, PartialEq)]
struct Family {
    definition: Definition,
    series: BTreeMap<SeriesLabels, Amount>,
}

/// The definition that all series of a metric share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub kind: MeterKind,
    pub help: String,
    /// Label keys that every series has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Ascending upper bounds of a histogram's buckets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    Number(f64),
    /// Number of observations per bucket, not cumulative; the last is for those above all bounds.
    Spread {
        counts: Vec<u64>,
        sum: f64,
    },
}

/// One series, as persisted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    pub name: String,
    pub labels: SeriesLabels,
    pub definition: Definition,
    pub amount: Amount,
}

/// A gauge whose value is computed on demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    pub name: String,
    pub help: String,
    pub labels: SeriesLabels,
    pub value: f64,
}

impl Definition {
    pub fn of(metered: &Metered) -> Self {
        let buckets = match &metered.reading {
            Reading::Observe { buckets, .. } => buckets.clone(),
            Reading::Count(_) | Reading::Set(_) | Reading::Shift(_) | Reading::Follow => Vec::new(),
        };
        let keys = metered.labels.iter().map(|(key, _)| key.clone()).collect();
        Self { kind: metered.reading.kind(), help: metered.help.clone(), keys, buckets }
    }

    /// Returns why a definition of the same name conflicts with this one.
    pub fn objection(&self, name: &str, other: &Self) -> Option<String> {
        if self.kind != other.kind {
            let (is, wanted) = (self.kind.word(), other.kind.word());
            return Some(format!("Found existing {is} for custom metric {name} of type {wanted}"));
        }
        if self.help != other.help {
            return Some(format!("Help for metric {name} is already set to {}, it cannot be changed", self.help));
        }
        if self.keys != other.keys {
            let list = |keys: &[String]| if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
            return Some(format!(
                "metric {name} has the labels {} already, it cannot have {}",
                list(&self.keys),
                list(&other.keys)
            ));
        }
        (self.buckets != other.buckets).then(|| format!("the buckets of metric {name} are set, they cannot be changed"))
    }
}

impl Meters {
    /// Returns why a reading is rejected: it conflicts with the metric's definition, or a limit is reached.
    pub fn objection(&self, metered: &Metered) -> Option<String> {
        let Some(family) = self.families.get(&metered.name) else {
            let full = self.families.len() >= MAX_METRICS;
            let full = full.then(|| format!("there are {MAX_METRICS} metrics already"));
            return full.or_else(|| self.clash(&metered.name, metered.reading.kind()));
        };
        let flaw = family.definition.objection(&metered.name, &Definition::of(metered));
        flaw.or_else(|| {
            let full = family.series.len() >= MAX_SERIES && !family.series.contains_key(&metered.labels);
            full.then(|| format!("metric {} has {MAX_SERIES} combinations of labels already", metered.name))
        })
    }

    /// Returns the name clash of a new metric. A histogram is published under several names; none of them may be
    /// another metric's.
    fn clash(&self, name: &str, kind: MeterKind) -> Option<String> {
        const PARTS: [&str; 3] = ["_bucket", "_sum", "_count"];
        let histogram =
            |name: &str| self.families.get(name).is_some_and(|family| family.definition.kind == MeterKind::Histogram);
        let other = match kind {
            MeterKind::Histogram => {
                PARTS.iter().map(|part| format!("{name}{part}")).find(|part| self.families.contains_key(part))
            }
            MeterKind::Counter | MeterKind::Gauge => PARTS
                .iter()
                .filter_map(|part| name.strip_suffix(part))
                .find(|whole| histogram(whole))
                .map(str::to_owned),
        }?;
        Some(format!("its name clashes with that of metric {other}"))
    }

    /// Adds a reading. A rejected one changes nothing.
    pub fn take(&mut self, metered: &Metered) {
        if metered.reading == Reading::Follow || self.objection(metered).is_some() {
            return;
        }
        let family = self
            .families
            .entry(metered.name.clone())
            .or_insert_with(|| Family { definition: Definition::of(metered), series: BTreeMap::new() });
        let empty = || match &metered.reading {
            Reading::Observe { buckets, .. } => Amount::Spread { counts: vec![0; buckets.len() + 1], sum: 0.0 },
            Reading::Count(_) | Reading::Set(_) | Reading::Shift(_) | Reading::Follow => Amount::Number(0.0),
        };
        let amount = family.series.entry(metered.labels.clone()).or_insert_with(empty);
        match (amount, &metered.reading) {
            (Amount::Number(number), Reading::Count(more) | Reading::Shift(more)) => *number = bounded(*number + more),
            (Amount::Number(number), Reading::Set(value)) => *number = *value,
            (Amount::Spread { counts, sum }, Reading::Observe { value, buckets }) => {
                let bucket = buckets.iter().position(|bound| value <= bound).unwrap_or(buckets.len());
                if let Some(count) = counts.get_mut(bucket) {
                    *count = count.saturating_add(1);
                }
                *sum = bounded(*sum + value);
            }
            (Amount::Number(_), Reading::Observe { .. } | Reading::Follow)
            | (Amount::Spread { .. }, Reading::Count(_) | Reading::Set(_) | Reading::Shift(_) | Reading::Follow) => {
                unreachable!("a series has the kind its readings have")
            }
        }
        self.touched.insert((metered.name.clone(), metered.labels.clone()));
    }

    /// Drains the series that have changed since the last call.
    pub fn take_touched(&mut self) -> Vec<Series> {
        let touched = std::mem::take(&mut self.touched);
        touched.into_iter().filter_map(|(name, labels)| self.series(&name, labels)).collect()
    }

    fn series(&self, name: &str, labels: SeriesLabels) -> Option<Series> {
        let family = self.families.get(name)?;
        let amount = family.series.get(&labels)?.clone();
        Some(Series { name: name.to_owned(), labels, definition: family.definition.clone(), amount })
    }

    /// Restores a persisted series. One that conflicts with an earlier one is left out and returned as an error.
    pub fn restore(&mut self, series: Series) -> Result<(), String> {
        let Series { name, labels, definition, amount } = series;
        let sound = match &amount {
            Amount::Number(_) => definition.kind != MeterKind::Histogram,
            Amount::Spread { counts, .. } => {
                definition.kind == MeterKind::Histogram && counts.len() == definition.buckets.len() + 1
            }
        };
        if !sound {
            return Err(format!("a value of metric {name} is not that of a {}", definition.kind.word()));
        }
        let family = self
            .families
            .entry(name.clone())
            .or_insert_with(|| Family { definition: definition.clone(), series: BTreeMap::new() });
        if let Some(why) = family.definition.objection(&name, &definition) {
            return Err(why);
        }
        family.series.insert(labels, amount);
        Ok(())
    }
}

/// Clamps a number to the finite range.
fn bounded(number: f64) -> f64 {
    number.clamp(f64::MIN, f64::MAX)
}

#[cfg(test)]
mod tests;
