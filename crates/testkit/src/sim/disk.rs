//! The disk: journals of runs as the lines that were kept, and the last word on runs that are over.
//! Only what is here survives a crash of the controller.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use octoflow_control::Cut;
use octoflow_engine::{
    Run,
    argo::{self, node::Node},
    taskset,
};
use octoflow_model::{Fact, Order, RunFact, RunId, argo::WorkflowFact, meta::KeyedData};
use serde_json::Value;

use super::{
    failure::{Broken, Guarantee, broken},
    life::Ack,
};

/// The two places around a commit where the controller can crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// What was decided is lost.
    Before,
    /// What was decided is kept, but nobody has heard of it.
    After,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "a",
            Self::After => "b",
        })
    }
}

/// A cut on its way to the disk, and what follows once it is there.
pub(super) struct Pending {
    pub lines: Vec<(RunId, u64, Vec<Fact>)>,
    pub orders: Vec<Order>,
    pub acks: Vec<Ack>,
    /// The final trees of runs that end with it.
    pub ended: Vec<(RunId, Value)>,
    /// Caches that were filled, as they are now.
    pub caches: Vec<(String, KeyedData)>,
}

impl Pending {
    /// Reads a cut's records as the disk would give them back.
    pub(super) fn new(cut: Cut, acks: Vec<Ack>, ended: Vec<(RunId, Value)>) -> Result<Self, Broken> {
        let mut lines = Vec::new();
        for (run, record) in &cut.records {
            let facts = parsed(&record.lines).or_else(|why| broken(Guarantee::Fold, format!("run {run}: {why}")))?;
            if facts.len() != record.count as usize {
                return broken(
                    Guarantee::Fold,
                    format!("run {run}: a record of {} facts says {}", facts.len(), record.count),
                );
            }
            lines.push((*run, record.first, facts));
        }
        Ok(Self { lines, orders: cut.orders, acks, ended, caches: Vec::new() })
    }
}

fn parsed(lines: &[u8]) -> Result<Vec<Fact>, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            serde_json::from_slice(line).map_err(|error| format!("{error} in {}", String::from_utf8_lossy(line)))
        })
        .collect()
}

/// Something of a run that can end. Roles and replicas begin anew with every attempt of their TaskSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Node(u32),
    TaskSet,
    Role { attempt: u32, at: u32 },
    Replica { attempt: u32, at: u32 },
}

#[derive(Default)]
pub(super) struct Disk {
    journals: BTreeMap<RunId, Journal>,
    /// Caches of memoized outputs by name.
    caches: BTreeMap<String, KeyedData>,
}

struct Journal {
    facts: Vec<Fact>,
    /// What people can see: the fold of the facts so far.
    seen: Run,
    /// What people could see as final, and how it ended.
    terminal: BTreeMap<Part, &'static str>,
    tree: Option<Value>,
}

impl Disk {
    /// Keeps what a cut holds. What people could already see as final must stay as it was.
    pub(super) fn append(&mut self, pending: &Pending) -> Result<(), Broken> {
        let open = self.open_runs();
        let ended: Vec<RunId> =
            pending.lines.iter().filter(|(_, _, facts)| shuts_down(facts)).map(|line| line.0).collect();
        for (run, first, facts) in &pending.lines {
            if let Some(Fact::Run(RunFact::Submitted(submission))) =
                facts.first().filter(|_| !self.journals.contains_key(run))
            {
                let seen = Run::open(*run, submission)
                    .or_else(|why| broken(Guarantee::Fold, format!("run {run} does not open again: {why}")))?;
                self.journals.insert(*run, Journal { facts: Vec::new(), seen, terminal: BTreeMap::new(), tree: None });
            }
            let Some(journal) = self.journals.get_mut(run) else {
                return broken(Guarantee::Fold, format!("the journal of run {run} does not begin with its submission"));
            };
            journal.append(*run, *first, facts)?;
        }
        self.caches.extend(pending.caches.iter().cloned());
        for (run, tree) in &pending.ended {
            if let Some(journal) = self.journals.get_mut(run) {
                journal.tree = Some(tree.clone());
            }
        }
        ended.into_iter().try_for_each(|owner| self.check_family(owner, &open))
    }

    /// A run was told to end. So were those among the runs open before that belong to it, by the same commit.
    fn check_family(&self, owner: RunId, open: &[RunId]) -> Result<(), Broken> {
        for run in open {
            let Some(seen) = self.seen(*run).filter(|seen| seen.parent() == Some(owner)) else { continue };
            if seen.head().shutdown.is_none() && !seen.finished() {
                return broken(Guarantee::Together, format!("run {owner} is told to end, and run {run} of it is not"));
            }
        }
        Ok(())
    }

    pub(super) fn caches(&self) -> impl Iterator<Item = (&String, &KeyedData)> {
        self.caches.iter()
    }

    pub(super) fn knows(&self, run: RunId) -> bool {
        self.journals.contains_key(&run)
    }

    pub(super) fn seen(&self, run: RunId) -> Option<&Run> {
        self.journals.get(&run).map(|journal| &journal.seen)
    }

    pub(super) fn facts(&self, run: RunId) -> Vec<Fact> {
        self.journals.get(&run).map(|journal| journal.facts.clone()).unwrap_or_default()
    }

    pub(super) fn open_runs(&self) -> Vec<RunId> {
        self.journals.iter().filter(|(_, journal)| !journal.seen.finished()).map(|(run, _)| *run).collect()
    }

    pub(super) fn runs(&self) -> BTreeSet<RunId> {
        self.journals.keys().copied().collect()
    }

    pub(super) fn trees(&self) -> BTreeMap<RunId, Value> {
        self.journals.iter().filter_map(|(run, journal)| Some((*run, journal.tree.clone()?))).collect()
    }
}

/// Somebody's command to end the run is among these facts.
fn shuts_down(facts: &[Fact]) -> bool {
    facts.iter().any(|fact| matches!(fact, Fact::Run(RunFact::ShuttingDown { .. })))
}

impl Journal {
    fn append(&mut self, run: RunId, first: u64, facts: &[Fact]) -> Result<(), Broken> {
        if first != self.facts.len() as u64 {
            let next = self.facts.len();
            return broken(Guarantee::Fold, format!("run {run}: facts from {first} were cut where {next} comes next"));
        }
        if self.seen.finished() {
            return broken(Guarantee::Terminal, format!("run {run} is over, and yet more is decided: {:?}", facts[0]));
        }
        for fact in facts {
            if let (Fact::Workflow(WorkflowFact::Finished(finished)), Some(run)) = (fact, self.seen.of::<argo::Run>())
                && let Some(before) = self.terminal.get(&Part::Node(finished.node.0))
            {
                let name = &run.state.node(finished.node).name;
                return broken(Guarantee::Terminal, format!("{name} ended {before} and then {} again", finished.phase));
            }
            if !matches!(fact, Fact::Run(RunFact::Submitted(_))) {
                self.seen.apply(fact);
            }
            self.facts.push(fact.clone());
        }
        for (part, phase) in finals(&self.seen) {
            match self.terminal.get(&part) {
                Some(before) if Some(*before) != phase => {
                    let now = phase.unwrap_or("open");
                    return broken(Guarantee::Terminal, format!("{part:?} of run {run} was {before} and is {now} now"));
                }
                None => self.terminal.extend(phase.map(|phase| (part, phase))),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Everything of a run that can end, and how it has.
fn finals(run: &Run) -> Vec<(Part, Option<&'static str>)> {
    if let Some(run) = run.of::<taskset::Run>() {
        return super::taskset::finals(run);
    }
    let run = run.of::<argo::Run>().expect("the simulator knows two dialects");
    let nodes = run.state.nodes.iter().enumerate();
    let word = |node: &Node| node.phase.fulfilled().then(|| node.phase.word());
    nodes.map(|(at, node)| (Part::Node(at as u32), word(node))).collect()
}
