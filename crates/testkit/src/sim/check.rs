//! The guarantees as checks: pure looks at the engine, the runtime and what is on its way between them.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    Capacity, Decided, Engine, Input, Run as AnyRun,
    argo::{
        Run, State,
        node::{Leaf, Node},
    },
    jobflow::Run as FlowRun,
    kubejob::Run as KubeJobRun,
    submission::Run as WalkRun,
    taskset::Run as TaskSetRun,
    volcano::Run as JobRun,
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, Order, Time,
    argo::{NodeAdded, NodeKind, Role, Template, WorkflowFact},
};

use super::{
    audit::{audit, capacity, killed, locks},
    cluster::ClusterState,
    failure::{Broken, Guarantee, broken},
    flow, kubejob,
    life::Life,
    maker::Maker,
    runtime::Runtime,
    taskset, volcano, walk,
};

/// G7: two runs that should be one.
pub(super) fn same(live: &AnyRun, folded: &AnyRun) -> Result<(), Broken> {
    if let (Some(live), Some(folded)) = (live.of::<Run>(), folded.of::<Run>()) {
        return same_state(&live.state, &folded.state);
    }
    if let (Some(live), Some(folded)) = (live.of::<KubeJobRun>(), folded.of::<KubeJobRun>()) {
        if live.state == folded.state {
            return Ok(());
        }
        let told = format!("the Job is {:?} in memory and {:?} by its facts", live.state, folded.state);
        return broken(Guarantee::Fold, told);
    }
    if let (Some(live), Some(folded)) = (live.of::<WalkRun>(), folded.of::<WalkRun>()) {
        if live.state == folded.state {
            return Ok(());
        }
        let (live, folded) = (&*live.state, &*folded.state);
        return broken(Guarantee::Fold, format!("the job is {live:?} in memory and {folded:?} by its facts"));
    }
    match (live.of::<TaskSetRun>(), folded.of::<TaskSetRun>()) {
        (Some(live), Some(folded)) if live.state == folded.state => Ok(()),
        (Some(live), Some(folded)) => broken(
            Guarantee::Fold,
            format!("the TaskSet is {:?} in memory and {:?} by its facts", live.state, folded.state),
        ),
        _ => match (live.of::<JobRun>(), folded.of::<JobRun>()) {
            (Some(live), Some(folded)) if live.state == folded.state => Ok(()),
            (Some(live), Some(folded)) => broken(
                Guarantee::Fold,
                format!("the Job is {:?} in memory and {:?} by its facts", live.state, folded.state),
            ),
            _ => match (live.of::<FlowRun>(), folded.of::<FlowRun>()) {
                (Some(live), Some(folded)) if live.state == folded.state => Ok(()),
                (Some(live), Some(folded)) => broken(
                    Guarantee::Fold,
                    format!("the flow is {:?} in memory and {:?} by its facts", live.state, folded.state),
                ),
                _ => broken(Guarantee::Fold, "a run has changed its kind"),
            },
        },
    }
}

fn same_state(live: &State, folded: &State) -> Result<(), Broken> {
    if live == folded {
        return Ok(());
    }
    for (at, (left, right)) in live.nodes.iter().zip(&folded.nodes).enumerate() {
        if left != right {
            return broken(Guarantee::Fold, format!("node {at} is {left:?} in memory and {right:?} by its facts"));
        }
    }
    let (live, folded) = (State { nodes: Vec::new(), ..live.clone() }, State { nodes: Vec::new(), ..folded.clone() });
    broken(Guarantee::Fold, format!("the run is {live:?} in memory and {folded:?} by its facts"))
}

/// G5: a node came into being only if its limits had room for it. Where nothing new may start because something failed,
/// the handlers of what has ended run nevertheless, and ask nobody.
pub(super) fn grown(run: &AnyRun, fact: &Fact) -> Result<(), Broken> {
    if let Some(run) = run.of::<TaskSetRun>() {
        return taskset::grown(run, fact);
    }
    if let Some(run) = run.of::<JobRun>() {
        return volcano::grown(run, fact);
    }
    if let Some(run) = run.of::<KubeJobRun>() {
        return kubejob::grown(run, fact);
    }
    if let Some(run) = run.of::<FlowRun>() {
        return flow::grown(run, fact);
    }
    if let Some(run) = run.of::<WalkRun>() {
        return walk::grown(run, fact);
    }
    let run = run.of::<Run>().expect("the simulator knows every dialect");
    let added = match fact {
        Fact::Workflow(WorkflowFact::Added(added)) => added,
        Fact::Workflow(WorkflowFact::Finished(finished)) => return alone(run, finished.node),
        // What was found is not made.
        Fact::Workflow(WorkflowFact::Launched { node, .. }) if found(run, *node) => {
            let name = &run.state.node(*node).name;
            return broken(Guarantee::Twice, format!("{name} found its outputs and starts a task"));
        }
        // Nor is what was done before.
        Fact::Workflow(WorkflowFact::Launched { node, .. }) if run.state.node(*node).reused() => {
            let name = &run.state.node(*node).name;
            return broken(Guarantee::Twice, format!("{name} was done before and starts a task"));
        }
        _ => return Ok(()),
    };
    once(run, added)?;
    if added.parent.is_some_and(|parent| found(run, parent)) && !matches!(added.role, Role::Hook(_)) {
        return broken(Guarantee::Twice, format!("{} is made for a node that found its outputs", added.name));
    }
    let fails_fast = |at| template_of(run, at).is_some_and(|template| template.fail_fast == Some(true));
    if added.phase.fulfilled() || matches!(added.role, Role::Hook(_)) && added.boundary.is_some_and(fails_fast) {
        return Ok(());
    }
    let active = run.state.active_pods;
    if added.kind.tasked()
        && let Some(limit) = run.program.workflow.spec.parallelism
        && u64::from(active) > limit
    {
        return broken(Guarantee::Limits, format!("{} is pod {active} where the workflow allows {limit}", added.name));
    }
    let counted = matches!(added.kind, NodeKind::Pod | NodeKind::Steps | NodeKind::Dag);
    if let (true, Some(boundary)) = (counted, added.boundary)
        && let Some(limit) = limit_of(run, boundary)
    {
        let active = run.state.active_children.get(&boundary).copied().unwrap_or(0);
        if u64::from(active) > limit {
            let whose = &run.state.node(boundary).name;
            return broken(
                Guarantee::Limits,
                format!("{} is child {active} of {whose}, which allows {limit}", added.name),
            );
        }
    }
    Ok(())
}

/// The parallelism of the template a node runs.
fn limit_of(run: &Run, at: NodeIx) -> Option<u64> {
    template_of(run, at)?.parallelism.as_ref()?.0.trim().parse().ok()
}

fn template_of(run: &Run, at: NodeIx) -> Option<&Template> {
    let name = run.state.node(at).template.as_deref()?;
    run.program.compiled(name).map(|compiled| &*compiled.template)
}

/// G2 and G5: everything open has somebody who will bring it on, and the books agree with what is there.
pub(super) fn owned(
    life: &mut Life,
    (runtime, maker): (&Runtime, &Maker),
    cluster: Option<&mut ClusterState>,
    now: Time,
) -> Result<(), Broken> {
    let engine = life.engine();
    let orders = || life.event_loop.pending_orders();
    let starting: BTreeSet<AttemptId> =
        orders().filter(|order| matches!(order, Order::Start { .. })).map(Order::attempt).collect();
    let ending: BTreeSet<AttemptId> =
        orders().filter(|order| matches!(order, Order::Stop { .. } | Order::Kill { .. })).map(Order::attempt).collect();
    let (mut queued, mut held) = (0, 0);
    for id in life.shadows.keys() {
        // A run tells its times by the date of its submission.
        let local = |time: Time| engine.run(*id).map_or(time, |run| run.local(time));
        let (now, wake_at) = (local(now), engine.wake_at().map(local));
        let Some(run) = engine.run(*id) else {
            return broken(Guarantee::Acknowledged, format!("run {id} is open and not in the engine"));
        };
        if !life.leaving.contains(id) {
            flow::ordered(engine, run)?;
        }
        if let Some(run) = run.of::<FlowRun>() {
            // One that was accepted begins later.
            if !life.event_loop.is_accepted(*id) {
                flow::owned(run, (engine, wake_at), maker, (&starting, &ending), now)?;
            }
            continue;
        }
        if let Some(run) = run.of::<WalkRun>() {
            if !life.event_loop.is_accepted(*id) {
                walk::owned(run, (engine, wake_at), maker, &starting, now)?;
            }
            continue;
        }
        if let Some(run) = run.of::<TaskSetRun>() {
            let (waiting, placed) =
                taskset::owned(run, (engine, wake_at), runtime, (&starting, &ending), now, cluster.is_none())?;
            queued += waiting;
            held += placed;
            continue;
        }
        if let Some(run) = run.of::<JobRun>() {
            let (waiting, placed) = volcano::owned(run, (engine, wake_at), runtime, (&starting, &ending), now)?;
            queued += waiting;
            held += placed;
            continue;
        }
        if let Some(run) = run.of::<KubeJobRun>() {
            let (waiting, placed) = kubejob::owned(run, wake_at, runtime, (&starting, &ending), now)?;
            queued += waiting;
            held += placed;
            continue;
        }
        let any = run;
        let run = run.of::<Run>().expect("the simulator knows every dialect");
        let examined = Examined { run, now, wake_at, busy: busy(&run.state) };
        for (at, node) in run.state.nodes.iter().enumerate().filter(|(_, node)| !node.settled) {
            let at = NodeIx(at as u32);
            match node.leaf().filter(|_| !node.phase.fulfilled()) {
                Some(Leaf::Barred) => {}
                Some(Leaf::Queued) => queued += 1,
                Some(leaf) if any.is_request(at) => {
                    // It takes no room.
                    let attempt = run.attempt_of(at).unwrap_or(AttemptId { run: *id, task: at, attempt: 0 });
                    asked(any, attempt, leaf, (engine, maker), (&starting, &ending))?;
                }
                Some(leaf) => {
                    held += usize::from(!node.daemoned);
                    let first = AttemptId { run: *id, task: at, attempt: 0 };
                    let attempt = run.attempt_of(at).unwrap_or(first);
                    if !runtime.answers_for(attempt) && !starting.contains(&attempt) {
                        return broken(Guarantee::Owned, format!("{} is {leaf:?}, but no runtime has it", node.name));
                    }
                    if leaf == Leaf::Stopping && !runtime.told_to_end(attempt) && !ending.contains(&attempt) {
                        return broken(
                            Guarantee::Owned,
                            format!("{} should end, but nobody tells its task", node.name),
                        );
                    }
                }
                None => examined.moves(at, node)?,
            }
            examined.wakes(node)?;
        }
    }
    killed(life, runtime)?;
    exclusive(life)?;
    locks(life)?;
    if let Some(cluster) = cluster {
        return cluster.audit(life);
    }
    audit(life)?;
    books(life, queued, held)
}

/// G2: a step that asks for something has somebody who answers, or a run that goes on.
fn asked(
    run: &AnyRun,
    attempt: AttemptId,
    leaf: Leaf,
    (engine, maker): (&Engine, &Maker),
    (starting, ending): (&BTreeSet<AttemptId>, &BTreeSet<AttemptId>),
) -> Result<(), Broken> {
    let told = maker.answers_for(attempt) || starting.contains(&attempt);
    let fail = |what: String| broken(Guarantee::Owned, format!("the step of {attempt} {what}"));
    match run.child_of(attempt.task) {
        Some(child) if engine.run(child).map_or(!told, |child| child.finished()) => {
            fail(format!("waits for run {child}, which is over"))
        }
        None if !told => fail("waits, and nobody makes its run".to_owned()),
        _ if leaf == Leaf::Stopping && !maker.told_to_end(attempt) && !ending.contains(&attempt) => {
            fail("should end, and nobody tells whoever makes its run".to_owned())
        }
        _ => Ok(()),
    }
}

/// G5: what one may hold at a time, one holds. Every lock of these worlds is of that kind.
fn exclusive(life: &Life) -> Result<(), Broken> {
    let mut held: BTreeMap<&str, String> = BTreeMap::new();
    for id in life.shadows.keys() {
        let Some(run) = life.engine().run_of::<Run>(*id) else { continue };
        let nodes = run.state.nodes.iter().filter_map(|node| Some((&*node.name, node.lock.as_deref()?)));
        let own = run.state.lock.as_deref().map(|lock| (&*run.state.head.name, lock));
        for (name, lock) in own.into_iter().chain(nodes).filter(|(_, lock)| lock.held) {
            for claim in &lock.claims {
                if let Some(other) = held.insert(&claim.key, format!("{name} of run {id}")) {
                    return broken(Guarantee::Limits, format!("{} is held by {other} and by {name}", claim.key));
                }
            }
        }
    }
    Ok(())
}

/// G5: slots equal live tasks, and room is never left unused while somebody waits for it.
fn books(life: &mut Life, queued: usize, held: usize) -> Result<(), Broken> {
    let scheduler = life.event_loop.engine().scheduler();
    let running = scheduler.running();
    if running != held {
        return broken(Guarantee::Limits, format!("{running} slots are taken by {held} live tasks"));
    }
    let slots = usize::try_from(capacity(life, "pods")).unwrap_or(usize::MAX);
    life.excess = life.excess.min(running.saturating_sub(slots));
    if running > slots + life.excess {
        return broken(Guarantee::Limits, format!("{running} tasks run where {slots} may"));
    }
    if queued > scheduler.waiting() {
        return broken(
            Guarantee::Owned,
            format!("{queued} tasks wait for the scheduler, which knows {}", scheduler.waiting()),
        );
    }
    if let Some(task) = scheduler.overlooked() {
        return broken(Guarantee::Owned, format!("{task:?} waits though there is room for it"));
    }
    Ok(())
}

/// G2: nothing inside a boundary is open when that is over, daemons included.
fn alone(run: &Run, at: NodeIx) -> Result<(), Broken> {
    let left = run.state.nodes.iter().find(|node| node.boundary == Some(at) && !node.settled);
    match left {
        Some(left) if matches!(run.state.node(at).kind, NodeKind::Steps | NodeKind::Dag) => broken(
            Guarantee::NothingLeft,
            format!("{} is over, but {} ({}) in it is not", run.state.node(at).name, left.name, left.phase),
        ),
        _ => Ok(()),
    }
}

fn found(run: &Run, at: NodeIx) -> bool {
    run.state.node(at).memo.as_ref().is_some_and(|memo| memo.hit)
}

/// Each hook fires once, and only of something that is not over.
fn once(run: &Run, added: &NodeAdded) -> Result<(), Broken> {
    let (owner, name) = match &added.role {
        Role::Hook(name) => (added.parent, name),
        Role::RunHook(name) => (None, name),
        _ => return Ok(()),
    };
    let state = &run.state;
    let fired = state.fired.get(&owner).map(Vec::as_slice).unwrap_or_default();
    let named =
        |at: &&NodeIx| matches!(&state.node(**at).role, Role::Hook(other) | Role::RunHook(other) if other == name);
    let count = fired.iter().filter(named).count();
    if count != 1 || owner.is_some_and(|owner| state.node(owner).settled) {
        return broken(Guarantee::Twice, format!("{} fires {count} times, or of a node that is over", added.name));
    }
    Ok(())
}

/// One run that is examined.
struct Examined<'r> {
    run: &'r Run,
    now: Time,
    wake_at: Option<Time>,
    /// By node: something below it is open.
    busy: Vec<bool>,
}

fn busy(state: &State) -> Vec<bool> {
    let mut busy = vec![false; state.nodes.len()];
    for node in state.nodes.iter().filter(|node| !node.settled) {
        if let Some(parent) = node.parent {
            busy[parent.at()] = true;
        }
        // A boundary that is about to end waits for its daemons.
        if let Some(boundary) = node.boundary.filter(|_| node.daemoned) {
            busy[boundary.at()] = true;
        }
    }
    busy
}

impl Examined<'_> {
    /// A node that is no task has open children, or a reason to wait.
    fn moves(&self, at: NodeIx, node: &Node) -> Result<(), Broken> {
        let fine = self.busy[at.at()]
            // The table of locks has it; a table that forgot it would let the run stall.
            || node.barred && node.lock.is_some()
            || self.run.state.head.suspended
            || node.kind == NodeKind::Suspend && !node.phase.fulfilled()
            // Its pod speaks for it, and is checked itself.
            || node.kind == NodeKind::Container && node.parent.is_some_and(|pod| !self.run.state.node(pod).settled)
            || node.kind == NodeKind::Retry && node.wake.is_some_and(|wake| wake > self.now)
            // Timers that are due together are heard in slices.
            || node.wake.is_some() && self.wake_at.is_some_and(|at| at <= self.now)
            || self.limited(at, node);
        if fine {
            return Ok(());
        }
        broken(
            Guarantee::Owned,
            format!("{} ({} {}) is open and nothing will bring it on", node.name, node.kind.word(), node.phase),
        )
    }

    /// A limit keeps it from starting more.
    fn limited(&self, at: NodeIx, node: &Node) -> bool {
        let whole = self.run.program.workflow.spec.parallelism.is_some_and(|limit| self.run.pod_slots_taken() >= limit);
        let inside = node.kind == NodeKind::Dag && !node.phase.fulfilled();
        let boundary = if inside { Some(at) } else { node.boundary };
        let full = |at: NodeIx| limit_of(self.run, at).is_some_and(|limit| self.run.slots_taken(at) >= limit);
        whole || boundary.is_some_and(full)
    }

    fn wakes(&self, node: &Node) -> Result<(), Broken> {
        match node.wake {
            Some(wake) if !node.phase.fulfilled() && wake > self.now && self.wake_at.is_none_or(|at| at > wake) => {
                broken(Guarantee::Owned, format!("{} must be looked at by {wake}, but no wake-up is set", node.name))
            }
            _ => Ok(()),
        }
    }
}

/// Going on from the journal decides nothing the living engine has not decided: nothing was overlooked, and looking
/// twice decides nothing twice. The second engine has no room, so that it cannot launch what waits in the first.
/// Where a limit or a suspension holds things up they wait in the order they came, which the journal does not keep;
/// there only the states are compared.
pub(super) fn twice(life: &Life, now: Time) -> Result<(), Broken> {
    // What was only accepted has something to decide.
    for (id, shadow) in life.shadows.iter().filter(|(id, _)| !life.event_loop.is_accepted(**id)) {
        let Some(live) = life.engine().run(*id) else { continue };
        let mut engine = Engine::new(Capacity { slots: 0, cpu_milli: 0, memory_bytes: 0 });
        let folded = octoflow_engine::engine::fold(*id, shadow.facts.iter().cloned());
        let folded = folded.or_else(|why| broken(Guarantee::Fold, why.to_string()))?;
        engine.handle(Input::Restore(Box::new(folded)), now);
        if let Some(folded) = engine.run(*id) {
            same(live, folded)?;
        }
        // In the middle of a loop, or of timers that are due together, there is more to decide.
        if life.engine().is_unsettled(*id) || life.engine().wake_at().is_some_and(|at| at <= now) {
            continue;
        }
        let outcome = engine.handle(Input::Continue { runs: vec![*id] }, now);
        if let Some(Decided { facts, .. }) = outcome.decided.first().filter(|_| !live.of::<Run>().is_some_and(held_up))
        {
            return broken(
                Guarantee::Twice,
                format!("run {id}, restored from its journal, decides {:?}", facts.first()),
            );
        }
    }
    Ok(())
}

fn held_up(run: &Run) -> bool {
    let state = &run.state;
    let whole = run.program.workflow.spec.parallelism.is_some_and(|limit| run.pod_slots_taken() >= limit);
    let full = |(at, node): (usize, &Node)| {
        let at = NodeIx(at as u32);
        !node.phase.fulfilled() && limit_of(run, at).is_some_and(|limit| run.slots_taken(at) >= limit)
    };
    // The second engine knows nothing of the locks of other runs.
    let locked = state.lock.iter().chain(state.nodes.iter().filter_map(|node| node.lock.as_ref()));
    let waits = locked.into_iter().any(|lock| !lock.held);
    state.head.suspended || whole || waits || state.nodes.iter().enumerate().any(full)
}
