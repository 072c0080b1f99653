//! A run as its facts tell it while it is under way: just enough to show progress.
//! It decides nothing and is thrown away at the end; the truth is the object.

mod taskset;

use std::time::Duration;

use crate::workflow;
use octoflow_engine::argo::ident::{display_name, node_id};
use octoflow_model::{
    Fact, NodeIx, RunFact, RunPhase, Shutdown, Time,
    argo::{NodeAdded, NodeKind, Phase, Role, WorkflowFact},
};

/// How many enclosing nodes a label names before it is cut.
const LABEL_LEVELS: usize = 4;

#[derive(Debug)]
pub(crate) struct Followed {
    pub name: String,
    /// What to call it in a sentence.
    pub noun: &'static str,
    pub nodes: Vec<Seen>,
    pub phase: RunPhase,
    pub message: String,
    pub began: Option<Time>,
    pub ended: Option<Time>,
    /// Tasks that ended well, and all that are known.
    pub done: usize,
    pub total: usize,
    /// Of a TaskSet: how many roles it has. Their nodes come after that of the whole, then those of all replicas.
    roles: usize,
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
    /// How far it says it is.
    pub progress: (u32, u32),
    /// Its place among its siblings, where that does not follow from when it started.
    pub rank: Option<usize>,
    /// How often it was tried again.
    pub retries: u32,
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
    /// Others hold a lock that the node, or the run as a whole, needs.
    Locked {
        node: Option<NodeIx>,
        lock: String,
        holders: Vec<String>,
    },
    /// A replica was ended by us, because its role is over.
    Stopped(NodeIx),
    /// A role has its verdict.
    Judged(NodeIx),
    /// An attempt of the whole is over, and another one follows.
    TriedAgain {
        until: Time,
        message: String,
    },
    /// An attempt of the whole begins that is not the first.
    Attempt(u32),
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
            noun: workflow::noun(""),
            nodes: Vec::new(),
            phase: RunPhase::Pending,
            message: String::new(),
            began: None,
            ended: None,
            done: 0,
            total: 0,
            roles: 0,
        }
    }

    /// Takes in a fact; says what is worth telling, and when it happened.
    pub(crate) fn take(&mut self, fact: &Fact) -> Option<(Time, Event)> {
        match fact {
            Fact::Workflow(WorkflowFact::Began { at, .. }) => {
                self.phase = RunPhase::Running;
                self.began = Some(*at);
                Some((*at, Event::Began))
            }
            Fact::Workflow(WorkflowFact::Added(added)) => self.added(added),
            Fact::Workflow(WorkflowFact::Started { node, at }) => {
                let seen =
                    self.nodes.get_mut(node.at()).filter(|seen| seen.running.is_none() && seen.finished.is_none())?;
                seen.phase = Phase::Running;
                seen.running = Some(*at);
                seen.kind.tasked().then_some((*at, Event::Started(*node)))
            }
            Fact::Workflow(WorkflowFact::Progressed { node, done, total }) => {
                let seen = self.nodes.get_mut(node.at()).filter(|seen| seen.finished.is_none())?;
                let before = std::mem::replace(&mut seen.progress, (*done, *total));
                self.done = self.done + *done as usize - before.0 as usize;
                self.total = self.total + *total as usize - before.1 as usize;
                None
            }
            Fact::Workflow(WorkflowFact::Supplied { node, message, .. }) => {
                let seen = self.nodes.get_mut(node.at()).filter(|_| !message.is_empty())?;
                message.clone_into(&mut seen.message);
                None
            }
            Fact::Workflow(WorkflowFact::Stopping { node, message }) => {
                let seen = self.nodes.get_mut(node.at()).filter(|seen| seen.finished.is_none())?;
                message.clone_into(&mut seen.message);
                None
            }
            Fact::Workflow(WorkflowFact::Backoff { node, at, until, message }) => {
                Some((*at, Event::Backoff { node: *node, until: *until, message: message.clone() }))
            }
            Fact::Workflow(WorkflowFact::Waiting { node, at, lock, holders, message }) => {
                match node {
                    Some(node) => message.clone_into(&mut self.nodes.get_mut(node.at())?.message),
                    None => message.clone_into(&mut self.message),
                }
                Some((*at, Event::Locked { node: *node, lock: lock.clone(), holders: holders.clone() }))
            }
            Fact::Workflow(WorkflowFact::Locked { node: None, .. }) => {
                self.message.clear();
                None
            }
            Fact::Workflow(WorkflowFact::Locked { node: Some(node), at, .. }) => {
                let seen = self.nodes.get_mut(node.at())?;
                seen.message.clear();
                if !seen.kind.tasked() {
                    seen.phase = Phase::Running;
                }
                (seen.kind == NodeKind::Suspend).then_some((*at, Event::Waits(*node)))
            }
            Fact::Workflow(WorkflowFact::Finished(end)) => {
                let message = self.readable(&end.message);
                let seen = self.nodes.get_mut(end.node.at()).filter(|seen| seen.finished.is_none())?;
                seen.phase = end.phase;
                seen.finished = Some(end.at);
                seen.message = message;
                if counts(seen.kind) && !end.phase.bad() {
                    let (done, total) = seen.progress;
                    self.done += (total - done) as usize;
                    seen.progress = (total, total);
                }
                is_told(seen.kind).then_some((end.at, Event::Finished(end.node)))
            }
            Fact::Run(RunFact::Suspended { at }) => Some((*at, Event::Suspended)),
            Fact::Run(RunFact::Resumed { at }) => Some((*at, Event::Resumed)),
            Fact::Run(RunFact::ShuttingDown { how, at }) => Some((*at, Event::ShuttingDown(*how))),
            Fact::Run(RunFact::DeadlinePassed { at }) => Some((*at, Event::DeadlinePassed)),
            Fact::Run(RunFact::Ended { phase, message, at }) => {
                self.end_root(*phase, *at);
                self.phase = *phase;
                self.message = self.readable(message);
                self.ended = Some(*at);
                Some((*at, Event::Ended))
            }
            Fact::Run(RunFact::Submitted(submission)) => {
                self.noun = workflow::noun(workflow::text(&submission.manifest, "kind"));
                self.enrol(&submission.manifest, submission.at);
                None
            }
            Fact::TaskSet(fact) => self.take_set(fact),
            Fact::Workflow(WorkflowFact::Wanted { .. })
            | Fact::Workflow(WorkflowFact::Expanded { .. })
            | Fact::Workflow(WorkflowFact::Launched { .. })
            | Fact::Workflow(WorkflowFact::Settled { .. })
            | Fact::Workflow(WorkflowFact::Metered(_))
            | Fact::Workflow(WorkflowFact::Unmetered { .. })
            | Fact::Run(RunFact::Marked { .. })
            | Fact::Workflow(WorkflowFact::Due { .. })
            | Fact::Workflow(WorkflowFact::Expired { .. })
            | Fact::Workflow(WorkflowFact::Daemoned { .. })
            | Fact::Workflow(WorkflowFact::Dismissed { .. })
            | Fact::Workflow(WorkflowFact::Recalled { .. })
            | Fact::Workflow(WorkflowFact::Memoized { .. })
            | Fact::Workflow(WorkflowFact::Exported { .. }) => None,
        }
    }

    /// A message with names of steps where it has ids.
    fn readable(&self, message: &str) -> String {
        // Only messages about others are quoted, and only a few of them, so a search is cheap enough.
        let named = |id: &str| {
            self.nodes.iter().find(|seen| node_id(&self.name, &seen.name) == id).map(|seen| seen.display.clone())
        };
        if message.starts_with("child '") { workflow::readable(message, named) } else { message.to_owned() }
    }

    fn added(&mut self, added: &NodeAdded) -> Option<(Time, Event)> {
        let at = NodeIx(u32::try_from(self.nodes.len()).expect("runs have fewer than four billion nodes"));
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
            progress: (u32::from(born_final), 1),
            rank: None,
            retries: 0,
        });
        self.total += usize::from(counts(added.kind));
        self.done += usize::from(counts(added.kind) && born_final);
        match added.kind {
            NodeKind::Suspend if !born_final && !added.barred => Some((added.at, Event::Waits(at))),
            kind if born_final && is_told(kind) => Some((added.at, Event::Finished(at))),
            _ => None,
        }
    }

    /// How it stands, in its dialect's word.
    pub(crate) fn phase_word(&self) -> &'static str {
        match self.phase {
            RunPhase::Pending if self.roles > 0 => "Waiting",
            phase => phase.word(),
        }
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
    pub(crate) fn took(&self, now: Time) -> Duration {
        self.finished.unwrap_or(now).since(self.running.unwrap_or(self.started))
    }
}

fn counts(kind: NodeKind) -> bool {
    kind.executable()
}

/// Groups and graphs end with their last step, which has been told already.
fn is_told(kind: NodeKind) -> bool {
    kind.executable() || kind == NodeKind::Skipped
}

#[cfg(test)]
pub(crate) mod tests {
    use octoflow_model::argo::{InputValues, NodeFinished, OutputValues};

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
        Fact::Workflow(WorkflowFact::Added(Box::new(NodeAdded {
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
            barred: false,
            hooked: false,
            display: None,
            reused: false,
        })))
    }

    pub(crate) fn finished(node: u32, phase: Phase, message: &str, at: Time) -> Fact {
        Fact::Workflow(WorkflowFact::Finished(Box::new(NodeFinished {
            node: NodeIx(node),
            phase,
            message: message.to_owned(),
            at,
            outputs: OutputValues::default(),
            outbound: Vec::new(),
            log_bytes: 0,
        })))
    }

    pub(crate) fn two_steps() -> Vec<Fact> {
        vec![
            Fact::Workflow(WorkflowFact::Began {
                at: Time::from_secs(0),
                parameters: Vec::new(),
                labels: octoflow_model::task::Labels::default(),
                annotations: octoflow_model::task::Labels::default(),
            }),
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
        let start = Fact::Workflow(WorkflowFact::Started { node: NodeIx(2), at: Time::from_secs(1) });
        assert_eq!(run.take(&start), Some((Time::from_secs(1), Event::Started(NodeIx(2)))));
        assert_eq!((run.done, run.total), (0, 1));
        run.take(&finished(2, Phase::Succeeded, "", Time::from_secs(3)));
        assert_eq!((run.done, run.total), (1, 1));
        assert_eq!(run.nodes[2].took(Time::from_secs(9)), Duration::from_secs(2));
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
