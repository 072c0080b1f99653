//! The disk: journals of runs as the lines that were kept, and the last word on runs that are over.
//! Only what is here survives a crash of the house.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use octoflow_control::Cut;
use octoflow_engine::argo::Run;
use octoflow_model::{Fact, Order, RunId, argo::Phase, meta::KeyedData};
use serde_json::Value;

use super::{
    failure::{Broken, Guarantee, broken},
    life::Ack,
};

/// The two places around a commit where the house can crash.
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
    /// By node: how it ended, and whether that was told.
    terminal: BTreeMap<u32, Phase>,
    tree: Option<Value>,
}

impl Disk {
    /// Keeps what a cut holds. What people could already see as final must stay as it was.
    pub(super) fn append(&mut self, pending: &Pending) -> Result<(), Broken> {
        for (run, first, facts) in &pending.lines {
            if let Some(Fact::Submitted(submission)) = facts.first().filter(|_| !self.journals.contains_key(run)) {
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
        self.journals.iter().filter(|(_, journal)| !journal.seen.state.finished()).map(|(run, _)| *run).collect()
    }

    pub(super) fn runs(&self) -> BTreeSet<RunId> {
        self.journals.keys().copied().collect()
    }

    pub(super) fn trees(&self) -> BTreeMap<RunId, Value> {
        self.journals.iter().filter_map(|(run, journal)| Some((*run, journal.tree.clone()?))).collect()
    }
}

impl Journal {
    fn append(&mut self, run: RunId, first: u64, facts: &[Fact]) -> Result<(), Broken> {
        if first != self.facts.len() as u64 {
            let next = self.facts.len();
            return broken(Guarantee::Fold, format!("run {run}: facts from {first} were cut where {next} comes next"));
        }
        if self.seen.state.finished() {
            return broken(Guarantee::Terminal, format!("run {run} is over, and yet more is decided: {:?}", facts[0]));
        }
        for fact in facts {
            if let Fact::Finished(finished) = fact
                && let Some(before) = self.terminal.get(&finished.node.0)
            {
                let name = &self.seen.state.node(finished.node).name;
                return broken(Guarantee::Terminal, format!("{name} ended {before} and then {} again", finished.phase));
            }
            if !matches!(fact, Fact::Submitted(_)) {
                self.seen.apply(fact);
            }
            self.facts.push(fact.clone());
        }
        for (at, node) in self.seen.state.nodes.iter().enumerate() {
            let at = at as u32;
            match self.terminal.get(&at) {
                Some(before) if *before != node.phase => {
                    return broken(
                        Guarantee::Terminal,
                        format!("{} was {before} and is {} now", node.name, node.phase),
                    );
                }
                None if node.phase.fulfilled() => {
                    self.terminal.insert(at, node.phase);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
