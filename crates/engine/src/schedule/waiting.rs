//! The units that wait in one queue, in the order in which they are served: who waited too long, then tenants by what they
//! have used, then by rank; runs of equal priority take turns. It knows nothing of room. Every operation costs O(log n).

use std::collections::{BTreeMap, BTreeSet};

use octoflow_model::{IdMap, RunId, Time};

use super::{
    TaskRef,
    preempt::Harm,
    reserve::{QuotaReservation, Reservation},
    shapes::{Offer, ShapeIx},
    units::{Rank, Unit, UnitIx},
    usage::{TenantIx, UsageKey},
};

/// Numbers that change with the tree of queues and with the nodes.
pub(super) type Versions = (u64, u64);

/// The place of a unit in its queue. Smaller is earlier.
pub(super) type Order = (Overdue, UsageKey, Rank, TurnNumber, TaskRef);

/// Whether a unit has waited too long, and if so since when. Those come first, the longest waiting before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Overdue {
    Since(Time),
    No,
}

/// When it is a run's turn. A run that had its turn goes behind all that wait now, and so does one that comes: between two
/// turns of a run every other one has at most one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TurnNumber(pub u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// Units by shape, so that the first of each shape is found at once.
    lines: BTreeMap<ShapeIx, Line>,
    usage: IdMap<TenantIx, UsageKey>,
    deadlines: BTreeSet<(Time, TaskRef, UnitIx)>,
    /// True if something may have become startable since the queue was last looked at. Set by the tree, which lists these.
    pub dirty: bool,
    /// The last offer of room that was considered here.
    pub seen: Offer,
    /// The first unit of each shape in order, until something changes that.
    ranked: Option<Ranked>,
    /// The room that the first unit waits for.
    pub reservation: Option<Reservation>,
    /// The quota that the first unit waits for.
    pub quota_reservation: Option<QuotaReservation>,
    /// When it has to be looked at again although nothing happens.
    pub wake: Option<Time>,
    /// Units for which victims were looked for, and when they may be again.
    pub next_preemptions: BTreeMap<UnitIx, Time>,
    /// Shapes that were asked whether they could ever start here, of which nodes and queues that holds.
    pub never: (Versions, BTreeMap<ShapeIx, bool>),
    /// How many tasks of it wait or run, members of incomplete gangs included.
    pub tasks: usize,
    /// Tasks that run here and may be ended for others, least harm first.
    pub victims: BTreeSet<Harm>,
}

/// The first unit of each shape, in order, and until when this holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranked {
    pub units: Vec<(Order, UnitIx, ShapeIx)>,
    /// Those of them that are gangs: their members may be of several runs.
    pub gangs: Vec<UnitIx>,
    pub until: Option<Time>,
}

#[derive(Clone, Debug, Default)]
struct Line {
    /// With the best rank among the tenant's units: equal usage is nobody's advantage.
    tenants: BTreeSet<(UsageKey, Rank, TenantIx)>,
    of: IdMap<TenantIx, BTreeMap<i32, Level>>,
    /// Its first unit and that one's place, until something changes that.
    first: Option<(Order, UnitIx, TenantIx)>,
}

/// The units of one tenant, shape and priority. Its rank is that of its first unit, so that a level whose units wait long
/// is served before one of higher priority; within it runs take turns.
#[derive(Clone, Debug, Default)]
struct Level {
    firsts: BTreeSet<(Rank, RunId)>,
    turns: BTreeSet<(TurnNumber, RunId)>,
    of: IdMap<RunId, RunLine>,
}

#[derive(Clone, Debug)]
struct RunLine {
    turn: TurnNumber,
    units: BTreeSet<(Rank, TaskRef, UnitIx)>,
}

impl Leaf {
    pub(super) fn waits(&self) -> bool {
        !self.deadlines.is_empty()
    }

    pub(super) fn insert(&mut self, at: UnitIx, unit: &Unit, usage: UsageKey, turn: TurnNumber) {
        self.retenant(unit.tenant, usage);
        let line = self.lines.entry(unit.shape).or_default();
        line.change(unit.tenant, usage, |levels| {
            levels.entry(unit.priority).or_default().change(unit.run, turn, |units| {
                units.insert((unit.rank, unit.task, at));
            });
        });
        self.deadlines.insert((unit.deadline, unit.task, at));
        self.ranked = None;
    }

    pub(super) fn remove(&mut self, at: UnitIx, unit: &Unit, turn: TurnNumber) {
        if !self.deadlines.remove(&(unit.deadline, unit.task, at)) {
            return;
        }
        self.ranked = None;
        self.next_preemptions.remove(&at);
        if self.reservation.as_ref().is_some_and(|reservation| reservation.unit == at) {
            self.reservation = None;
        }
        if self.quota_reservation.as_ref().is_some_and(|reservation| reservation.unit == at) {
            self.quota_reservation = None;
        }
        let Some(line) = self.lines.get_mut(&unit.shape) else { return };
        let usage = self.usage.get(&unit.tenant).copied().unwrap_or_default();
        line.change(unit.tenant, usage, |levels| {
            let Some(level) = levels.get_mut(&unit.priority) else { return };
            level.change(unit.run, turn, |units| {
                units.remove(&(unit.rank, unit.task, at));
            });
            if level.of.is_empty() {
                levels.remove(&unit.priority);
            }
        });
        if line.of.is_empty() {
            self.lines.remove(&unit.shape);
            self.never.1.remove(&unit.shape);
        }
        if !self.lines.values().any(|line| line.of.contains_key(&unit.tenant)) {
            self.usage.remove(&unit.tenant);
        }
    }

    /// Moves a tenant to the place of its usage.
    fn retenant(&mut self, tenant: TenantIx, usage: UsageKey) {
        let before = self.usage.insert(tenant, usage).unwrap_or_default();
        if before != usage {
            self.ranked = None;
            for line in self.lines.values_mut().filter(|line| line.of.contains_key(&tenant)) {
                let Some(rank) = line.rank(tenant) else { continue };
                line.tenants.remove(&(before, rank, tenant));
                line.tenants.insert((usage, rank, tenant));
                let second = line.tenants.iter().find(|(_, _, other)| *other != tenant).map(|(usage, _, _)| *usage);
                match &mut line.first {
                    // Whoever was first and has still used least stays it.
                    Some((order, _, first)) if *first == tenant && second.is_none_or(|second| second > usage) => {
                        order.1 = usage;
                    }
                    // Nor does anybody who is behind it change that.
                    Some((order, _, first)) if *first != tenant && (order.1, order.2) < (usage, rank) => {}
                    _ => line.first = None,
                }
            }
        }
    }

    /// Moves a tenant that waits here to the place of its usage. Returns whether the order may have changed.
    pub(super) fn retenant_waiting(&mut self, tenant: TenantIx, usage: UsageKey) -> bool {
        let moves = self.usage.get(&tenant).is_some_and(|before| *before != usage);
        if moves {
            self.retenant(tenant, usage);
        }
        // One tenant alone is where it was.
        moves && self.usage.len() > 1
    }

    /// Moves a run to the place of its turn.
    pub(super) fn rerun(&mut self, shape: ShapeIx, tenant: TenantIx, run: RunId, turn: TurnNumber) {
        let Some(line) = self.lines.get_mut(&shape) else { return };
        for level in line.of.get_mut(&tenant).into_iter().flat_map(BTreeMap::values_mut) {
            if level.of.contains_key(&run) {
                level.change(run, turn, |_| ());
                // Turns only become later: whoever was first stays it, unless it was this one.
                if line.first.is_none_or(|((.., task), _, _)| task.run == run) {
                    line.first = None;
                    self.ranked = None;
                }
            }
        }
    }

    pub(super) fn tenants(&self) -> impl Iterator<Item = TenantIx> + '_ {
        self.usage.keys().copied()
    }

    /// Takes the known order, if it still holds.
    pub(super) fn take_ranked(&mut self, now: Time) -> Option<Ranked> {
        self.ranked.take().filter(|ranked| ranked.until.is_none_or(|until| now < until))
    }

    pub(super) fn set_ranked(&mut self, ranked: Ranked) {
        self.ranked = Some(ranked);
    }

    /// Returns the first unit of each shape that is `ready`, with its place in the queue, in no particular order.
    pub(super) fn firsts(&mut self, ready: &impl Fn(UnitIx) -> bool) -> Vec<(Order, UnitIx, ShapeIx)> {
        let first = |(shape, line): (&ShapeIx, &mut Line)| {
            let known = line.first.filter(|(_, unit, _)| ready(*unit)).or_else(|| line.find(ready));
            line.first = known;
            known.map(|(order, unit, _)| (order, unit, *shape))
        };
        self.lines.iter_mut().filter_map(first).collect()
    }

    /// Forgets the first units: they were found while somebody before them was not ready.
    pub(super) fn forget_firsts(&mut self) {
        self.lines.values_mut().for_each(|line| line.first = None);
    }

    /// Iterates over the units that have waited too long, the longest waiting first.
    pub(super) fn overdue(&self, now: Time) -> impl Iterator<Item = (Order, UnitIx)> + '_ {
        let due = self.deadlines.iter().take_while(move |(deadline, _, _)| *deadline <= now);
        due.map(|(deadline, task, unit)| {
            ((Overdue::Since(*deadline), UsageKey::default(), Rank(0), TurnNumber(0), *task), *unit)
        })
    }

    /// Returns the next time at which a unit will have waited too long.
    pub(super) fn next_deadline(&self, now: Time) -> Option<Time> {
        self.deadlines.range(after(now)..).next().map(|(deadline, _, _)| *deadline)
    }

    /// Returns when something changes here although nothing happens: somebody has waited too long, a reserved time comes,
    /// or victims may be looked for again.
    pub(super) fn next_change(&self, now: Time) -> Option<Time> {
        let reserved = self.reservation.as_ref().and_then(|reservation| reservation.at);
        let preemptions = self.next_preemptions.values().copied();
        let changes = preemptions.chain(reserved).chain(self.next_deadline(now));
        // Nothing is later than the end of time: a change then, at that moment, would be due for ever.
        changes.filter(|at| *at > now).min().filter(|_| self.waits())
    }

    /// Returns all units in the order in which they are served. For explanations: it costs as much as there are units.
    pub(super) fn all(&self, now: Time) -> Vec<UnitIx> {
        let late: BTreeSet<UnitIx> = self.deadlines.range(..after(now)).map(|(_, _, unit)| *unit).collect();
        let overdue = self
            .overdue(now)
            .map(|((overdue, usage, rank, turn, task), unit)| ((overdue, usage, rank, 0), (turn, task), unit));
        let mut units: Vec<_> = overdue.collect();
        for line in self.lines.values() {
            for (usage, _, tenant) in &line.tenants {
                for level in line.of.get(tenant).into_iter().flat_map(BTreeMap::values) {
                    let Some(rank) = level.rank() else { continue };
                    // The second unit of each run comes after the first of every run.
                    for run in level.of.values() {
                        let each = run.units.iter().filter(|(_, _, unit)| !late.contains(unit)).enumerate();
                        units.extend(each.map(|(round, (_, task, unit))| {
                            ((Overdue::No, *usage, rank, round), (run.turn, *task), *unit)
                        }));
                    }
                }
            }
        }
        units.sort_unstable();
        units.into_iter().map(|(_, _, unit)| unit).collect()
    }
}

/// The least place behind everything with a deadline up to now.
fn after(now: Time) -> (Time, TaskRef, UnitIx) {
    (Time(now.0.saturating_add(1)), TaskRef::FIRST, UnitIx::FIRST)
}

impl Line {
    /// Changes the units of a tenant, and moves it to its place.
    fn change(&mut self, tenant: TenantIx, usage: UsageKey, change: impl FnOnce(&mut BTreeMap<i32, Level>)) {
        self.first = None;
        if let Some(rank) = self.rank(tenant) {
            self.tenants.remove(&(usage, rank, tenant));
        }
        let levels = self.of.entry(tenant).or_default();
        change(levels);
        if levels.is_empty() {
            self.of.remove(&tenant);
        }
        self.tenants.extend(self.rank(tenant).map(|rank| (usage, rank, tenant)));
    }

    /// Returns the best rank among the units of a tenant.
    fn rank(&self, tenant: TenantIx) -> Option<Rank> {
        self.of.get(&tenant)?.values().filter_map(Level::rank).min()
    }

    /// Finds the first unit that is `ready`, and its place.
    fn find(&self, ready: &impl Fn(UnitIx) -> bool) -> Option<(Order, UnitIx, TenantIx)> {
        let mut found: Option<(Order, UnitIx, TenantIx)> = None;
        for (usage, rank, tenant) in &self.tenants {
            // Whoever is further back has used more, or has no unit that is before this one.
            if found.is_some_and(|((_, least, best, ..), _, _)| (least, best) < (*usage, *rank)) {
                break;
            }
            let Some(levels) = self.of.get(tenant) else { continue };
            let first = first_of(*usage, levels, ready).map(|(order, unit)| (order, unit, *tenant));
            found = found.into_iter().chain(first).min();
        }
        found
    }
}

/// Finds the first unit of a tenant that is `ready`, and its place.
fn first_of(
    usage: UsageKey,
    levels: &BTreeMap<i32, Level>,
    ready: &impl Fn(UnitIx) -> bool,
) -> Option<(Order, UnitIx)> {
    let first = |(rank, level): (Rank, &Level)| {
        let (turn, task, unit) = level.first(ready)?;
        Some(((Overdue::No, usage, rank, turn, task), unit))
    };
    let mut ranks = levels.values().filter_map(|level| Some((level.rank()?, level)));
    if levels.len() == 1 {
        return ranks.next().and_then(first);
    }
    let mut ranks: Vec<(Rank, &Level)> = ranks.collect();
    ranks.sort_unstable_by_key(|(rank, _)| *rank);
    ranks.into_iter().find_map(first)
}
impl Level {
    fn rank(&self) -> Option<Rank> {
        self.firsts.first().map(|(rank, _)| *rank)
    }

    fn first(&self, ready: &impl Fn(UnitIx) -> bool) -> Option<(TurnNumber, TaskRef, UnitIx)> {
        self.turns.iter().find_map(|(turn, run)| {
            // A run that is not ready is not for any of its units, except gangs of several runs.
            let units = self.of.get(run)?.units.iter().take(2);
            units.filter(|(_, _, unit)| ready(*unit)).map(|(_, task, unit)| (*turn, *task, *unit)).next()
        })
    }

    /// Changes the units of a run, and moves it to its place.
    fn change(&mut self, run: RunId, turn: TurnNumber, change: impl FnOnce(&mut BTreeSet<(Rank, TaskRef, UnitIx)>)) {
        let line = self.of.entry(run).or_insert_with(|| RunLine { turn, units: BTreeSet::new() });
        if let Some((rank, _, _)) = line.units.first() {
            self.firsts.remove(&(*rank, run));
            self.turns.remove(&(line.turn, run));
        }
        line.turn = turn;
        change(&mut line.units);
        match line.units.first() {
            Some((rank, _, _)) => {
                self.firsts.insert((*rank, run));
                self.turns.insert((turn, run));
            }
            None => {
                self.of.remove(&run);
            }
        }
    }
}
