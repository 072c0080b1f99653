//! A run as its facts tell it while it is under way: just enough to show progress.
//! It decides nothing and is thrown away at the end; the truth is the object. Facts may come twice: what was read from the
//! journal may be told again by whoever watches.

use std::collections::{HashMap, HashSet};

use octoflow_engine::argo::ident::display_name;
use octoflow_model::{
    Fact, NodeIx, Time,
    argo::{NodeKind, Phase, RunPhase, Shutdown},
    fact::{NodeAdded, Role},
};
use serde::Deserialize;
use serde_json::Value;

use crate::workflow::{self, Workflow};

/// How many enclosing nodes a label names before it is cut.
const LABEL_LEVELS: usize = 4;

#[derive(Debug)]
pub(crate) struct Followed {
    pub name: String,
    pub nodes: Vec<Seen>,
    pub phase: RunPhase,
    pub message: String,
    pub began: Option<Time>,
    pub ended: Option<Time>,
    /// Tasks that are over, and all that are known.
    pub done: usize,
    pub total: usize,
    by_name: HashMap<String, NodeIx>,
    /// Moments of what has no node, to know it again.
    told: HashSet<(&'static str, Time)>,
}

#[derive(Debug)]
pub(crate) struct Seen {
    pub name: String,
    pub display: String,
    pub kind: NodeKind,
    pub phase: Phase,
    pub template: String,
    pub message: String,
    pub started: Time,
    /// When its process began, if it did.
    pub running: Option<Time>,
    pub finished: Option<Time>,
    pub boundary: Option<NodeIx>,
    /// The node it is drawn below.
    pub holder: Option<NodeIx>,
}

/// Something a person following along wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Began,
    Started(NodeIx),
    /// Final, whether it ran or was born so.
    Finished(NodeIx),
    /// A suspend node waits for a person or a duration.
    Waits(NodeIx),
    Backoff {
        node: NodeIx,
        until: Time,
        message: String,
    },
    Suspended,
    Resumed,
    ShuttingDown(Shutdown),
    DeadlinePassed,
    Ended,
}

impl Followed {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            nodes: Vec::new(),
            phase: RunPhase::Pending,
            message: String::new(),
            began: None,
            ended: None,
            done: 0,
            total: 0,
            by_name: HashMap::new(),
            told: HashSet::new(),
        }
    }

    /// Takes in a fact; says what is worth telling, and when it happened.
    pub(crate) fn take(&mut self, fact: &Fact) -> Option<(Time, Event)> {
        match fact {
            Fact::Began { at, .. } if self.began.is_none() => {
                self.phase = RunPhase::Running;
                self.began = Some(*at);
                Some((*at, Event::Began))
            }
            Fact::Added(added) => self.added(added),
            Fact::Started { node, at } => {
                let seen =
                    self.nodes.get_mut(node.at()).filter(|seen| seen.running.is_none() && seen.finished.is_none())?;
                seen.phase = Phase::Running;
                seen.running = Some(*at);
                (seen.kind == NodeKind::Pod).then_some((*at, Event::Started(*node)))
            }
            Fact::Stopping { node, message } => {
                let seen = self.nodes.get_mut(node.at()).filter(|seen| seen.finished.is_none())?;
                message.clone_into(&mut seen.message);
                None
            }
            Fact::Backoff { node, until, message } => {
                let at = self.nodes.get(node.at()).map_or(*until, |seen| seen.started);
                self.once("backoff", *until)?;
                Some((at, Event::Backoff { node: *node, until: *until, message: message.clone() }))
            }
            Fact::Finished(end) => {
                let seen = self.nodes.get_mut(end.node.at()).filter(|seen| seen.finished.is_none())?;
                seen.phase = end.phase;
                seen.finished = Some(end.at);
                end.message.clone_into(&mut seen.message);
                self.done += usize::from(counts(seen.kind));
                is_told(seen.kind).then_some((end.at, Event::Finished(end.node)))
            }
            Fact::Suspended { at } => self.once("suspended", *at).map(|at| (at, Event::Suspended)),
            Fact::Resumed { at } => self.once("resumed", *at).map(|at| (at, Event::Resumed)),
            Fact::ShuttingDown { how, at } => self.once(how.word(), *at).map(|at| (at, Event::ShuttingDown(*how))),
            Fact::DeadlinePassed { at } => self.once("deadline", *at).map(|at| (at, Event::DeadlinePassed)),
            Fact::Ended { phase, message, at } if self.ended.is_none() => {
                self.phase = *phase;
                message.clone_into(&mut self.message);
                self.ended = Some(*at);
                Some((*at, Event::Ended))
            }
            Fact::Began { .. }
            | Fact::Ended { .. }
            | Fact::Submitted(_)
            | Fact::Expanded { .. }
            | Fact::Launched { .. }
            | Fact::Settled { .. }
            | Fact::Exported { .. } => None,
        }
    }

    /// The moment, unless it was told before.
    fn once(&mut self, what: &'static str, at: Time) -> Option<Time> {
        self.told.insert((what, at)).then_some(at)
    }

    fn added(&mut self, added: &NodeAdded) -> Option<(Time, Event)> {
        if self.by_name.contains_key(&added.name) {
            return None;
        }
        let at = NodeIx(u32::try_from(self.nodes.len()).expect("runs have fewer than four billion nodes"));
        self.by_name.insert(added.name.clone(), at);
        let boundary_name =
            added.boundary.and_then(|boundary| self.nodes.get(boundary.at())).map(|seen| seen.name.as_str());
        let display = match &added.display {
            Some(display) => display.clone(),
            None => display_name(&added.name, boundary_name).to_owned(),
        };
        let held = matches!(added.role, Role::Group(_) | Role::Step { .. } | Role::Attempt(_));
        let born_final = added.phase.fulfilled();
        self.nodes.push(Seen {
            name: added.name.clone(),
            display,
            kind: added.kind,
            phase: added.phase,
            template: added.template.clone().unwrap_or_default(),
            message: added.message.clone(),
            started: added.at,
            running: None,
            finished: born_final.then_some(added.at),
            boundary: added.boundary,
            holder: if held { added.parent.or(added.boundary) } else { added.boundary },
        });
        self.total += usize::from(counts(added.kind));
        self.done += usize::from(counts(added.kind) && born_final);
        match added.kind {
            NodeKind::Suspend if !born_final => Some((added.at, Event::Waits(at))),
            kind if born_final && is_told(kind) => Some((added.at, Event::Finished(at))),
            _ => None,
        }
    }

    /// Fills in what was missed from the final object; the answers are what a person has not heard of yet.
    pub(crate) fn complete(&mut self, object: &Value) -> Vec<(Time, Event)> {
        let workflow = Workflow::new(object);
        let mut told = Vec::new();
        let mut nodes = workflow.nodes();
        nodes.sort_by_key(|node| (node.started(), node.name()));
        let ids: HashMap<&str, &str> = nodes.iter().map(|node| (node.id(), node.name())).collect();
        if let (None, Some(began)) = (self.began, workflow.started()) {
            self.began = Some(began);
            told.push((began, Event::Began));
        }
        // Whoever encloses a node is there before it, so that labels and the tree find it.
        nodes.sort_by_key(|node| node.name().len());
        for node in &nodes {
            if !self.by_name.contains_key(node.name()) {
                let boundary = ids.get(node.boundary()).and_then(|name| self.by_name.get(*name)).copied();
                self.fill_in(*node, boundary);
            }
        }
        let mut ends: Vec<(Time, Event)> = Vec::new();
        for node in &nodes {
            let at = self.by_name[node.name()];
            let seen = &mut self.nodes[at.at()];
            if let (None, Some(finished)) = (seen.finished, node.finished()) {
                (seen.phase, seen.finished) = (word(node.phase()).unwrap_or(Phase::Succeeded), Some(finished));
                node.message().clone_into(&mut seen.message);
                self.done += usize::from(counts(seen.kind));
                if is_told(seen.kind) {
                    ends.push((finished, Event::Finished(at)));
                }
            }
        }
        ends.sort_by_key(|(at, _)| *at);
        told.extend(ends);
        if let (None, Some(ended), Some(phase)) = (self.ended, workflow.finished(), word(workflow.phase())) {
            (self.phase, self.ended) = (phase, Some(ended));
            workflow.message().clone_into(&mut self.message);
            told.push((ended, Event::Ended));
        }
        told
    }

    fn fill_in(&mut self, node: workflow::Node<'_>, boundary: Option<NodeIx>) {
        let at = NodeIx(u32::try_from(self.nodes.len()).expect("runs have fewer than four billion nodes"));
        let kind = word(node.kind()).unwrap_or(NodeKind::Skipped);
        self.total += usize::from(counts(kind));
        self.by_name.insert(node.name().to_owned(), at);
        self.nodes.push(Seen {
            name: node.name().to_owned(),
            display: node.display().to_owned(),
            kind,
            phase: Phase::Pending,
            template: node.template(),
            message: String::new(),
            started: node.started().unwrap_or_default(),
            running: None,
            finished: None,
            boundary,
            holder: boundary,
        });
    }

    /// The node's display name behind those of the nodes around it: `outer/inner`.
    pub(crate) fn label(&self, node: NodeIx) -> String {
        let mut words: Vec<&str> = Vec::new();
        let mut next = Some(node);
        while let Some(seen) = next.and_then(|at| self.nodes.get(at.at())) {
            // The entrypoint encloses everything, so it only names itself.
            if seen.boundary.is_none() && !words.is_empty() && seen.name == self.name {
                break;
            }
            if words.len() == LABEL_LEVELS {
                words.push("…");
                break;
            }
            words.push(&seen.display);
            next = seen.boundary;
        }
        words.reverse();
        words.join("/")
    }
}

impl Seen {
    pub(crate) fn waits_for_resume(&self) -> bool {
        self.kind == NodeKind::Suspend && !self.phase.fulfilled()
    }

    /// How long it ran, or has run.
    pub(crate) fn took(&self, now: Time) -> std::time::Duration {
        self.finished.unwrap_or(now).since(self.running.unwrap_or(self.started))
    }
}

/// A phase or a kind by the word it has on the wire.
fn word<T: for<'a> Deserialize<'a>>(text: &str) -> Option<T> {
    serde_json::from_value(Value::from(text)).ok()
}

fn counts(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Pod | NodeKind::Suspend)
}

/// Groups and graphs end with their last step, which has been told already.
fn is_told(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::Pod | NodeKind::Suspend | NodeKind::Skipped)
}

#[cfg(test)]
pub(crate) mod tests {
    use octoflow_model::fact::{InputValues, NodeFinished, OutputValues};

    use super::*;

    /// A node born pending or as given, for tests of whoever shows runs.
    pub(crate) fn added(
        name: &str,
        kind: NodeKind,
        role: Role,
        parent: Option<u32>,
        boundary: Option<u32>,
        phase: Phase,
    ) -> Fact {
        Fact::Added(Box::new(NodeAdded {
            name: name.to_owned(),
            kind,
            role,
            parent: parent.map(NodeIx),
            boundary: boundary.map(NodeIx),
            after: Vec::new(),
            template: Some("t".to_owned()),
            phase,
            message: String::new(),
            at: Time::from_secs(0),
            inputs: InputValues::default(),
            followed: false,
            wake: None,
            display: None,
        }))
    }

    pub(crate) fn finished(node: u32, phase: Phase, message: &str, at: Time) -> Fact {
        Fact::Finished(Box::new(NodeFinished {
            node: NodeIx(node),
            phase,
            message: message.to_owned(),
            at,
            outputs: OutputValues::default(),
            outbound: Vec::new(),
        }))
    }

    pub(crate) fn two_steps() -> Vec<Fact> {
        vec![
            Fact::Began { at: Time::from_secs(0), parameters: Vec::new() },
            added("w", NodeKind::Steps, Role::Entry, None, None, Phase::Running),
            added("w[0]", NodeKind::StepGroup, Role::Group(0), Some(0), Some(0), Phase::Running),
            added("w[0].a", NodeKind::Pod, Role::Step { step: 0, item: None }, Some(1), Some(0), Phase::Pending),
            added("w[0].b", NodeKind::Skipped, Role::Step { step: 1, item: None }, Some(1), Some(0), Phase::Skipped),
        ]
    }

    #[test]
    fn facts_become_events_for_steps_and_silence_for_groups() {
        let mut run = Followed::new("w");
        let told: Vec<Event> = two_steps().iter().filter_map(|fact| run.take(fact)).map(|(_, event)| event).collect();
        assert_eq!(told, [Event::Began, Event::Finished(NodeIx(3))]);
        let start = Fact::Started { node: NodeIx(2), at: Time::from_secs(1) };
        assert_eq!(run.take(&start), Some((Time::from_secs(1), Event::Started(NodeIx(2)))));
        assert_eq!((run.done, run.total), (0, 1));
        run.take(&finished(2, Phase::Succeeded, "", Time::from_secs(3)));
        assert_eq!((run.done, run.total), (1, 1));
        assert_eq!(run.nodes[2].took(Time::from_secs(9)), std::time::Duration::from_secs(2));
    }

    #[test]
    fn facts_that_come_twice_are_told_once() {
        let mut run = Followed::new("w");
        let mut facts = two_steps();
        facts.extend([
            Fact::Started { node: NodeIx(2), at: Time(1) },
            Fact::Suspended { at: Time(2) },
            finished(2, Phase::Failed, "no", Time(3)),
            Fact::Ended { phase: RunPhase::Failed, message: String::new(), at: Time(4) },
        ]);
        let first = facts.iter().filter(|fact| run.take(fact).is_some()).count();
        let again = facts.iter().filter(|fact| run.take(fact).is_some()).count();
        assert_eq!((first, again, run.nodes.len(), run.done), (6, 0, 4, 1));
    }

    #[test]
    fn what_was_missed_is_filled_in_from_the_object() {
        let object = serde_json::json!({"metadata": {"name": "w"}, "status": {
            "phase": "Failed", "message": "m", "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:00:09Z",
            "nodes": {
                "w": {"id": "w", "name": "w", "type": "Steps", "phase": "Failed", "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:00:09Z"},
                "w-2": {"id": "w-2", "name": "w[0].a", "displayName": "a", "boundaryID": "w", "type": "Pod", "phase": "Succeeded",
                        "startedAt": "1970-01-01T00:00:00Z", "finishedAt": "1970-01-01T00:00:05Z"},
                "w-3": {"id": "w-3", "name": "w[1].c", "displayName": "c", "boundaryID": "w", "type": "Pod", "phase": "Failed", "message": "no",
                        "startedAt": "1970-01-01T00:00:05Z", "finishedAt": "1970-01-01T00:00:08Z"}}}});
        let mut run = Followed::new("w");
        for fact in two_steps() {
            run.take(&fact);
        }
        let told: Vec<Event> = run.complete(&object).into_iter().map(|(_, event)| event).collect();
        assert_eq!(told, [Event::Finished(NodeIx(2)), Event::Finished(NodeIx(4)), Event::Ended]);
        assert_eq!(run.label(NodeIx(4)), "c");
        assert_eq!((run.phase, run.nodes[4].phase, run.done, run.total), (RunPhase::Failed, Phase::Failed, 2, 2));
        assert!(run.complete(&object).is_empty());
    }

    #[test]
    fn labels_name_the_way_to_a_node() {
        let mut run = Followed::new("w");
        let step = |step| Role::Step { step, item: None };
        run.take(&added("w", NodeKind::Steps, Role::Entry, None, None, Phase::Running));
        run.take(&added("w[0].outer", NodeKind::Dag, step(0), None, Some(0), Phase::Running));
        run.take(&added("w[0].outer.inner", NodeKind::Pod, Role::Task(0), Some(1), Some(1), Phase::Pending));
        assert_eq!(run.label(NodeIx(0)), "w");
        assert_eq!(run.label(NodeIx(1)), "outer");
        assert_eq!(run.label(NodeIx(2)), "outer/inner");
    }
}
