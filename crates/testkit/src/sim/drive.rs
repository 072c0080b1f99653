//! The driver: lets events happen to the controller as they come, crashes it where the plan says, and checks after every step.

use std::collections::BTreeMap;

use octoflow_control::{Adoption, Error, Leaving, VirtualDisk};
use octoflow_engine::{Command, Engine, Run, argo, jobflow, kubejob, submission, taskset, volcano};
use octoflow_model::{AttemptId, NodeIx, Order, RunId, Shutdown, Time, argo::NodeKind, taskset::ReplicaPhase};
use octoflow_store::Error as StoreError;
use serde_json::Value;

use story::{brief, told};

use super::{
    calendar::{Calendar, DAWN, Event, ticks},
    check,
    cluster::{ClusterState, Seen},
    disk::{Disk, Point},
    draw::Draw,
    failure::{Broken, Failure, Guarantee, broken},
    hooks::HookListener,
    life::{Life, is_sliced},
    maker::Maker,
    runtime::Runtime,
    walk,
    world::{Crashes, Flavour, UserRequest, World, resume},
};

mod flows;
mod nodes;
mod people;
mod rerun;
mod story;

/// A story longer than this goes in circles.
const MAX_STEPS: u64 = 20_000;
/// Crashes of one story that crashes now and then.
const MAX_CRASHES: u64 = 8;

/// How a story ended well.
#[derive(Clone, Debug)]
pub struct Ending {
    /// By run: its final tree without times.
    pub trees: BTreeMap<RunId, Value>,
    pub commits: u64,
    pub crashes: u64,
    /// What there was to judge of several nodes and queues.
    pub seen: Seen,
    pub story: Vec<String>,
}

/// Plays a world once.
pub fn run(world: &World, crashes: Crashes, tell: bool) -> Result<Ending, Box<Failure>> {
    let mut story = Vec::new();
    if tell {
        story.extend(world.manifests().map(|manifest| format!("{manifest:#}")));
    }
    let played = Sim::new(world, crashes, tell.then_some(&mut story)).and_then(|mut sim| {
        sim.play()?;
        let seen = sim.cluster.as_ref().map(ClusterState::seen).unwrap_or_default();
        Ok((sim.disk.trees(), sim.commits, sim.crashed, seen))
    });
    match played {
        Ok((trees, commits, crashes, seen)) => Ok(Ending { trees, commits, crashes, seen, story }),
        Err((guarantee, what)) => Err(Box::new(Failure { seed: world.seed, crashes, guarantee, what, story })),
    }
}

struct Sim<'w> {
    world: &'w World,
    crashes: Crashes,
    draw: Draw,
    /// Its own stream: how often a second look is taken does not change the story.
    looks: Draw,
    /// Its own stream too: bursts of other submissions, idempotency keys, and disks that cannot be written.
    weather: Draw,
    calendar: Calendar,
    runtime: Runtime,
    /// Makes the jobs of flows.
    maker: Maker,
    /// What must be on the disk.
    disk: Disk,
    /// What is there.
    virtual_disk: VirtualDisk,
    hooks: HookListener,
    /// None while the controller is down.
    life: Option<Life>,
    now: Time,
    up_at: Time,
    durable_at: Time,
    commits: u64,
    crashed: u64,
    asks: Vec<Ask>,
    /// Runs that leave the loop, to be deleted then.
    leaving: Vec<(RunId, Leaving)>,
    /// Nodes and queues, in worlds that have several.
    cluster: Option<ClusterState>,
    story: Option<&'w mut Vec<String>>,
}

/// How far an act of the plan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Planned,
    /// Asked before and not answered: it may have been done.
    PlannedAgain,
    Asked {
        again: bool,
    },
    /// The person was told that it is done.
    Acknowledged,
    Refused,
}

impl<'w> Sim<'w> {
    fn new(world: &'w World, crashes: Crashes, story: Option<&'w mut Vec<String>>) -> Result<Self, Broken> {
        let mut draw = Draw::new(world.seed, "drive");
        let mut weather = Draw::new(world.seed, "weather");
        let mut calendar = Calendar::default();
        for (at, act) in world.acts.iter().enumerate() {
            calendar.put(act.at, Event::Act(at));
        }
        let wild = world.flavour == Flavour::Wild;
        if wild && draw.chance(10) {
            calendar.put(DAWN.saturating_add(ticks(draw.below(1500))), Event::Collapse);
        }
        if wild && weather.chance(15) {
            calendar.put(DAWN.saturating_add(ticks(weather.below(600))), Event::Outage);
        }
        while weather.chance(40) {
            let at = DAWN.saturating_add(ticks(weather.below(300)));
            calendar.put(at, Event::Burst(weather.between(4, 9) as usize));
            calendar.put(at.saturating_add(ticks(weather.below(60))), Event::Burst(0));
        }
        let virtual_disk = VirtualDisk::new().or_else(no_disk)?;
        let hooks = HookListener::begin(world.seed, &virtual_disk).or_else(no_disk)?;
        walk::begin(world.seed, &virtual_disk).or_else(no_disk)?;
        let disk = Disk::default();
        let mut cluster = world.cluster.as_ref().map(|plan| ClusterState::new(plan, is_sliced(world)));
        let mut life = Life::start(world, cluster.as_ref(), virtual_disk.clone(), &disk, DAWN)?;
        if let (Some(plan), Some(cluster)) = (&world.cluster, &mut cluster) {
            cluster.begin(plan, &mut life.event_loop)?;
            for (at, (time, _)) in plan.acts.iter().enumerate() {
                calendar.put(*time, Event::Cluster(at));
            }
        }
        let life = Some(life);
        for (at, (time, _)) in world.flows.iter().flat_map(|plan| plan.acts.iter().enumerate()) {
            calendar.put(*time, Event::Flows(at));
        }
        let templates = world.flows.as_ref().map(|plan| plan.templates.clone()).unwrap_or_default();
        Ok(Self {
            world,
            crashes,
            draw,
            looks: Draw::new(world.seed, "looks"),
            weather,
            calendar,
            runtime: Runtime::new(world.seed),
            maker: Maker::new(world.seed, templates),
            disk,
            virtual_disk,
            hooks,
            life,
            now: DAWN,
            up_at: DAWN,
            durable_at: DAWN,
            commits: 0,
            crashed: 0,
            asks: vec![Ask::Planned; world.acts.len()],
            leaving: Vec::new(),
            cluster,
            story,
        })
    }

    fn play(&mut self) -> Result<(), Broken> {
        for _ in 0..MAX_STEPS {
            let step = self.life.as_mut().and_then(|life| life.event_loop.next_step());
            let due = self.calendar.next_at().into_iter().chain(step).min();
            let Some(due) = due else {
                if self.rest()? {
                    return self.last_look();
                }
                continue;
            };
            self.now = self.now.max(due);
            // Now and then the controller is slow and finds several things in its inbox.
            let until =
                if self.draw.chance(20) { self.now.saturating_add(ticks(self.draw.below(20))) } else { self.now };
            while let Some((at, event)) = self.calendar.pop_until(until) {
                self.now = self.now.max(at);
                self.happen(event)?;
            }
            self.step()?;
        }
        broken(Guarantee::Owned, format!("nothing has come to an end after {MAX_STEPS} steps"))
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = self.story.as_mut() {
            let since = self.now.since(DAWN);
            story.push(format!("{:>9.2}s  {}", since.as_secs_f64(), line()));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Act(at) => self.act(at),
            Event::Cluster(at) => self.change_cluster(at)?,
            Event::Flows(at) => self.change_flows(at),
            Event::Make(attempt) => self.make(attempt)?,
            Event::Delete(run) => self.delete(run),
            Event::Task(attempt, moment) => {
                self.tell(|| format!("task     {attempt} {moment:?}"));
                self.runtime.live(attempt, moment, self.now, &mut self.calendar);
            }
            Event::Report(report) => {
                if self.life.is_some() {
                    self.tell(|| format!("report   {report:?}"));
                }
                if let Some(life) = &mut self.life {
                    self.cluster.iter_mut().for_each(|cluster| cluster.heard(&report));
                    life.event_loop.report(report);
                }
            }
            Event::Burst(count) => {
                self.tell(|| format!("others   have {count} submissions under way"));
                if let Some(life) = &mut self.life {
                    life.event_loop.set_burst(count);
                }
            }
            Event::Durable => self.durable()?,
            Event::Outage => self.outage()?,
            Event::Reopen => self.reopen()?,
            Event::Up => self.up()?,
            Event::Collapse => {
                self.tell(|| "the runtime loses everything it runs".to_owned());
                self.runtime.collapse(false, self.life.is_some(), self.now, &mut self.calendar);
            }
        }
        Ok(())
    }

    /// The event loop takes a step: perhaps something goes to the disk.
    fn step(&mut self) -> Result<(), Broken> {
        let Some(life) = &mut self.life else { return Ok(()) };
        self.hooks.listen(&self.virtual_disk)?;
        let commits = life.step(self.now, self.cluster.as_mut())?;
        // Orders follow a durable commit, and are taken then.
        if let Some(order) = life.event_loop.take_orders().first() {
            return broken(Guarantee::Durable, format!("{} leaves before its commit is durable", brief(order)));
        }
        let adoptions = life.event_loop.take_adoptions();
        let second_looks = if commits.is_empty() { 4 } else { 15 };
        for commit in &commits {
            let latency = if self.draw.chance(70) { ticks(1) } else { ticks(self.draw.below(10)) };
            self.durable_at = self.durable_at.max(self.now.saturating_add(latency));
            self.calendar.put(self.durable_at, Event::Durable);
            let lines = if self.story.is_some() { told(commit) } else { Vec::new() };
            lines.into_iter().for_each(|line| self.tell(|| line));
        }
        for Adoption { believed, leave } in adoptions {
            self.tell(|| {
                let ids: Vec<String> = believed.iter().map(|(id, _)| id.to_string()).collect();
                format!("adopt    believed to be alive: {}", ids.join(" "))
            });
            let (requests, believed): (Vec<_>, Vec<_>) = believed.into_iter().partition(|(id, _)| self.is_request(*id));
            self.disk.check_unanswered(requests.iter().map(|(id, task)| (*id, &**task)))?;
            self.maker.adopt(&requests, self.now, &mut self.calendar)?;
            // What was to start on a machine that is gone never did.
            let gone: Vec<AttemptId> = believed.iter().map(|(id, _)| *id).filter(|id| self.is_nowhere(*id)).collect();
            self.runtime.lose(&gone, false, self.now, &mut self.calendar);
            self.runtime.adopt(believed, &leave, self.now, &mut self.calendar)?;
        }
        if self.life.as_ref().is_some_and(|life| life.event_loop.wants_reopen()) {
            let later = self.now.saturating_add(ticks(self.weather.below(4)));
            self.calendar.put(later, Event::Reopen);
        }
        let look_again = self.looks.chance(second_looks);
        let Some(life) = &mut self.life else { return Ok(()) };
        // What is decided in slices is looked at when the last one is.
        if life.event_loop.is_out() || life.event_loop.holds() || life.engine().has_more() {
            return Ok(());
        }
        check::owned(life, (&self.runtime, &self.maker), self.cluster.as_mut(), self.now)?;
        if look_again { check::twice(life, self.now) } else { Ok(()) }
    }

    fn durable(&mut self) -> Result<(), Broken> {
        if self.life.is_none() {
            return Ok(());
        }
        let commit = self.commits;
        let crash = self.crash_at(commit);
        if crash == Some(Point::Before) {
            self.commits += 1;
            return self.crash(commit, Point::Before);
        }
        let Some(life) = &mut self.life else { return Ok(()) };
        let Some(written) = life.event_loop.write() else { return Ok(()) };
        self.commits += 1;
        if let Some(why) = written.refused() {
            return broken(Guarantee::Acknowledged, format!("the store refuses commit {commit}: {why}"));
        }
        self.disk.append(written.facts())?;
        self.disk.find_records(&self.virtual_disk.reader().or_else(no_disk)?)?;
        self.tell(|| format!("disk     commit {commit} is durable"));
        if crash == Some(Point::After) {
            // The crash may come while orders are being sent: some of them arrive.
            let orders = written.orders();
            let sent = if self.draw.chance(50) { 0 } else { self.draw.below(orders.len() as u64 + 1) as usize };
            self.send(&orders[..sent])?;
            return self.crash(commit, Point::After);
        }
        let Some(life) = &mut self.life else { return Ok(()) };
        life.event_loop.settle(written);
        let orders = life.event_loop.take_orders();
        self.send(&orders)?;
        self.read_answers()?;
        self.check_watches()
    }

    /// The disk cannot be written. What was on its way there is lost, but for the oldest commit now and then: then the
    /// disk has it, and nobody knows.
    fn outage(&mut self) -> Result<(), Broken> {
        let Some(life) = &mut self.life else { return Ok(()) };
        if life.event_loop.is_out() {
            return Ok(());
        }
        let kept = if self.weather.chance(30) { life.event_loop.write() } else { None };
        if let Some(kept) = &kept {
            self.disk.append(kept.facts())?;
            self.disk.find_records(&self.virtual_disk.reader().or_else(no_disk)?)?;
        }
        let half_kept = kept.is_some();
        self.tell(|| format!("OUTAGE   the disk cannot be written; it has the oldest commit: {half_kept}"));
        let Some(life) = &mut self.life else { return Ok(()) };
        life.event_loop.fail(kept, &full());
        life.shadows_of(&self.disk)?;
        self.cluster.iter_mut().for_each(ClusterState::controller_starts);
        self.calendar.forget_commits();
        self.durable_at = self.now;
        self.read_answers()
    }

    fn reopen(&mut self) -> Result<(), Broken> {
        let failure = self.weather.chance(60).then(full);
        self.tell(|| format!("disk     is opened again: {}", failure.is_none()));
        let Some(life) = &mut self.life else { return Ok(()) };
        if life.event_loop.wants_reopen() {
            life.event_loop.reopen(failure);
        }
        self.read_answers()
    }

    fn send(&mut self, orders: &[Order]) -> Result<(), Broken> {
        for order in orders {
            self.tell(|| format!("order    {}", brief(order)));
            let attempt = order.attempt();
            let seen = self.disk.seen(attempt.run).and_then(|run| over(run, attempt.task));
            match (order, seen) {
                (_, None) => {
                    return broken(Guarantee::Fenced, format!("{} is about a node nobody could see", brief(order)));
                }
                (Order::Start { .. }, Some(true)) => {
                    return broken(Guarantee::Fenced, format!("{} is sent after its end", brief(order)));
                }
                (Order::Start { .. }, _) if self.is_nowhere(attempt) => {
                    self.runtime.lose(&[attempt], true, self.now, &mut self.calendar);
                }
                _ if self.is_request(attempt) => self.request(order, self.now)?,
                _ => self.runtime.send(order, self.now, &mut self.calendar)?,
            }
        }
        Ok(())
    }

    fn crash_at(&mut self, commit: u64) -> Option<Point> {
        match self.crashes {
            Crashes::Never => None,
            Crashes::At { commit: planned, point } => (planned == commit).then_some(point),
            Crashes::Sometimes => {
                let point = *self.draw.pick(&[Point::Before, Point::After]);
                (self.crashed < MAX_CRASHES && self.draw.chance(8)).then_some(point)
            }
        }
    }

    /// Everything in memory is lost. People who were not answered will ask again; the runtime goes on, or dies as well.
    fn crash(&mut self, commit: u64, point: Point) -> Result<(), Broken> {
        self.tell(|| format!("CRASH    at commit {commit}, {point:?} it is durable"));
        self.crashed += 1;
        self.life = None;
        self.maker.crash();
        self.ask_again_for_deletions();
        self.calendar.forget_controller();
        self.up_at = self.now.saturating_add(ticks(self.draw.below(300)));
        if self.world.flavour == Flavour::Wild && self.draw.chance(15) {
            let amnesia = self.draw.chance(50);
            self.tell(|| {
                format!("the runtime dies as well, {}", if amnesia { "and its memory" } else { "but remembers" })
            });
            self.runtime.collapse(amnesia, false, self.now, &mut self.calendar);
        }
        self.calendar.put(self.up_at, Event::Up);
        for at in 0..self.asks.len() {
            let asks_again = match self.world.acts[at].request {
                UserRequest::Submit(_) => true,
                UserRequest::Command(_) => self.draw.chance(50),
            };
            if matches!(self.asks[at], Ask::Asked { .. }) && asks_again {
                self.asks[at] = Ask::PlannedAgain;
                let patience = ticks(self.draw.below(100) + 1);
                self.calendar.put(self.up_at.saturating_add(patience), Event::Act(at));
            }
        }
        Ok(())
    }

    fn up(&mut self) -> Result<(), Broken> {
        self.tell(|| "UP       the controller reads its journal".to_owned());
        self.durable_at = self.now;
        self.acknowledged()?;
        let reader = self.virtual_disk.reader().or_else(no_disk)?;
        self.disk.compare_journals(&reader)?;
        self.disk.compare_caches(&reader)?;
        drop(reader);
        self.cluster.iter_mut().for_each(ClusterState::controller_starts);
        let disk = self.virtual_disk.clone();
        let mut life = Life::start(self.world, self.cluster.as_ref(), disk, &self.disk, self.now)?;
        // A task whose end was reported and not yet committed has given its room to another one. Both are restored.
        life.excess = usize::MAX;
        self.life = Some(life);
        self.step()
    }

    /// G1: what people were told is done is on the disk.
    fn acknowledged(&self) -> Result<(), Broken> {
        for (act, ask) in self.world.acts.iter().zip(&self.asks) {
            if *ask != Ask::Acknowledged {
                continue;
            }
            let Some(run) = self.disk.seen(act.run) else {
                return broken(
                    Guarantee::Acknowledged,
                    format!("run {} was acknowledged and is not on the disk", act.run),
                );
            };
            if let UserRequest::Command(command) = &act.request {
                let shutdown = run.head().shutdown;
                let kept = match command {
                    Command::Stop => shutdown.is_some(),
                    Command::Terminate => shutdown == Some(Shutdown::Terminate),
                    Command::Suspend
                    | Command::Resume { .. }
                    | Command::StopNodes { .. }
                    | Command::Set { .. }
                    | Command::Evict { .. }
                    | Command::Disband { .. }
                    | Command::Amend { .. }
                    | Command::Perform { .. }
                    | Command::Mark { .. }
                    | Command::Because { .. } => true,
                };
                if !kept {
                    return broken(
                        Guarantee::Acknowledged,
                        format!("{command:?} of run {} was acknowledged and is not kept", act.run),
                    );
                }
            }
        }
        Ok(())
    }

    /// Nothing is going to happen by itself. True when everything is over; a suspended run is resumed.
    fn rest(&mut self) -> Result<bool, Broken> {
        let open = self.disk.open_runs();
        if open.is_empty() {
            return Ok(!self.retry()?);
        }
        let Some(life) = &mut self.life else {
            return broken(Guarantee::Owned, "the controller is down and nobody brings it up");
        };
        let mut resumed = Vec::new();
        for id in open {
            if let Some(command) = life.engine().run(id).and_then(resumption) {
                let ticket = life.event_loop.command(id, command);
                resumed.push((id, ticket));
            }
        }
        if resumed.is_empty() {
            return broken(Guarantee::Owned, self.stalled());
        }
        let ids: Vec<RunId> = resumed.iter().map(|(id, _)| *id).collect();
        self.tell(|| format!("person   resumes {ids:?}, which wait for nothing else"));
        self.step()?;
        // A refusal is told with the next commit; a run that is refused would be asked here again and again.
        Ok(false)
    }

    fn stalled(&self) -> String {
        let mut reasons = Vec::new();
        for id in self.disk.open_runs() {
            let engine = self.life.as_ref().map(Life::engine);
            let Some(run) = engine.and_then(|engine| engine.run(id)) else { continue };
            let told = run.explain(engine.map(Engine::scheduler), None);
            reasons.extend(told.iter().map(|one| format!("{}: {}", one.node, one.reason)));
        }
        format!("nothing more will happen, and yet open is: {}", reasons.join("; "))
    }

    fn last_look(&mut self) -> Result<(), Broken> {
        self.acknowledged()?;
        if let Some((act, _)) =
            self.world.acts.iter().zip(&self.asks).find(|(_, ask)| matches!(ask, Ask::Planned | Ask::PlannedAgain))
        {
            return broken(Guarantee::Acknowledged, format!("what was planned for run {} never happened", act.run));
        }
        if let Some(life) = &self.life {
            if let Some(left) = life.event_loop.reserved().first() {
                return broken(Guarantee::NothingLeft, format!("every run is over, but {left} is still reserved"));
            }
            self.disk.compare_meters(life.engine().meters())?;
        }
        self.check_watches_closed()?;
        self.hooks.settle(&self.virtual_disk, &self.disk)?;
        self.disk.compare_caches(&self.virtual_disk.reader().or_else(no_disk)?)?;
        let mut alive = self.runtime.alive();
        alive.extend(self.maker.under_way());
        if !alive.is_empty() {
            return broken(
                Guarantee::NothingLeft,
                format!("every run is over, but these attempts still run: {alive:?}"),
            );
        }
        let trees = self.disk.trees();
        match self.disk.runs().iter().find(|run| !trees.contains_key(run)) {
            Some(run) => broken(Guarantee::Acknowledged, format!("run {run} is over without a final record")),
            None => Ok(()),
        }
    }
}

/// What a person does about a run that waits for one: a pause goes on, with a value where it needs one, or the run does.
fn resumption(run: &Run) -> Option<Command> {
    let Some(run) = run.of::<argo::Run>() else { return (run.head().suspended || walk::is_gated(run)).then(resume) };
    let state = &run.state;
    let mut nodes = state.nodes.iter().enumerate();
    let Some((at, node)) = nodes.find(|(_, node)| node.kind == NodeKind::Suspend && !node.phase.fulfilled()) else {
        return state.head.suspended.then(resume);
    };
    let template = node.template.as_deref().and_then(|name| run.program.compiled(name));
    let outputs = template.map(|compiled| compiled.template.outputs.parameters.as_slice()).unwrap_or_default();
    let needed = outputs.iter().filter(|output| output.value_from.as_ref().is_some_and(|from| from.default.is_none()));
    let supplied = needed.map(|output| (output.name.clone(), "2".to_owned())).collect();
    Some(Command::Resume { selector: Some(format!("id={}", state.id_of(NodeIx(at as u32)))), supplied })
}

/// Whether what a task belongs to is over, as people can see it; nothing when they cannot.
fn over(run: &Run, task: NodeIx) -> Option<bool> {
    if let Some(run) = run.of::<taskset::Run>() {
        return run.state.replicas.get(task.at()).map(|one| one.phase == ReplicaPhase::Completed);
    }
    if let Some(run) = run.of::<volcano::Run>() {
        return run.state.pods.get(task.at()).map(|pod| pod.phase.ended());
    }
    if let Some(run) = run.of::<kubejob::Run>() {
        return super::kubejob::pod_over(run, task.at());
    }
    if let Some(run) = run.of::<jobflow::Run>() {
        // A test may be ordered and called off in one commit; what is left of requests is looked for at the end.
        return run.program.role(task).map(|_| false);
    }
    if let Some(run) = run.of::<submission::Run>() {
        return Some(walk::over(run));
    }
    let run = run.of::<argo::Run>()?;
    run.state.nodes.get(task.at()).map(|node| node.phase.fulfilled())
}

fn full() -> StoreError {
    StoreError::Unwritable { data_dir: "disk".into(), cause: "no space left".to_owned(), full: true }
}

fn no_disk<T>(error: Error) -> Result<T, Broken> {
    broken(Guarantee::Acknowledged, format!("the simulated disk cannot be used: {error:?}"))
}
