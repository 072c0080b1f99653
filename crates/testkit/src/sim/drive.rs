//! The driver: lets events happen to the controller as they come, crashes it where the plan says, and checks after every step.

use std::collections::BTreeMap;

use octoflow_engine::{Command, Engine, Input, Program, Run, argo, engine::Keyed, taskset};
use octoflow_model::{Fact, NodeIx, Order, RunFact, RunId, Shutdown, Time, argo::NodeKind, taskset::ReplicaPhase};
use serde_json::Value;

use super::{
    calendar::{Calendar, DAWN, Event, ticks},
    check,
    disk::{Disk, Pending, Point},
    draw::Draw,
    failure::{Broken, Failure, Guarantee, broken},
    life::Life,
    runtime::Runtime,
    world::{Crashes, Deed, Flavour, World, resume},
};

mod rerun;

/// A story longer than this goes in circles.
const MOST_STEPS: u64 = 20_000;
/// Crashes of one story that crashes now and then.
const MOST_CRASHES: u64 = 8;

/// How a story ended well.
#[derive(Clone, Debug)]
pub struct Ending {
    /// By run: its final tree without times.
    pub trees: BTreeMap<RunId, Value>,
    pub commits: u64,
    pub crashes: u64,
    pub story: Vec<String>,
}

/// Plays a world once.
pub fn run(world: &World, crashes: Crashes, tell: bool) -> Result<Ending, Box<Failure>> {
    let mut story = Vec::new();
    if tell {
        story.extend(world.manifests().map(|manifest| format!("{manifest:#}")));
    }
    let mut sim = Sim::new(world, crashes, tell.then_some(&mut story));
    let outcome = sim.play();
    let (trees, commits, crashed) = (sim.disk.trees(), sim.commits, sim.crashed);
    match outcome {
        Ok(()) => Ok(Ending { trees, commits, crashes: crashed, story }),
        Err((guarantee, what)) => Err(Box::new(Failure { seed: world.seed, crashes, guarantee, what, story })),
    }
}

struct Sim<'w> {
    world: &'w World,
    crashes: Crashes,
    draw: Draw,
    /// Its own stream: how often a second look is taken does not change the story.
    looks: Draw,
    /// Its own stream too: which runs begin only some time after they were accepted.
    submit_draw: Draw,
    calendar: Calendar,
    runtime: Runtime,
    disk: Disk,
    /// None while the controller is down.
    life: Option<Life>,
    now: Time,
    up_at: Time,
    durable_at: Time,
    commits: u64,
    crashed: u64,
    asks: Vec<Ask>,
    story: Option<&'w mut Vec<String>>,
}

/// How far an act of the plan has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Planned,
    Asked,
    /// The person was told that it is done.
    Acknowledged,
    Refused,
}

impl<'w> Sim<'w> {
    fn new(world: &'w World, crashes: Crashes, story: Option<&'w mut Vec<String>>) -> Self {
        let mut draw = Draw::new(world.seed, "drive");
        let mut calendar = Calendar::default();
        for (at, act) in world.acts.iter().enumerate() {
            calendar.put(act.at, Event::Act(at));
        }
        if world.flavour == Flavour::Wild && draw.chance(10) {
            calendar.put(DAWN.saturating_add(ticks(draw.below(1500))), Event::Collapse);
        }
        Self {
            world,
            crashes,
            draw,
            looks: Draw::new(world.seed, "looks"),
            submit_draw: Draw::new(world.seed, "door"),
            calendar,
            runtime: Runtime::new(world.seed),
            disk: Disk::default(),
            life: Some(Life::new(world)),
            now: DAWN,
            up_at: DAWN,
            durable_at: DAWN,
            commits: 0,
            crashed: 0,
            asks: vec![Ask::Planned; world.acts.len()],
            story,
        }
    }

    fn play(&mut self) -> Result<(), Broken> {
        for _ in 0..MOST_STEPS {
            let due = self.calendar.next_at().into_iter().chain(self.life.as_ref().and_then(Life::next_at)).min();
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
            self.turn()?;
        }
        broken(Guarantee::Owned, format!("nothing has come to an end after {MOST_STEPS} steps"))
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = self.story.as_mut() {
            let since = self.now.since(DAWN);
            story.push(format!("{:>9.2}s  {}", since.as_secs_f64(), line()));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Act(at) => self.act(at)?,
            Event::Task(attempt, moment) => {
                self.tell(|| format!("task     {attempt} {moment:?}"));
                self.runtime.live(attempt, moment, self.now, &mut self.calendar);
            }
            Event::Report(report) => {
                if self.life.is_some() {
                    self.tell(|| format!("report   {report:?}"));
                }
                if let Some(life) = &mut self.life {
                    let _ = life.take(Input::Report(report), self.now);
                }
            }
            Event::Begin(run) => {
                self.tell(|| format!("control  lets run {run} begin"));
                if let Some(life) = &mut self.life {
                    let _ = life.take(Input::Begin { run }, self.now);
                }
            }
            Event::Durable => self.durable()?,
            Event::Up => self.up()?,
            Event::Collapse => {
                self.tell(|| "the runtime loses everything it runs".to_owned());
                self.runtime.collapse(false, self.life.is_some(), self.now, &mut self.calendar);
            }
        }
        Ok(())
    }

    fn act(&mut self, at: usize) -> Result<(), Broken> {
        let world = self.world;
        let act = &world.acts[at];
        let Some(life) = &mut self.life else {
            self.calendar.put(self.up_at.saturating_add(ticks(1)), Event::Act(at));
            return Ok(());
        };
        let mut begins = false;
        let input = match &act.deed {
            // After a crash a person asks again; the name may be taken by then, by what was asked before.
            Deed::Submit(_) if self.disk.knows(act.run) || life.shadows.contains_key(&act.run) => {
                self.asks[at] = Ask::Acknowledged;
                return Ok(());
            }
            Deed::Submit(submission) if self.submit_draw.chance(40) => {
                let later = self.now.saturating_add(ticks(self.submit_draw.below(60)));
                self.calendar.put(later, Event::Begin(act.run));
                // Half of those who hand it in have made it ready themselves, as the controller does; the other half not.
                let ready = act.run.0.is_multiple_of(2);
                let program = ready.then(|| Program::compile(&submission.manifest, &submission.stored).ok());
                Input::Submit { run: act.run, submission: submission.clone(), program: program.flatten() }
            }
            Deed::Submit(submission) => {
                begins = true;
                Input::Submit { run: act.run, submission: submission.clone(), program: None }
            }
            Deed::Command(command) => Input::Command { run: act.run, command: command.clone() },
        };
        let mut answer = life.take(input, self.now);
        if begins && answer.is_ok() {
            answer = life.take(Input::Begin { run: act.run }, self.now);
        }
        self.asks[at] = if answer.is_ok() { Ask::Asked } else { Ask::Refused };
        if answer.is_ok() {
            life.answer(at);
        }
        self.tell(|| match &act.deed {
            Deed::Submit(submission) => format!("person   submits {} as run {}: {answer:?}", submission.name, act.run),
            Deed::Command(command) => format!("person   tells run {} to {command:?}: {answer:?}", act.run),
        });
        match (&act.deed, answer) {
            (Deed::Submit(_), Err(refusal)) => {
                broken(Guarantee::Acknowledged, format!("an admitted manifest was refused: {refusal}"))
            }
            _ => Ok(()),
        }
    }

    /// The end of a turn of the controller: perhaps a cut goes to the disk.
    fn turn(&mut self) -> Result<(), Broken> {
        let Some(life) = &mut self.life else { return Ok(()) };
        let mut second_looks = 4;
        if let Some(pending) = life.turn(self.now)? {
            second_looks = 15;
            let lines = if self.story.is_some() { told(pending) } else { Vec::new() };
            let latency = if self.draw.chance(70) { ticks(1) } else { ticks(self.draw.below(10)) };
            self.durable_at = self.durable_at.max(self.now.saturating_add(latency));
            self.calendar.put(self.durable_at, Event::Durable);
            lines.into_iter().for_each(|line| self.tell(|| line));
        }
        let look_again = self.looks.chance(second_looks);
        let Some(life) = &mut self.life else { return Ok(()) };
        // What is decided in slices is looked at when the last one is.
        if life.driver.holds() || life.driver.engine.has_more() {
            return Ok(());
        }
        check::owned(life, &self.runtime, self.now)?;
        if look_again { check::twice(life, self.now) } else { Ok(()) }
    }

    fn durable(&mut self) -> Result<(), Broken> {
        let Some(pending) = self.life.as_mut().and_then(|life| life.flight.pop_front()) else { return Ok(()) };
        let commit = self.commits;
        self.commits += 1;
        let crash = self.crash_at(commit);
        if crash == Some(Point::Before) {
            return self.crash(commit, Point::Before);
        }
        self.disk.append(&pending)?;
        self.tell(|| format!("disk     commit {commit} is durable"));
        if crash == Some(Point::After) {
            // The crash may come while orders are being sent: some of them arrive.
            let sent = if self.draw.chance(50) { 0 } else { self.draw.below(pending.orders.len() as u64 + 1) as usize };
            self.send(&pending.orders[..sent])?;
            return self.crash(commit, Point::After);
        }
        self.send(&pending.orders)?;
        for ack in &pending.acks {
            self.asks[ack.act] = Ask::Acknowledged;
        }
        Ok(())
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
                (self.crashed < MOST_CRASHES && self.draw.chance(8)).then_some(point)
            }
        }
    }

    /// Everything in memory is lost. People who were not answered will ask again; the runtime goes on, or dies as well.
    fn crash(&mut self, commit: u64, point: Point) -> Result<(), Broken> {
        self.tell(|| format!("CRASH    at commit {commit}, {point:?} it is durable"));
        self.crashed += 1;
        self.life = None;
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
            let asks_again = match self.world.acts[at].deed {
                Deed::Submit(_) => true,
                Deed::Command(_) => self.draw.chance(50),
            };
            if self.asks[at] == Ask::Asked && asks_again {
                self.asks[at] = Ask::Planned;
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
        let mut life = Life::new(self.world);
        for (name, data) in self.disk.caches() {
            let (kind, namespace, name) = (Keyed::ConfigMap, "default".to_owned(), name.clone());
            let input = Input::Object { kind, namespace, name, data: Some(data.clone()) };
            life.driver.engine.handle(input, self.now);
        }
        // A lock is not free because its holder has not been read yet.
        for run in self.disk.open_runs() {
            let read = octoflow_engine::engine::fold(run, self.disk.facts(run));
            let read =
                read.or_else(|why| broken(Guarantee::Acknowledged, format!("run {run} cannot be read: {why}")))?;
            life.driver.engine.handle(Input::ReserveLocks(Box::new(read)), self.now);
        }
        for run in self.disk.open_runs() {
            let believed = life.take_up(run, self.disk.facts(run), self.now)?;
            self.tell(|| {
                let ids: Vec<String> = believed.iter().map(|(id, _)| id.to_string()).collect();
                format!("UP       run {run} believes to be alive: {}", ids.join(" "))
            });
            self.runtime.adopt(run, believed, self.now, &mut self.calendar)?;
        }
        self.runtime.recover();
        life.excess = life.driver.engine.scheduler().running().saturating_sub(self.world.capacity.slots);
        self.life = Some(life);
        Ok(())
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
            if let Deed::Command(command) = &act.deed {
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
                    | Command::Mark { .. } => true,
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
            if let Some(command) = life.driver.engine.run(id).and_then(resumption) {
                let answer = life.take(Input::Command { run: id, command }, self.now);
                answer.or_else(|why| {
                    broken(Guarantee::Owned, format!("run {id} waits to be resumed, which is refused: {why}"))
                })?;
                resumed.push(id);
            }
        }
        if resumed.is_empty() {
            return broken(Guarantee::Owned, self.stalled());
        }
        self.tell(|| format!("person   resumes {resumed:?}, which wait for nothing else"));
        self.turn()?;
        Ok(false)
    }

    fn stalled(&self) -> String {
        let mut reasons = Vec::new();
        for id in self.disk.open_runs() {
            let engine = self.life.as_ref().map(|life| &life.driver.engine);
            let Some(run) = engine.and_then(|engine| engine.run(id)) else { continue };
            let told = run.explain(engine.map(Engine::scheduler), None);
            reasons.extend(told.iter().map(|one| format!("{}: {}", one.node, one.reason)));
        }
        format!("nothing more will happen, and yet open is: {}", reasons.join("; "))
    }

    fn last_look(&mut self) -> Result<(), Broken> {
        self.acknowledged()?;
        if let Some((act, _)) = self.world.acts.iter().zip(&self.asks).find(|(_, ask)| **ask == Ask::Planned) {
            return broken(Guarantee::Acknowledged, format!("what was planned for run {} never happened", act.run));
        }
        let alive = self.runtime.alive();
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
    let Some(run) = run.of::<argo::Run>() else { return run.head().suspended.then(resume) };
    let state = &run.state;
    let mut nodes = state.nodes.iter().enumerate();
    let Some((at, node)) = nodes.find(|(_, node)| node.kind == NodeKind::Suspend && !node.phase.fulfilled()) else {
        return state.head.suspended.then(resume);
    };
    let template = node.template.as_deref().and_then(|name| run.program.recipe(name));
    let outputs = template.map(|recipe| recipe.template.outputs.parameters.as_slice()).unwrap_or_default();
    let needed = outputs.iter().filter(|output| output.value_from.as_ref().is_some_and(|from| from.default.is_none()));
    let supplied = needed.map(|output| (output.name.clone(), "2".to_owned())).collect();
    Some(Command::Resume { selector: Some(format!("id={}", state.id_of(NodeIx(at as u32)))), supplied })
}

/// Whether what a task belongs to is over, as people can see it; nothing when they cannot.
fn over(run: &Run, task: NodeIx) -> Option<bool> {
    if let Some(run) = run.of::<taskset::Run>() {
        return run.state.replicas.get(task.at()).map(|one| one.phase == ReplicaPhase::Completed);
    }
    let run = run.of::<argo::Run>()?;
    run.state.nodes.get(task.at()).map(|node| node.phase.fulfilled())
}

fn told(pending: &Pending) -> Vec<String> {
    let facts = pending.lines.iter().flat_map(|(run, _, facts)| facts.iter().map(move |fact| (run, fact)));
    facts
        .filter(|(_, fact)| !matches!(fact, Fact::Run(RunFact::Submitted(_))))
        .map(|(run, fact)| format!("fact     run {run}: {fact:?}"))
        .collect()
}

fn brief(order: &Order) -> String {
    match order {
        Order::Start { attempt, task } => format!("start {attempt} ({} {:?})", task.name, task.main.args),
        Order::Stop { attempt } => format!("stop {attempt}"),
        Order::Kill { attempt } => format!("kill {attempt}"),
        Order::Forget { attempt } => format!("forget {attempt}"),
    }
}
