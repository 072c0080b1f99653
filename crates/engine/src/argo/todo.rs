//! The work list of a run: what a turn looks at next. It is not part of the state: it is thrown away on restart, and then
//! everything open is looked at once. The fold never sees it. It leaves notes, which are entered here in their order.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use octoflow_model::{NodeIx, Time};

use super::run::{Run, State};

/// What the fold of a fact tells the turn to look at. A note says what changed, never what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// A node changed in a way that may let it go on.
    Changed(NodeIx),
    /// The run's own next step (begin, exit handler, end) may have come.
    RunChanged,
    /// The rules changed for everything that is open.
    RulesChanged,
    /// Something changed that hooks of other nodes may look at.
    Watched,
    /// A pod waits for the scheduler.
    Queued(NodeIx),
    /// A node, or the run, wants locks.
    Wants(Option<NodeIx>),
    /// A node, or the run, must be looked at then.
    Wake(Time, Option<NodeIx>),
    /// A boundary has a child less that counts against its limit.
    ChildOver(NodeIx),
    /// A task of an open DAG waits for nobody any more.
    Ready { dag: NodeIx, task: u32 },
    /// A node is final.
    Finished(NodeIx),
    /// Nothing about a node is open any more.
    Settled(NodeIx),
    /// The run is over.
    Ended,
}

/// What to look at next.
#[derive(Default)]
pub(super) struct Todo {
    /// Nodes to visit.
    pub(super) agenda: VecDeque<NodeIx>,
    /// DAG tasks whose waiting is over, by DAG.
    pub(super) ready: HashMap<NodeIx, VecDeque<u32>>,
    /// Nodes that would start a pod but for the run's own limit.
    pub(super) parked: VecDeque<NodeIx>,
    /// Nodes that would start a child but for their boundary's limit.
    pub(super) parked_in: HashMap<NodeIx, VecDeque<NodeIx>>,
    /// Everything that is parked somewhere, so that nothing is parked twice.
    pub(super) parked_nodes: HashSet<NodeIx>,
    /// Boundaries with parked nodes that have lost a child.
    pub(super) roomy: VecDeque<NodeIx>,
    /// Pods that came into being and wait for the scheduler.
    pub(super) queued: Vec<NodeIx>,
    /// Who wants locks and is not in their table yet: nodes, or the run itself.
    pub(super) wants: Vec<Option<NodeIx>>,
    /// Wake-ups to be set: a node's, or the run's own.
    pub(super) wakes: Vec<(Time, Option<NodeIx>)>,
    /// Nodes with hooks that look beyond the node itself.
    pub(super) watchers: BTreeSet<NodeIx>,
    /// A hook of the run would start but for the run's own limit.
    pub(super) run_parked: bool,
    /// The run's own next step (begin, exit handler, end) wants a look.
    pub(super) run: bool,
    /// A loop was stopped in the middle; the node it unfolds is the first of the agenda.
    pub(super) paused: bool,
}

impl Run {
    /// Enters the notes of a fold.
    pub(super) fn heed(&mut self) {
        for note in self.notes.drain(..) {
            match note {
                Note::Finished(at) => drop(self.instances.remove(&at)),
                Note::Ended => self.instances.clear(),
                _ => {}
            }
            self.todo.enter(note, &self.state);
        }
    }
}

impl Todo {
    fn enter(&mut self, note: Note, state: &State) {
        match note {
            Note::Changed(at) => self.agenda.push_back(at),
            Note::RunChanged => self.run = true,
            Note::RulesChanged => self.look_everywhere(state),
            Note::Watched => self.agenda.extend(&self.watchers),
            Note::Queued(at) => self.queued.push(at),
            Note::Wants(node) => self.wants.push(node),
            Note::Wake(at, node) => self.wakes.push((at, node)),
            Note::ChildOver(boundary) => {
                if self.parked_in.contains_key(&boundary) {
                    self.roomy.push_back(boundary);
                }
            }
            // Without a list the DAG's next visit makes a whole one; a list begun here would hide what waited before.
            Note::Ready { dag, task } => {
                if let Some(ready) = self.ready.get_mut(&dag) {
                    ready.push_back(task);
                }
            }
            Note::Finished(at) => {
                self.ready.remove(&at);
                for parked in self.parked_in.remove(&at).into_iter().flatten() {
                    // Whoever waited for room in here may have to wait for room elsewhere: its own exit handler, for one.
                    self.parked_nodes.remove(&parked);
                }
            }
            Note::Settled(at) => {
                self.watchers.remove(&at);
            }
            Note::Ended => *self = Self::default(),
        }
    }

    /// Everything that is open gets a look: after a restart, and when a command changes the rules for all.
    pub(super) fn look_everywhere(&mut self, state: &State) {
        self.parked.clear();
        self.parked_in.clear();
        self.parked_nodes.clear();
        self.roomy.clear();
        self.ready.clear();
        self.run_parked = false;
        let open = state.nodes.iter().enumerate().filter(|(_, node)| !node.settled);
        self.agenda = open.map(|(at, _)| NodeIx(at as u32)).collect();
        self.run = true;
    }
}
