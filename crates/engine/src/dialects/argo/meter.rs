//! Reads custom metrics: those of a node or run when it ends, real-time ones when it begins.
//! A metric that cannot be read is recorded as a fact and never changes how anything ends.

use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Time,
    argo::{
        LifecycleFact, Metrics, NodeKind, Role, WorkflowFact,
        body::{Gauge, Histogram, Prometheus},
    },
    meter::{Metered, Reading},
};
use serde::Deserialize;

use super::{
    run::Run,
    scope::Scope,
    substitute::{Missing, fill},
    turn::Turn,
    usage,
    view::View,
};
use crate::meters::{Definition, Live, MAX_LABEL_LENGTH};

/// An event that triggers the reading of metrics.
#[derive(Clone, Copy)]
pub(super) enum MeterTrigger {
    /// The run began.
    Begin,
    /// The run is about to end in this phase.
    End(RunPhase),
    /// The node was added.
    NodeAdded(NodeIx),
    /// The node ended.
    NodeFinished(NodeIx),
}

/// Which metrics are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Real-time gauges.
    Start,
    /// Metrics that are read once.
    Finish,
}

/// Maximum length of the name of a metric or label.
const MAX_NAME_LENGTH: usize = 256;

impl Turn<'_> {
    /// Returns the trigger that a fact is for metrics, before it is folded.
    pub(super) fn trigger(&self, fact: &Fact) -> Option<MeterTrigger> {
        if !self.run.program.metered {
            return None;
        }
        let fact = match fact {
            Fact::Run(RunFact::Ended { phase, .. }) => return Some(MeterTrigger::End(*phase)),
            Fact::Run(
                RunFact::Submitted(_)
                | RunFact::Suspended { .. }
                | RunFact::Resumed { .. }
                | RunFact::ShuttingDown { .. }
                | RunFact::DeadlinePassed { .. }
                | RunFact::Deadlock { .. }
                | RunFact::Marked { .. },
            )
            | Fact::TaskSet(_)
            | Fact::VolcanoJob(_)
            | Fact::KubeJob(_)
            | Fact::JobFlow(_)
            | Fact::SubmittedJob(_) => return None,
            Fact::Workflow(fact) => fact,
        };
        match fact.lifecycle()? {
            LifecycleFact::Began => Some(MeterTrigger::Begin),
            // A reused node was metered in the previous run.
            LifecycleFact::Added(added) if added.reused => None,
            LifecycleFact::Finished(finished) if self.run.state.node(finished.node).untouched() => None,
            LifecycleFact::Added(added) if added.phase.fulfilled() => {
                Some(MeterTrigger::NodeFinished(self.view().next_node()))
            }
            LifecycleFact::Added(_) => Some(MeterTrigger::NodeAdded(self.view().next_node())),
            LifecycleFact::Finished(finished) => Some(MeterTrigger::NodeFinished(finished.node)),
            LifecycleFact::Launched(_) | LifecycleFact::Requeued(_) => None,
        }
    }

    /// Reads the metrics that a fact triggers, after it was folded.
    pub(super) fn meter(&mut self, trigger: MeterTrigger) {
        match trigger {
            MeterTrigger::Begin => self.meter_run(Pass::Start, RunPhase::Running),
            MeterTrigger::NodeAdded(at) => self.meter_node(at, Pass::Start),
            MeterTrigger::NodeFinished(at) if self.run.state.node(at).phase.completed() => {
                self.meter_node(at, Pass::Finish)
            }
            MeterTrigger::NodeFinished(_) | MeterTrigger::End(_) => {}
        }
    }

    /// Reads the run's own metrics, before its last fact.
    pub(super) fn meter_end(&mut self, phase: RunPhase) {
        self.meter_run(Pass::Finish, phase);
    }

    fn meter_run(&mut self, pass: Pass, phase: RunPhase) {
        let Some(metrics) = self.run.program.workflow.spec.metrics.clone() else { return };
        let state = &self.run.state;
        let span = self.now.since(state.began.unwrap_or(self.now));
        let mut locals = vec![
            ("duration", format!("{:.6}", span.as_secs_f64())),
            ("status", phase.word().to_owned()),
            ("workflow.status", phase.word().to_owned()),
        ];
        if mentions(&metrics, "resourcesDuration") {
            let (_, whole) = usage::of_all(self.run);
            locals.push(("resourcesDuration.cpu", whole.get("cpu").to_string()));
            locals.push(("resourcesDuration.memory", whole.get("memory").to_string()));
        }
        self.read(&metrics, None, pass, &locals);
    }

    fn meter_node(&mut self, at: NodeIx, pass: Pass) {
        let node = self.run.state.node(at);
        // A retried call is metered once, and a loop item by item.
        let called = !matches!(node.role, Role::Attempt(_))
            && !matches!(
                node.kind,
                NodeKind::StepGroup | NodeKind::TaskGroup | NodeKind::Skipped | NodeKind::Container
            );
        if !called || node.template.as_deref().and_then(|name| self.run.program.compiled(name)).is_none() {
            return;
        }
        let compiled = self.run.compiled_of(at).clone();
        let Some(metrics) = &compiled.template.metrics else { return };
        let inline;
        let metrics = if compiled.inline() {
            match self.inline_metrics(at) {
                Ok(filled) => inline = filled,
                Err(why) => return self.unmetered(why),
            }
            &inline
        } else {
            metrics
        };
        let mut locals = self.view().locals(at);
        locals.extend(self.view().node_locals(at, metrics));
        self.read(metrics, Some(at), pass, &locals);
    }

    /// Fills the metrics of an inline template with the variables of its caller.
    fn inline_metrics(&mut self, at: NodeIx) -> Result<Metrics, String> {
        if let Some((boundary, _, _)) = self.run.site_of(at) {
            self.instance(boundary)?;
        }
        let raw = self.view().inline_raw(at)?;
        Metrics::deserialize(&raw["metrics"]).map_err(|error| format!("its metrics cannot be read: {error}"))
    }

    fn read(&mut self, metrics: &Metrics, node: Option<NodeIx>, pass: Pass, locals: &[(&'static str, String)]) {
        for metric in &metrics.prometheus {
            let follows = metric.gauge.as_ref().is_some_and(|gauge| gauge.realtime);
            if follows != (pass == Pass::Start) {
                continue;
            }
            match self.reading(metric, node, locals) {
                Ok(Some(metered)) => {
                    let definition = Definition::of(&metered);
                    self.defined.entry(metered.name.clone()).or_insert(definition);
                    self.decide(WorkflowFact::Metered(Box::new(metered)));
                }
                Ok(None) => {}
                Err(why) => self.unmetered(why),
            }
        }
    }

    fn unmetered(&mut self, message: String) {
        self.decide(WorkflowFact::Unmetered { message });
    }

    /// Evaluates a metric with its variables filled in; `None` if its condition does not hold.
    fn reading(
        &self,
        metric: &Prometheus,
        node: Option<NodeIx>,
        locals: &[(&'static str, String)],
    ) -> Result<Option<Metered>, String> {
        let metric_name = &metric.name;
        let of = node.map(|at| self.run.state.node(at));
        let scope = Scope {
            inputs: of.and_then(|node| node.inputs.as_deref()),
            outputs: of.and_then(|node| node.outputs.as_deref()),
            template: node.map(|at| &*self.run.compiled_of(at).template),
            locals,
            ..Scope::new(self.run, self.now).about(of.map_or("", |node| &node.name)).about(metric_name)
        };
        let put = |text: &str| {
            let filled = fill(text, &scope, Missing::RefuseAll);
            let filled =
                filled.map_err(|error| format!("unable to substitute parameters for metric '{metric_name}': {error}"));
            filled.map(std::borrow::Cow::into_owned)
        };
        if let Some(condition) = metric.when.as_deref().filter(|condition| !condition.is_empty()) {
            let holds = scope.meter.holds(&put(condition)?);
            if !holds.map_err(|error| format!("unable to compute 'when' clause for metric '{metric_name}': {error}"))? {
                return Ok(None);
            }
        }
        let wrong = |why: String| format!("could not construct metric '{metric_name}': {why}");
        let (name, help) = (put(&metric.name)?, put(&metric.help)?);
        if help.is_empty() {
            return Err(format!("metric '{name}' must contain a help string under 'help: ' field"));
        }
        if !is_metric_name(&name) {
            return Err(wrong(BAD_NAME.to_owned()));
        }
        let mut labels: Vec<(String, String)> = Vec::new();
        for label in &metric.labels {
            let (key, value) = (put(&label.key)?, put(&label.value.0)?);
            if let Some(flaw) = label_flaw(&key, metric.histogram.is_some()) {
                return Err(wrong(flaw));
            }
            if value.len() > MAX_LABEL_LENGTH {
                return Err(wrong(format!("the value of label '{key}' is longer than {MAX_LABEL_LENGTH} bytes")));
            }
            labels.retain(|(known, _)| *known != key);
            labels.push((key, value));
        }
        labels.sort();
        let number = |text: &str| number(&put(text)?).map_err(wrong);
        let reading = match (&metric.counter, &metric.gauge, &metric.histogram) {
            (Some(counter), None, None) => match number(&counter.value.0)? {
                value if value < 0.0 => return Err(wrong("counter cannot decrease in value".to_owned())),
                value => Reading::Count(value),
            },
            (None, Some(gauge), None) if gauge.realtime => Reading::Follow,
            (None, Some(gauge), None) => {
                let value = number(&gauge.value.0)?;
                match gauge.operation.as_deref().unwrap_or_default() {
                    "" | "Set" => Reading::Set(value),
                    "Add" => Reading::Shift(value),
                    "Sub" => Reading::Shift(-value),
                    other => return Err(wrong(format!("operation '{other}' is not one of Set, Add, Sub"))),
                }
            }
            (None, None, Some(histogram)) => {
                let buckets = buckets(histogram).map_err(wrong)?;
                Reading::Observe { value: number(&histogram.value.0)?, buckets }
            }
            _ => return Err(wrong("it needs exactly one of counter, gauge and histogram".to_owned())),
        };
        // A node's real-time gauge may measure the run.
        let node = if reading == Reading::Follow
            && let Some(gauge) = &metric.gauge
        {
            followed(gauge, node)?
        } else {
            node
        };
        let metered = Metered { node, name, help, labels, reading };
        let definition = Definition::of(&metered);
        let here = self.defined.get(&metered.name).and_then(|known| known.objection(&metered.name, &definition));
        match here.or_else(|| self.world.meters.objection(&metered)) {
            Some(why) => Err(wrong(why)),
            None => Ok(Some(metered)),
        }
    }
}

impl View<'_> {
    fn node_locals(&self, at: NodeIx, metrics: &Metrics) -> Vec<(&'static str, String)> {
        let node = self.run.state.node(at);
        let span = node.finished.unwrap_or(self.now).since(node.started);
        let mut locals =
            vec![("duration", format!("{:.6}", span.as_secs_f64())), ("status", node.phase.word().to_owned())];
        if let Some(code) = node.outputs.as_ref().and_then(|outputs| outputs.exit_code.clone()) {
            locals.push(("exitCode", code));
        }
        if node.kind == NodeKind::Retry {
            let tries =
                node.children.iter().filter(|child| matches!(self.run.state.node(**child).role, Role::Attempt(_)));
            locals.push(("retries", tries.count().saturating_sub(1).to_string()));
        }
        if mentions(metrics, "resourcesDuration") {
            let usage = usage::below(self.run, at);
            locals.push(("resourcesDuration.cpu", usage.get("cpu").to_string()));
            locals.push(("resourcesDuration.memory", usage.get("memory").to_string()));
        }
        locals
    }
}

impl Run {
    /// Returns the real-time gauges of this run with their current values.
    pub fn live_meters(&self, now: Time) -> impl Iterator<Item = Live> + '_ {
        self.state.following.iter().map(move |metered| {
            let (since, until) = match metered.node.map(|at| self.state.node(at)) {
                Some(node) => (node.started, node.finished),
                None => (self.state.began.unwrap_or(now), self.state.ended),
            };
            Live {
                name: metered.name.clone(),
                help: metered.help.clone(),
                labels: metered.labels.clone(),
                value: until.unwrap_or(now).since(since).as_secs_f64(),
            }
        })
    }
}

/// Decides what a real-time gauge measures: only the duration of its own node, or of the run, is possible.
fn followed(gauge: &Gauge, node: Option<NodeIx>) -> Result<Option<NodeIx>, String> {
    let text = gauge.value.0.trim();
    let Some(name) = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")).map(str::trim) else {
        return Err("real time metrics can only be used with metric variables".to_owned());
    };
    match (name, node) {
        ("duration", Some(node)) => Ok(Some(node)),
        ("workflow.duration", _) => Ok(None),
        _ => Err(format!("'{name}' is not available as a real time metric")),
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.trim().parse().map_err(|_| format!("'{}' is not a number", crate::admit::shape::short(text)))?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(format!("'{}' is not a finite number", crate::admit::shape::short(text)))
    }
}

/// Parses the upper bounds, which must rise. A final infinite bound is implied.
pub(super) fn buckets(histogram: &Histogram) -> Result<Vec<f64>, String> {
    let mut bounds = Vec::with_capacity(histogram.buckets.len());
    for (at, text) in histogram.buckets.iter().enumerate() {
        if at + 1 == histogram.buckets.len() && matches!(text.0.trim(), "+Inf" | "Inf") {
            break;
        }
        let bound = number(&text.0)?;
        if bounds.last().is_some_and(|last| *last >= bound) {
            return Err(format!("the buckets of a histogram must rise, and {bound} does not"));
        }
        bounds.push(bound);
    }
    Ok(bounds)
}

pub(super) const BAD_NAME: &str = "metric name is invalid: names may only contain alphanumeric characters, '_', or ':'";

pub(super) fn is_metric_name(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
        && !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
}

/// Why a label cannot have this key. A colon is reserved for metric names, and some keys are reserved altogether.
pub(super) fn label_flaw(key: &str, histogram: bool) -> Option<String> {
    if !is_metric_name(key) || key.contains(':') {
        return Some(format!(
            "metric label '{}' is invalid: keys may only contain alphanumeric characters or '_'",
            crate::admit::shape::short(key)
        ));
    }
    let reserved = key.starts_with("__") || histogram && key == "le";
    reserved.then(|| format!("metric label '{key}' is invalid: it is reserved"))
}

/// Whether some text of the metrics mentions this word.
pub(super) fn mentions(metrics: &Metrics, word: &str) -> bool {
    metrics.prometheus.iter().any(|metric| texts(metric).any(|text| text.contains(word)))
}

/// Iterates over all texts of a metric that may contain variables.
pub(super) fn texts(metric: &Prometheus) -> impl Iterator<Item = &str> {
    let labels = metric.labels.iter().flat_map(|label| [label.key.as_str(), label.value.0.as_str()]);
    let values = [
        metric.counter.as_ref().map(|counter| counter.value.0.as_str()),
        metric.gauge.as_ref().map(|gauge| gauge.value.0.as_str()),
        metric.histogram.as_ref().map(|histogram| histogram.value.0.as_str()),
        metric.when.as_deref(),
    ];
    [metric.name.as_str(), metric.help.as_str()].into_iter().chain(labels).chain(values.into_iter().flatten())
}
