//! What must be on the disk: every fact of every commit that became durable. The store's own content is compared with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use octoflow_engine::{
    Run,
    argo::{self, node::Node},
    jobflow, kubejob,
    meters::Meters,
    submission, taskset, volcano,
};
use octoflow_model::{AttemptId, Fact, RunFact, RunId, Shutdown, Task, argo::WorkflowFact, request::Request};
use octoflow_store::Reader;
use serde_json::Value;

use super::{
    failure::{Broken, Guarantee, broken},
    tree,
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

/// Something of a run that can end. Roles and replicas begin anew with every attempt of their TaskSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Node(u32),
    TaskSet,
    Job,
    Role { attempt: u32, at: u32 },
    Replica { attempt: u32, at: u32 },
}

#[derive(Default)]
pub(super) struct Disk {
    journals: BTreeMap<RunId, Journal>,
    /// Attempts for which a run was made, and the uids of all runs that take nobody's place.
    ordered: BTreeSet<AttemptId>,
    uids: BTreeSet<String>,
    /// Runs that somebody is having deleted, and those that are gone. What they were is remembered here.
    leaving: BTreeSet<RunId>,
    deleted: BTreeSet<RunId>,
    /// Keys of the questions to plugins whose answers are kept.
    answered: BTreeSet<String>,
    /// What every reading of a custom metric adds up to.
    meters: Meters,
}

struct Journal {
    facts: Vec<Fact>,
    /// What people can see: the fold of the facts so far.
    seen: Run,
    /// What people could see as final, and how it ended.
    terminal: BTreeMap<Part, &'static str>,
    /// Once its final record is in the store.
    tree: Option<Value>,
}

impl Disk {
    /// Follows a commit that is durable now. What people could already see as final must stay as it was.
    pub(super) fn append(&mut self, commit: &[(RunId, Vec<Fact>)]) -> Result<(), Broken> {
        let open = self.open_runs();
        let ended: Vec<RunId> = commit.iter().filter(|(_, facts)| shuts_down(facts)).map(|(run, _)| *run).collect();
        for (run, facts) in commit {
            if let Some(Fact::Run(RunFact::Submitted(submission))) =
                facts.first().filter(|_| !self.journals.contains_key(run))
            {
                let seen = Run::open(*run, submission)
                    .or_else(|why| broken(Guarantee::Fold, format!("run {run} does not open again: {why}")))?;
                if submission.previous.is_none() && !self.uids.insert(submission.uid.clone()) {
                    return broken(Guarantee::Twice, format!("run {run} has the uid {} of another", submission.uid));
                }
                self.journals.insert(*run, Journal { facts: Vec::new(), seen, terminal: BTreeMap::new(), tree: None });
            }
            let Some(journal) = self.journals.get_mut(run) else {
                return broken(Guarantee::Fold, format!("the journal of run {run} does not begin with its submission"));
            };
            journal.append(*run, facts, &mut self.answered)?;
            for fact in facts {
                if let Fact::Workflow(WorkflowFact::Metered(metered)) = fact {
                    self.meters.take(metered);
                }
            }
        }
        drop(self.meters.take_touched());
        self.check_flows(commit)?;
        ended.into_iter().try_for_each(|owner| self.check_family(owner, &open))
    }

    /// Checks that nobody asks a plugin what is answered already.
    pub(super) fn check_unanswered<'t>(
        &self,
        started: impl IntoIterator<Item = (AttemptId, &'t Task)>,
    ) -> Result<(), Broken> {
        for (id, task) in started {
            if let Some(Request::Http(request)) = task.call.as_deref()
                && let Some(key) = request.idempotency_key.as_ref().filter(|key| self.answered.contains(*key))
            {
                return broken(Guarantee::Twice, format!("{id} asks {key}, which is answered"));
            }
        }
        Ok(())
    }

    /// Returns the uid of a run and the number of states that it has entered, as its facts alone tell.
    pub(super) fn lived(&self, run: RunId) -> Result<(String, u32), Broken> {
        let facts = self.journals.get(&run).map(|journal| journal.facts.clone()).unwrap_or_default();
        let folded = octoflow_engine::engine::fold(run, facts)
            .or_else(|why| broken(Guarantee::Fold, format!("run {run} does not fold: {why}")))?;
        Ok((folded.uid().to_owned(), folded.lived()))
    }

    /// Looks for the final records of runs that are over. Each must be what the facts alone tell.
    pub(super) fn find_records(&mut self, reader: &Reader) -> Result<(), Broken> {
        let over = |journal: &Journal| journal.tree.is_none() && journal.seen.finished();
        let deleted = &self.deleted;
        for (run, journal) in self.journals.iter_mut().filter(|(run, journal)| over(journal) && !deleted.contains(run))
        {
            let Some(kept) = reader.archive(*run).or_else(|error| unreadable(*run, &error))? else { continue };
            let mut drawn = Vec::new();
            journal.seen.write_record(&mut drawn).or_else(|error| unreadable(*run, &error))?;
            if kept != drawn {
                return broken(Guarantee::Fold, format!("the record of run {run} is not what its facts tell"));
            }
            let tree = tree::tree(&journal.seen).or_else(|why| broken(Guarantee::Fold, why))?;
            if let Some(what) = tree::untold(&tree, &journal.facts) {
                return broken(Guarantee::Fold, what);
            }
            journal.tree = Some(tree);
        }
        Ok(())
    }

    /// The journals in the store must hold every fact of every durable commit, and no other.
    pub(super) fn compare_journals(&self, reader: &Reader) -> Result<(), Broken> {
        let kept = |run: &RunId, journal: &Journal| journal.tree.is_none() && !self.deleted.contains(run);
        for (run, journal) in self.journals.iter().filter(|(run, journal)| kept(run, journal)) {
            let facts = octoflow_control::read::facts(reader, *run).or_else(|error| unreadable(*run, &error))?;
            if facts != journal.facts {
                return broken(Guarantee::Fold, format!("the journal of run {run} does not hold what was decided"));
            }
        }
        Ok(())
    }

    /// Outputs that were memoized are in their cache. The caches of these worlds never lose an entry.
    pub(super) fn compare_caches(&self, reader: &Reader) -> Result<(), Broken> {
        for (run, journal) in &self.journals {
            for fact in &journal.facts {
                let Fact::Workflow(WorkflowFact::Memoized { cache, key, .. }) = fact else { continue };
                let kept = reader.object("ConfigMap", &journal.seen.head().namespace, cache);
                let kept = kept.or_else(|error| unreadable(*run, &error))?;
                let kept = kept.and_then(|object| serde_json::from_slice::<Value>(&object.body).ok());
                if kept.is_none_or(|map| map["data"].get(key).is_none()) {
                    let what = format!("run {run} memoized {key} in {cache}, which does not have it");
                    return broken(Guarantee::Acknowledged, what);
                }
            }
        }
        Ok(())
    }

    /// Each reading that is durable counts, and counts once.
    pub(super) fn compare_meters(&self, kept: &Meters) -> Result<(), Broken> {
        if *kept == self.meters {
            return Ok(());
        }
        broken(Guarantee::Acknowledged, format!("the metrics are {kept:?}, and the facts tell {:?}", self.meters))
    }

    /// Each try of an entry has one job, and flows remember their jobs as they were.
    fn check_flows(&mut self, commit: &[(RunId, Vec<Fact>)]) -> Result<(), Broken> {
        let mut flows = BTreeSet::new();
        let mut waits = Vec::new();
        for (run, facts) in commit {
            if self.seen(*run).is_some_and(|run| run.of::<jobflow::Run>().is_some()) {
                flows.insert(*run);
            }
            let Some(attempt) = self.seen(*run).and_then(|run| run.head().ordered_by) else { continue };
            flows.insert(attempt.run);
            waits.push((*run, attempt));
            if matches!(facts.first(), Some(Fact::Run(RunFact::Submitted(_)))) && !self.ordered.insert(attempt) {
                return broken(Guarantee::Twice, format!("a second job is made for {attempt}: run {run}"));
            }
        }
        for flow in flows {
            if let Some(job) = self.seen(flow).and_then(|run| run.of::<submission::Run>()) {
                super::walk::remembers(job, |child| self.seen(child))?;
            }
            let Some(flow) = self.seen(flow).and_then(|run| run.of::<jobflow::Run>()) else { continue };
            super::flow::remembers(flow, |job| self.seen(job), |job| self.leaving.contains(&job))?;
        }
        waits.into_iter().try_for_each(|(child, attempt)| self.check_step(child, attempt))
    }

    /// The step of a workflow that waits for a run is over as soon as that is.
    fn check_step(&self, child: RunId, attempt: AttemptId) -> Result<(), Broken> {
        let parent = self.seen(attempt.run);
        let Some(parent) = parent.filter(|parent| parent.child_of(attempt.task) == Some(child)) else { return Ok(()) };
        let Some(state) = parent.of::<argo::Run>().map(|parent| &parent.state) else { return Ok(()) };
        let step = state.node(attempt.task);
        if !step.phase.fulfilled() && self.seen(child).is_some_and(|child| child.finished()) {
            return broken(Guarantee::Together, format!("run {child} is over, and {} still waits for it", step.name));
        }
        Ok(())
    }

    /// A run was told to end. So were those among the runs open before that belong to it, by the same commit. A flow waits
    /// for its jobs, and may tell them later.
    fn check_family(&self, owner: RunId, open: &[RunId]) -> Result<(), Broken> {
        for run in open {
            let Some(seen) = self.seen(*run).filter(|seen| seen.parent() == Some(owner)) else { continue };
            let waits = |owner: RunId| {
                self.seen(owner)
                    .is_some_and(|run| run.of::<jobflow::Run>().is_some() || run.of::<submission::Run>().is_some())
            };
            if seen.head().ordered_by.is_some_and(|attempt| waits(attempt.run)) || self.leaving.contains(run) {
                continue;
            }
            let uid = self.seen(owner).map(|owner| owner.uid().to_owned()).unwrap_or_default();
            let owned = seen.marks().ownership.owners.iter().any(|owner| owner["uid"] == uid.as_str());
            if !owned {
                continue;
            }
            // A stop does not change an end that is decided.
            let stopped = self.seen(owner).is_some_and(|owner| owner.head().shutdown == Some(Shutdown::Stop));
            let decided = stopped && seen.is_decided();
            if seen.head().shutdown.is_none() && !seen.finished() && !decided {
                return broken(Guarantee::Together, format!("run {owner} is told to end, and run {run} of it is not"));
            }
        }
        Ok(())
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

    /// The facts of a run from this number on.
    pub(super) fn facts_from(&self, run: RunId, first: usize) -> &[Fact] {
        self.journals.get(&run).and_then(|journal| journal.facts.get(first..)).unwrap_or_default()
    }

    pub(super) fn open_runs(&self) -> Vec<RunId> {
        let open = |run: &RunId, journal: &Journal| !journal.seen.finished() && !self.deleted.contains(run);
        self.journals.iter().filter(|(run, journal)| open(run, journal)).map(|(run, _)| *run).collect()
    }

    pub(super) fn runs(&self) -> BTreeSet<RunId> {
        self.journals.keys().filter(|run| !self.deleted.contains(run)).copied().collect()
    }

    /// Runs that others have ordered, and that nobody is having deleted.
    pub(super) fn ordered_runs(&self) -> Vec<RunId> {
        let ordered = self.journals.iter().filter(|(_, journal)| journal.seen.head().ordered_by.is_some());
        ordered.map(|(run, _)| *run).filter(|run| !self.leaving.contains(run)).collect()
    }

    /// Somebody has the run deleted from now on.
    pub(super) fn leave(&mut self, run: RunId) {
        self.leaving.insert(run);
    }

    pub(super) fn leaving(&self) -> &BTreeSet<RunId> {
        &self.leaving
    }

    /// The run is gone from the disk.
    pub(super) fn delete(&mut self, run: RunId) {
        self.deleted.insert(run);
    }

    pub(super) fn trees(&self) -> BTreeMap<RunId, Value> {
        self.journals.iter().filter_map(|(run, journal)| Some((*run, journal.tree.clone()?))).collect()
    }
}

fn unreadable<T>(run: RunId, error: &dyn fmt::Display) -> Result<T, Broken> {
    broken(Guarantee::Acknowledged, format!("run {run} cannot be read: {error}"))
}

/// Somebody's command to end the run is among these facts.
fn shuts_down(facts: &[Fact]) -> bool {
    facts.iter().any(|fact| matches!(fact, Fact::Run(RunFact::ShuttingDown { .. })))
}

/// The run is already as a command would make it.
fn is_repeated(run: &Run, fact: &Fact) -> bool {
    let head = run.head();
    match fact {
        Fact::Run(RunFact::Suspended { .. }) => head.suspended,
        Fact::Run(RunFact::Resumed { .. }) => !head.suspended,
        Fact::Run(RunFact::ShuttingDown { how, .. }) => head.shutdown == Some(*how),
        _ => false,
    }
}

impl Journal {
    fn append(&mut self, run: RunId, facts: &[Fact], answered: &mut BTreeSet<String>) -> Result<(), Broken> {
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
            let key = self.seen.of::<submission::Run>().and_then(|walk| super::walk::answered_key(walk, fact));
            if let Some(key) = key
                && !answered.insert(key.clone())
            {
                return broken(Guarantee::Twice, format!("{key} is answered a second time"));
            }
            if is_repeated(&self.seen, fact) {
                return broken(Guarantee::Twice, format!("{fact:?} of run {run} was decided before"));
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
    if let Some(run) = run.of::<volcano::Run>() {
        return super::volcano::finals(run);
    }
    if let Some(run) = run.of::<kubejob::Run>() {
        return super::kubejob::finals(run);
    }
    if let Some(run) = run.of::<jobflow::Run>() {
        return super::flow::finals(run);
    }
    if let Some(run) = run.of::<submission::Run>() {
        return super::walk::finals(run);
    }
    let run = run.of::<argo::Run>().expect("the simulator knows every dialect");
    let nodes = run.state.nodes.iter().enumerate();
    let word = |node: &Node| node.phase.fulfilled().then(|| node.phase.word());
    nodes.map(|(at, node)| (Part::Node(at as u32), word(node))).collect()
}
