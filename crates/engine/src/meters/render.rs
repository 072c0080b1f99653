//! Renders metrics in the Prometheus text format.

use std::{collections::BTreeMap, fmt::Write};

use octoflow_model::meter::MeterKind;

use super::{Amount, Definition, Live, Meters, SeriesLabels};

/// Prefix of every metric name.
pub const PREFIX: &str = "argo_workflows_";

impl Meters {
    /// Renders all metrics and these live gauges. A gauge that conflicts with a metric of its name is left out: its
    /// publisher was notified when it began.
    pub fn render(&self, live: &[Live]) -> String {
        let mut gauges: BTreeMap<&str, (Definition, BTreeMap<&SeriesLabels, f64>)> = BTreeMap::new();
        for one in live {
            let definition = Definition {
                kind: MeterKind::Gauge,
                help: one.help.clone(),
                keys: one.labels.iter().map(|(key, _)| key.clone()).collect(),
                buckets: Vec::new(),
            };
            let known = self.families.get(&one.name).map(|family| &family.definition);
            if known.is_some_and(|known| known.objection(&one.name, &definition).is_some()) {
                continue;
            }
            let (first, series) = gauges.entry(&one.name).or_insert_with(|| (definition.clone(), BTreeMap::new()));
            if first.objection(&one.name, &definition).is_none() {
                series.insert(&one.labels, one.value);
            }
        }
        let mut text = String::new();
        for (name, family) in &self.families {
            head(&mut text, name, &family.definition);
            let following = gauges.remove(name.as_str()).map(|(_, series)| series).unwrap_or_default();
            for (labels, amount) in &family.series {
                match amount {
                    // A live gauge is newer than a value set once.
                    Amount::Number(_) if following.contains_key(labels) => {}
                    Amount::Number(number) => sample(&mut text, name, "", labels, None, *number),
                    Amount::Spread { counts, sum } => {
                        spread(&mut text, name, labels, &family.definition.buckets, counts, *sum);
                    }
                }
            }
            following.iter().for_each(|(labels, value)| sample(&mut text, name, "", labels, None, *value));
        }
        for (name, (definition, series)) in &gauges {
            head(&mut text, name, definition);
            series.iter().for_each(|(labels, value)| sample(&mut text, name, "", labels, None, *value));
        }
        text
    }
}

fn head(text: &mut String, name: &str, definition: &Definition) {
    let help = definition.help.replace('\\', "\\\\").replace('\n', "\\n");
    push(text, format_args!("# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {}\n", definition.kind.word()));
}

fn spread(text: &mut String, name: &str, labels: &SeriesLabels, buckets: &[f64], counts: &[u64], sum: f64) {
    let mut below = 0_u64;
    for (at, count) in counts.iter().enumerate() {
        below = below.saturating_add(*count);
        let bound = buckets.get(at).map_or_else(|| "+Inf".to_owned(), f64::to_string);
        sample(text, name, "_bucket", labels, Some(&bound), below as f64);
    }
    sample(text, name, "_sum", labels, None, sum);
    sample(text, name, "_count", labels, None, below as f64);
}

fn sample(text: &mut String, name: &str, suffix: &str, labels: &SeriesLabels, bound: Option<&str>, value: f64) {
    let mut pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
    pairs.extend(bound.map(|bound| format!("le=\"{bound}\"")));
    let labels = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    push(text, format_args!("{PREFIX}{name}{suffix}{labels} {value}\n"));
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to memory does not fail");
}
