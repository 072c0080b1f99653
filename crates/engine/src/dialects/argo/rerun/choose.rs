//! Selects the nodes of an old run that run again. Everything that succeeded is kept, unless the user selected it, it
//! comes after something that runs again, or its artifacts are gone.

use std::{borrow::Cow, collections::BTreeSet};

use super::{Rerun, RerunOptions, RerunRefusal, RunContext, Why, graph::NodeGraph};
use crate::dialects::argo::selector::{Selector, input_named};

/// Name of the artifact with a task's log; it is never an input.
const LOG_ARTIFACT: &str = "main-logs";

pub(super) struct Choice {
    /// Why each node runs again, by node. Nodes with children have a reason only if the user selected them.
    why: Vec<Option<Why>>,
    /// Whether each node's result is kept, by node.
    keep: Vec<bool>,
}

impl Choice {
    pub(super) fn make(
        graph: &NodeGraph<'_>,
        context: &RunContext,
        options: &RerunOptions,
    ) -> Result<Self, RerunRefusal> {
        let mut choice = Self { why: vec![None; graph.nodes.len()], keep: vec![false; graph.nodes.len()] };
        choice.select_chosen(graph, options)?;
        let tolerated = Tolerated::of(graph);
        choice.select_failed(graph, context, &tolerated, options.failed);
        choice.join_attempts(graph);
        let mut affected = choice.affected(graph, &tolerated);
        choice.select_daemons(graph, options, &mut affected);
        choice.select_handlers(graph, &affected);
        choice.select_omitted(graph, &affected);
        choice.keep_the_rest(graph, &tolerated);
        Ok(choice)
    }

    pub(super) fn keeps(&self, at: usize) -> bool {
        self.keep[at]
    }

    pub(super) fn reruns(&self, at: usize) -> bool {
        self.why[at].is_some()
    }

    /// Lists what runs again, in the order it ran: tasks, not the nodes around them; a retried task once.
    pub(super) fn list(&self, graph: &NodeGraph<'_>) -> Vec<Rerun> {
        let mut list = Vec::new();
        let mut seen = BTreeSet::new();
        for (at, why) in self.why.iter().enumerate() {
            let Some(why) = why else { continue };
            let node = &graph.nodes[at];
            if !graph.is_leaf(at) && node.kind != "Skipped" {
                continue;
            }
            let listed_as = graph.retry_of(at).unwrap_or(at);
            if seen.insert(listed_as) {
                let node = &graph.nodes[listed_as];
                let display = node.value["displayName"].as_str().unwrap_or(node.name);
                list.push(Rerun { node: node.name.to_owned(), display: display.to_owned(), why: why.clone() });
            }
        }
        list
    }

    fn select(&mut self, at: usize, why: Why) {
        self.why[at].get_or_insert(why);
    }

    fn select_after(&mut self, graph: &NodeGraph<'_>, from: &[usize]) {
        for (at, source) in graph.after(from) {
            self.select(at, Why::After(graph.nodes[source].name.to_owned()));
        }
    }

    fn select_chosen(&mut self, graph: &NodeGraph<'_>, options: &RerunOptions) -> Result<(), RerunRefusal> {
        let mut chosen: Vec<(usize, bool)> = Vec::new();
        if let (true, Some(text)) = (options.restart_successful, &options.selector) {
            let selector = Selector::parse(text).ok_or_else(|| RerunRefusal::Selector { text: text.clone() })?;
            let all = 0..graph.nodes.len();
            let matching = all.filter(|at| selector.holds(|key| field(graph, *at, key)));
            chosen.extend(matching.map(|at| (at, true)));
            if chosen.is_empty() {
                return Err(RerunRefusal::NoMatch { selector: text.clone() });
            }
        }
        for (names, onwards) in [(&options.nodes, false), (&options.from, true)] {
            for name in names {
                let found = named(graph, name);
                if found.is_empty() {
                    return Err(RerunRefusal::NoNode { node: name.clone() });
                }
                chosen.extend(found.into_iter().map(|at| (at, onwards)));
            }
        }
        let mut from = Vec::new();
        for (at, onwards) in chosen {
            let whole = graph.with_below(graph.retry_of(at).unwrap_or(at));
            whole.iter().for_each(|at| self.select(*at, Why::Chosen));
            if onwards {
                from.extend(whole);
            }
        }
        self.select_after(graph, &from);
        Ok(())
    }

    /// Selects nodes whose failure was not excused, and what comes after them.
    fn select_failed(&mut self, graph: &NodeGraph<'_>, context: &RunContext, tolerated: &Tolerated, all: bool) {
        let mut from = Vec::new();
        for (at, node) in graph.nodes.iter().enumerate() {
            let leaf = graph.is_leaf(at) || node.kind == "Skipped";
            if !leaf || graph.in_hook(at) {
                continue;
            }
            let tried_again = || graph.retry_of(at).is_some_and(|retry| graph.nodes[retry].phase == "Succeeded");
            if node.bad() && (!tolerated.is(graph, at) || all && !tried_again()) {
                self.select(at, Why::Ended { phase: node.phase.to_owned(), message: node.message().to_owned() });
                from.push(at);
            } else if !node.over() {
                self.select(at, Why::Unfinished);
            } else if let Some(artifact) = deleted_artifact(node.value, context.deleting.contains(node.id)) {
                self.select(at, Why::Gone { artifact });
            }
        }
        self.select_after(graph, &from);
    }

    /// Makes the attempts of a call uniform: all kept, or all run again.
    fn join_attempts(&mut self, graph: &NodeGraph<'_>) {
        for (retry, node) in graph.nodes.iter().enumerate() {
            if node.kind != "Retry" {
                continue;
            }
            let tries: Vec<usize> = graph.attempts_of(retry).filter(|at| graph.is_leaf(*at)).collect();
            if let Some(why) = tries.iter().find_map(|at| self.why[*at].clone()) {
                tries.into_iter().for_each(|at| self.select(at, why.clone()));
            }
        }
    }

    /// Marks the nodes that may end differently than they did.
    fn affected(&self, graph: &NodeGraph<'_>, tolerated: &Tolerated) -> Vec<bool> {
        let mut affected = vec![false; graph.nodes.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            let runs = self.reruns(at) && !graph.in_hook(at);
            if runs || !graph.in_hook(at) && (node.bad() && !tolerated.is(graph, at) || !node.over()) {
                affected[at] = true;
                graph.above(at).for_each(|up| affected[up] = true);
            }
        }
        affected
    }

    /// Selects daemons, which are not running any more, if something in their boundary runs again.
    fn select_daemons(&mut self, graph: &NodeGraph<'_>, options: &RerunOptions, affected: &mut [bool]) {
        for (at, node) in graph.nodes.iter().enumerate() {
            if !node.daemon || !graph.is_leaf(at) {
                continue;
            }
            let boundary = graph.boundary_of(at);
            let calm =
                boundary.is_some_and(|boundary| !affected[boundary] && graph.nodes[boundary].phase == "Succeeded");
            if !calm || !options.parameters.is_empty() {
                self.select(at, Why::Daemon);
                affected[at] = true;
                graph.above(at).for_each(|up| affected[up] = true);
            }
        }
        self.join_attempts(graph);
    }

    /// Selects handlers and hooks together with what they belong to; those of the run always run again.
    fn select_handlers(&mut self, graph: &NodeGraph<'_>, affected: &[bool]) {
        for (at, node) in graph.nodes.iter().enumerate() {
            if !node.hooked {
                continue;
            }
            let owner = node.name.strip_suffix(".onExit").or_else(|| Some(node.name.rsplit_once(".hooks.")?.0));
            let owner = owner.filter(|owner| *owner != graph.run).and_then(|owner| graph.find(owner));
            if owner.is_none_or(|owner| affected[owner]) {
                graph.with_below(at).into_iter().for_each(|at| self.select(at, Why::Handler));
            }
        }
        self.join_attempts(graph);
    }

    fn select_omitted(&mut self, graph: &NodeGraph<'_>, affected: &[bool]) {
        for (at, node) in graph.nodes.iter().enumerate() {
            if node.phase == "Omitted" && graph.above(at).any(|up| affected[up]) {
                self.why[at] = Some(Why::Omitted);
            }
        }
    }

    fn keep_the_rest(&mut self, graph: &NodeGraph<'_>, tolerated: &Tolerated) {
        for (at, node) in graph.nodes.iter().enumerate() {
            self.keep[at] = node.over()
                && self.why[at].is_none()
                && match node.kind {
                    // Only a retry node that gave up and was excused says something its attempts do not say.
                    "Retry" if !node.recalled() => {
                        let calm = graph.with_below(at).into_iter().all(|at| self.why[at].is_none());
                        node.bad() && calm && (graph.in_hook(at) || tolerated.is(graph, at))
                    }
                    _ => graph.is_leaf(at),
                };
        }
    }
}

/// Failures that were excused.
struct Tolerated {
    /// Whether something ran after the node in spite of its failure and nothing was omitted because of it, by node.
    passed: Vec<bool>,
}

impl Tolerated {
    fn of(graph: &NodeGraph<'_>) -> Self {
        let mut passed = vec![false; graph.nodes.len()];
        let mut missed = vec![false; graph.nodes.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            for next in node.children.iter().copied().filter(|next| !graph.in_hook(*next)) {
                let marks = if graph.nodes[next].phase == "Omitted" { &mut missed } else { &mut passed };
                let left = std::iter::once(at).chain(graph.above(at)).filter(|up| !graph.is_below(next, *up));
                left.for_each(|up| marks[up] = true);
            }
        }
        passed.iter_mut().zip(missed).for_each(|(passed, missed)| *passed &= !missed);
        Self { passed }
    }

    fn is(&self, graph: &NodeGraph<'_>, at: usize) -> bool {
        self.passed[at] || graph.above(at).any(|up| self.passed[up] || graph.nodes[up].phase == "Succeeded")
    }
}

/// Names an artifact of the node that is not there any more.
fn deleted_artifact(node: &serde_json::Value, deleting: bool) -> Option<String> {
    let artifacts = node["outputs"]["artifacts"].as_array()?;
    let lost =
        |artifact: &&serde_json::Value| artifact["name"] != LOG_ARTIFACT && (deleting || artifact["deleted"] == true);
    Some(artifacts.iter().find(lost)?["name"].as_str().unwrap_or_default().to_owned())
}

fn named(graph: &NodeGraph<'_>, name: &str) -> Vec<usize> {
    let is = |at: &usize| {
        let node = &graph.nodes[*at];
        node.name == name || node.id == name || node.value["displayName"] == name
    };
    (0..graph.nodes.len()).filter(is).collect()
}

/// Returns a field of a node, by its name in selectors.
fn field<'g>(graph: &NodeGraph<'g>, at: usize, key: &str) -> Option<Cow<'g, str>> {
    let value = graph.nodes[at].value;
    let found = match key {
        "id" | "name" | "displayName" | "templateName" | "phase" => &value[key],
        "templateRef.name" => &value["templateRef"]["name"],
        "templateRef.template" => &value["templateRef"]["template"],
        key => {
            let name = input_named(key)?;
            let parameters = value["inputs"]["parameters"].as_array()?;
            &parameters.iter().find(|parameter| parameter["name"] == name)?["value"]
        }
    };
    Some(found.as_str()?.into())
}
