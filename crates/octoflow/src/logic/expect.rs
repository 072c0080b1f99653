//! Compares what came of a case with what was expected. Everything that differs is told, each at its own place.

mod compare;
mod given;
mod node;
mod order;

use std::collections::HashSet;

use octoflow_engine::expr::nearest;
use serde_json::Value;

pub(super) use self::compare::differs;
use self::compare::{at_path, show};
use super::{
    drive::ScenarioResult,
    notation::{Bound, Count, Span, like},
    snapshot::{Snapshot, SnapshotNode},
    test_document::Located,
    verdict::Verdict,
};

/// What is compared: one run at one moment.
pub(super) struct Check<'c, 'a> {
    pub(super) outcome: &'c ScenarioResult<'a>,
    pub(super) run: usize,
    pub(super) seen: &'c Snapshot,
    pub(super) verdict: &'c mut Verdict,
}

/// Everything expected of a case that has run.
pub(crate) fn expect(expected: &Located<'_>, outcome: &ScenarioResult<'_>, verdict: &mut Verdict) {
    for run in 0..outcome.submitted {
        Check { outcome, run, seen: &outcome.last[run], verdict }.whole(expected);
    }
    order::check(expected, outcome, None, verdict);
    let most = (outcome.peak, outcome.launches.len());
    peak(expected, most, verdict);
    if let Some(located) = expected.get("metrics")
        && let Some(wanted) = differs(&located, &outcome.metrics)
    {
        verdict.miss(&located, "metrics", wanted, show(&outcome.metrics));
    }
    for (name, expected) in expected.entries_of("runs") {
        let Some(run) = outcome.names.iter().position(|known| known == name) else {
            let hint =
                nearest(name, outcome.names.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
            let actual = format!("there are {}{}", outcome.names.join(", "), hint.unwrap_or_default());
            verdict.miss(&expected, format!("runs.{name}"), "a run of this name", actual);
            continue;
        };
        Check { outcome, run, seen: &outcome.last[run], verdict }.whole(&expected);
        order::check(&expected, outcome, Some(run), verdict);
        let tasks = outcome.launches.iter().filter(|launch| launch.run == run).count();
        peak(&expected, (outcome.peaks[run], tasks), verdict);
    }
}

fn peak(expected: &Located<'_>, (peak, tasks): (usize, usize), verdict: &mut Verdict) {
    for (key, actual) in [("atOnce", peak), ("tasks", tasks)] {
        if let Some(located) = expected.get(key) {
            count(&located, key, actual, verdict);
        }
    }
}

pub(super) fn count(located: &Located<'_>, what: &str, actual: usize, verdict: &mut Verdict) {
    let text = located.text();
    if Bound::<Count>::parse(&text).is_ok_and(|bound| !bound.holds(Count(actual))) {
        verdict.miss(located, what, text, actual.to_string());
    }
}

/// Compares a span; what has no end yet differs from everything.
pub(super) fn span(located: &Located<'_>, what: &str, actual: Option<std::time::Duration>, verdict: &mut Verdict) {
    let text = located.text();
    let Ok(bound) = Bound::<Span>::parse(&text) else { return };
    match actual {
        Some(actual) if bound.holds(Span(actual)) => {}
        Some(actual) => verdict.miss(located, what, text, Span(actual).to_string()),
        None => verdict.miss(located, what, text, "it has not come to that"),
    }
}

impl Check<'_, '_> {
    /// The end, and the moments before.
    fn whole(&mut self, expected: &Located<'_>) {
        self.state(expected);
        if let Some(located) = expected.get("duration") {
            let took = self.seen.began.and_then(|began| Some(self.seen.ended?.since(began)));
            span(&located, "duration", took, self.verdict);
        }
        for moment in expected.items_of("moments") {
            let text = moment.text_of("at").unwrap_or_default();
            let Ok(at) = crate::cli::span::parse(&text) else { continue };
            let seen = self.outcome.moments.iter().find(|(known, _)| *known == at);
            let Some(seen) = seen.and_then(|(_, seen)| seen[self.run].as_ref()) else {
                self.verdict.miss(&moment, "moments", format!("the run is there after {text}"), "it is not");
                continue;
            };
            Check { outcome: self.outcome, run: self.run, seen, verdict: self.verdict }.state(&moment);
        }
    }

    /// What can be said of any moment.
    fn state(&mut self, expected: &Located<'_>) {
        for (key, located) in expected.entries() {
            let status = &self.seen.object["status"];
            match key {
                "phase" => self.phase(&located),
                "message" => self.text(&located, key, &self.seen.message),
                "progress" => self.text(&located, key, status["progress"].as_str().unwrap_or_default()),
                "outputs" => self.values(&located, key, &status["outputs"]),
                "labels" | "annotations" => self.named(&located, key, &self.seen.object["metadata"][key]),
                "nodes" => located.entries().for_each(|(name, located)| node::check(self, name, &located)),
                "all" => {
                    located.entries().for_each(|(name, located)| node::check(self, name, &located));
                    self.no_others(&located);
                }
                "absent" => located.items().for_each(|located| self.absent(&located)),
                "only" => self.same_names(&located, "only", &self.seen.nodes.iter().collect::<Vec<_>>()),
                "nodeCount" => count(&located, key, self.seen.nodes.len(), self.verdict),
                "explain" => located.entries().for_each(|(name, located)| self.reason(name, &located)),
                "json" => self.paths(&located, "json", &self.seen.object),
                _ => {}
            }
        }
    }

    fn phase(&mut self, located: &Located<'_>) {
        let (expected, actual) = (located.text(), self.seen.phase());
        if expected == actual {
            return;
        }
        let mut told = actual.to_owned();
        let message = &self.seen.message;
        if !message.is_empty() {
            told = format!("{told}: {message}");
        }
        if self.seen.ended.is_none() {
            told = format!("{told}; what is open:{}", self.waiting());
        }
        self.verdict.miss(located, "phase", expected, told);
    }

    pub(super) fn text(&mut self, located: &Located<'_>, what: &str, actual: &str) {
        if let Some(expected) = differs(located, actual) {
            self.verdict.miss(located, what, expected, show(actual));
        }
    }

    /// A mapping of names to texts.
    pub(super) fn named(&mut self, expected: &Located<'_>, what: &str, actual: &Value) {
        for (name, located) in expected.entries() {
            let what = format!("{what}.{name}");
            match actual[name].as_str() {
                Some(actual) => self.text(&located, &what, actual),
                None => {
                    let expected = differs(&located, "\u{0}").unwrap_or_default();
                    let names: Vec<&str> =
                        actual.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                    self.verdict.miss(&located, what, expected, nothing(&names));
                }
            }
        }
    }

    /// Inputs or outputs.
    pub(super) fn values(&mut self, expected: &Located<'_>, what: &str, actual: &Value) {
        let list = |key: &str| actual[key].as_array().into_iter().flatten();
        for (key, located) in expected.entries() {
            let what = format!("{what}.{key}");
            match key {
                "parameters" | "artifacts" => {
                    let found: serde_json::Map<String, Value> = list(key)
                        .filter_map(|one| {
                            let text =
                                if key == "parameters" { Some(plain(&one["value"])) } else { self.contents(one) };
                            Some((one["name"].as_str()?.to_owned(), Value::String(text?)))
                        })
                        .collect();
                    self.named(&located, &what, &Value::Object(found));
                }
                "none" => {
                    for located in located.items() {
                        let name = located.text();
                        if list("parameters").chain(list("artifacts")).any(|one| one["name"] == *name) {
                            self.verdict.miss(&located, &what, format!("no `{name}`"), "it is there");
                        }
                    }
                }
                _ => match actual[key].as_str() {
                    Some(actual) => self.text(&located, &what, actual),
                    None => {
                        let expected = differs(&located, "\u{0}").unwrap_or_default();
                        self.verdict.miss(&located, &what, expected, "nothing");
                    }
                },
            }
        }
    }

    /// The text of an artifact as the status tells of it.
    fn contents(&self, artifact: &Value) -> Option<String> {
        if let Some(data) = artifact["raw"]["data"].as_str() {
            return Some(data.to_owned());
        }
        let digest = artifact["local"]["digest"].as_str()?;
        self.outcome.artifact_texts.text(digest).map(str::to_owned)
    }

    fn absent(&mut self, located: &Located<'_>) {
        let name = located.text();
        let found = find(self.seen, &name);
        if let Some(first) = found.first() {
            let node = &self.seen.nodes[*first];
            let actual = format!("{} is {}", node.name, node.value["phase"].as_str().unwrap_or_default());
            self.verdict.miss(located, "absent", format!("no node `{name}`"), actual);
        }
    }

    fn no_others(&mut self, expected: &Located<'_>) {
        let meant: HashSet<usize> = expected.entries().flat_map(|(name, _)| find(self.seen, name)).collect();
        let others = self.seen.nodes.iter().enumerate().filter(|(at, _)| !meant.contains(at));
        let others: Vec<String> =
            others.map(|(_, node)| format!("{}: {}", node.name, plain(&node.value["phase"]))).collect();
        if !others.is_empty() {
            self.verdict.miss(expected, "all", "no other nodes", others.join("\n"));
        }
    }

    fn reason(&mut self, name: &str, located: &Located<'_>) {
        let display = |node: &SnapshotNode| node.name == name;
        let also = self.seen.nodes.iter().find(|node| display(node)).map(|node| node.display.as_str());
        let found: Vec<&str> = self
            .seen
            .reasons
            .iter()
            .filter(|(node, _)| node == name || Some(node.as_str()) == also)
            .map(|(_, why)| why.as_str())
            .collect();
        let what = format!("explain.{name}");
        if found.is_empty() {
            let expected = differs(located, "\u{0}").unwrap_or_default();
            self.verdict.miss(located, what, expected, format!("it does not wait; what does:{}", self.waiting()));
            return;
        }
        if !found.iter().any(|why| differs(located, why).is_none()) {
            self.text(located, &what, &found.join("; "));
        }
    }

    /// The first few who wait, a line each.
    fn waiting(&self) -> String {
        const SHOWN: usize = 5;
        self.seen.reasons.iter().take(SHOWN).map(|(node, why)| format!("\n{node}: {why}")).collect()
    }

    pub(super) fn paths(&mut self, expected: &Located<'_>, what: &str, actual: &Value) {
        for (path, located) in expected.entries() {
            let what = format!("{what}.{path}");
            match at_path(actual, path) {
                Err(why) => self.verdict.miss(&located, what, "a path such as status.phase", why),
                Ok(found) => {
                    let missing = if let Some(text) = found.as_str().filter(|_| compare::is_matcher(located.value)) {
                        differs(&located, text)
                    } else {
                        (found != *located.value).then(|| located.value.to_string())
                    };
                    if let Some(expected) = missing {
                        self.verdict.miss(&located, what, expected, found.to_string());
                    }
                }
            }
        }
    }

    /// Exactly these nodes, each by full or display name.
    pub(super) fn same_names(&mut self, expected: &Located<'_>, what: &str, nodes: &[&SnapshotNode]) {
        let mut left: Vec<&SnapshotNode> = nodes.to_vec();
        let mut lacking = Vec::new();
        for name in expected.texts() {
            match left.iter().position(|node| node.name == name || node.display == name) {
                Some(at) => drop(left.swap_remove(at)),
                None => lacking.push(name),
            }
        }
        if lacking.is_empty() && left.is_empty() {
            return;
        }
        let mut told: Vec<String> = lacking.iter().map(|name| format!("not there: {name}")).collect();
        let mut extra: Vec<&str> = left.iter().map(|node| node.name.as_str()).collect();
        extra.sort_unstable();
        told.extend(extra.iter().map(|name| format!("there too: {name}")));
        self.verdict.miss(expected, what, expected.texts().join(", "), told.join("\n"));
    }
}

/// The nodes a name means: by full name, else by display name, else all that are like it. A run and one of its nodes may
/// have the same name; then both are meant, and whoever asks for one is told so.
pub(super) fn find(seen: &Snapshot, name: &str) -> Vec<usize> {
    let all = |fits: &dyn Fn(&SnapshotNode) -> bool| -> Vec<usize> {
        seen.nodes.iter().enumerate().filter(|(_, node)| fits(node)).map(|(at, _)| at).collect()
    };
    let (full, display) = (all(&|node| node.name == name), all(&|node| node.display == name));
    if full.first().is_some_and(|at| *at > 0) || display.is_empty() && !full.is_empty() {
        return full;
    }
    if !display.is_empty() {
        return display;
    }
    if name.contains('*') { all(&|node| like(name, &node.name) || like(name, &node.display)) } else { Vec::new() }
}

/// What to say of a node that is not there.
pub(super) fn unknown(seen: &Snapshot, name: &str) -> String {
    let displays: Vec<&str> = seen.nodes.iter().map(|node| node.display.as_str()).collect();
    let names = seen.nodes.iter().map(|node| node.name.as_str()).chain(displays.iter().copied());
    match nearest(name, names) {
        Some(near) => format!("there is none; did you mean `{near}`?"),
        None => nothing(&displays),
    }
}

fn nothing(known: &[&str]) -> String {
    const SHOWN: usize = 12;
    match known.len() {
        0 => "there is none".to_owned(),
        1..=SHOWN => format!("there is none; there are {}", known.join(", ")),
        more => format!("there is none; there are {} and {} more", known[..SHOWN].join(", "), more - SHOWN),
    }
}

/// A text as itself, anything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
