//! Units: what starts at once or not at all, a task or the first members of a gang. Each has one place in one queue.

use octoflow_model::{RunId, Time};

use super::{TaskRef, gang::GangIx, shapes::ShapeIx, tree::QueueIx, usage::TenantIx};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct UnitIx(u32);

impl UnitIx {
    pub(super) const FIRST: Self = Self(0);
}

#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The task, or the first member of the gang. Names the unit in every order, so that a restart changes nothing.
    pub task: TaskRef,
    pub gang: Option<GangIx>,
    pub leaf: QueueIx,
    pub tenant: TenantIx,
    pub run: RunId,
    pub shape: ShapeIx,
    pub priority: i32,
    pub rank: Rank,
    /// From then on it is first in its queue.
    pub deadline: Time,
    /// The value of its class, and whether it may end tasks of lower ones.
    pub class: Option<i32>,
    pub preempts: bool,
}

/// When a unit began to wait, moved forward by its priority. Waiting makes all ranks older alike, so two units never
/// change places and a rank is computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(pub i64);

/// One point of priority counts as much as this wait.
const AGING_MICROS: i64 = 60_000_000;

impl Rank {
    pub(super) fn new(since: Time, priority: i32) -> Self {
        Self(since.0.saturating_sub(i64::from(priority).saturating_mul(AGING_MICROS)))
    }
}

/// All units, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    all: Vec<Option<Unit>>,
    unused: Vec<UnitIx>,
    count: usize,
}

impl Units {
    pub(super) fn insert(&mut self, unit: Unit) -> UnitIx {
        self.count += 1;
        if let Some(at) = self.unused.pop() {
            self.all[at.0 as usize] = Some(unit);
            return at;
        }
        self.all.push(Some(unit));
        UnitIx(u32::try_from(self.all.len() - 1).expect("fewer units than bytes of memory"))
    }

    pub(super) fn remove(&mut self, at: UnitIx) -> Option<Unit> {
        let unit = self.all.get_mut(at.0 as usize)?.take()?;
        self.unused.push(at);
        self.count -= 1;
        Some(unit)
    }

    pub(super) fn get(&self, at: UnitIx) -> Option<&Unit> {
        self.all.get(at.0 as usize)?.as_ref()
    }
}
