//! A world: everything that is settled before the story begins, from one number.

use std::{collections::BTreeMap, fmt, str::FromStr};

use octoflow_control::Capacity;
use octoflow_engine::{
    Command,
    admit::{Catalog, admit},
    kinds::Kind,
};
use octoflow_model::{
    RunId, Time,
    submission::{Stored, Submission, SubmitContext},
};
use serde_json::{Value, json};

use super::{
    calendar::{DAWN, ticks},
    cluster::{self, Cluster},
    company,
    disk::Point,
    draw::Draw,
    failure::{Broken, Failure, Guarantee, broken},
    flow::{self, FlowPlan},
    kubejob,
    manifest::{self, Taste},
    taskset, volcano, walk,
};

/// Worlds of seeds from here on have TaskSets and workflows, which compete for the same room. Those of smaller seeds have
/// workflows alone, and stay as they are: some of them broke something once.
pub const MIXED: u64 = 1_000_000_000;

/// Worlds of seeds from here on are mixed too, and every run but the first was made by one before it and belongs to it.
pub const FAMILIES: u64 = 2_000_000_000;

/// Worlds of seeds from here on have several nodes and a tree of queues, both of which change, and runs of several tenants
/// that ask for resources, devices and nodes.
pub const CLUSTERS: u64 = 3_000_000_000;

/// Worlds of seeds from here on have Volcano Jobs beside TaskSets and workflows.
pub const JOBS: u64 = 5_000_000_000;

/// Worlds of seeds from here on have Jobs of Kubernetes beside TaskSets and workflows.
pub const KUBE_JOBS: u64 = 6_000_000_000;

/// Worlds of seeds from here on have JobFlows beside Volcano Jobs, TaskSets and workflows, and templates that change.
pub const FLOWS: u64 = 7_000_000_000;

/// Worlds of seeds from here on have runs of every kind in a cluster: nodes and queues change, and tasks are ended for others.
pub const COMPANIES: u64 = 8_000_000_000;

/// Worlds of seeds from here on have workflows that order runs of every kind beside JobFlows and others, and people end and delete
/// what was ordered.
pub const PARENTS: u64 = 9_000_000_000;

/// Worlds of seeds from here on have submitted jobs beside TaskSets, and plugins that answer late, wrong or never.
pub const WALKS: u64 = 10_000_000_000;

/// What can be expected of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// What becomes of its runs depends only on how tasks end: however often the controller crashes, the tree is the same.
    Calm,
    /// Deadlines, commands, a runtime that loses tasks: only the guarantees can be checked.
    Wild,
}

/// When the controller crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crashes {
    Never,
    /// Now and then, at commits.
    Sometimes,
    /// Once, at this commit.
    At {
        commit: u64,
        point: Point,
    },
}

impl Crashes {
    /// How the command line says it.
    pub(super) fn argument(self) -> String {
        match self {
            Self::Never => " --crash never".to_owned(),
            Self::Sometimes => " --crash sometimes".to_owned(),
            Self::At { commit, point } => format!(" --crash {commit}{point}"),
        }
    }
}

/// A text that names no way to crash.
#[derive(Debug)]
pub struct NoCrash;

impl fmt::Display for NoCrash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "say `never`, `sometimes`, or the number of a commit with `a` (before it is durable) or `b` (after)",
        )
    }
}

impl FromStr for Crashes {
    type Err = NoCrash;

    fn from_str(text: &str) -> Result<Self, NoCrash> {
        match text {
            "never" => return Ok(Self::Never),
            "sometimes" => return Ok(Self::Sometimes),
            _ => {}
        }
        let (number, point) = match (text.strip_suffix('a'), text.strip_suffix('b')) {
            (Some(number), _) => (number, Point::Before),
            (_, Some(number)) => (number, Point::After),
            (None, None) => return Err(NoCrash),
        };
        Ok(Self::At { commit: number.parse().map_err(|_| NoCrash)?, point })
    }
}

#[derive(Debug)]
pub struct World {
    pub seed: u64,
    pub flavour: Flavour,
    pub capacity: Capacity,
    pub(super) acts: Vec<UserAction>,
    pub(super) cluster: Option<Cluster>,
    /// Templates of flows, in worlds that have flows.
    pub(super) flows: Option<FlowPlan>,
}

/// Something a person does.
#[derive(Debug)]
pub(super) struct UserAction {
    pub at: Time,
    pub run: RunId,
    pub request: UserRequest,
}

#[derive(Debug)]
pub(super) enum UserRequest {
    Submit(Box<Submission>),
    Command(Command),
}

impl UserAction {
    /// Submits a run that people wrote: it belongs to nobody and takes nobody's place.
    pub(super) fn submit(seed: u64, run: RunId, at: Time, name: String, manifest: Value) -> Self {
        let skew = skew(seed, run.0);
        let submission = Submission {
            name,
            namespace: "default".to_owned(),
            uid: format!("uid-{run}"),
            at: at.shifted(skew),
            manifest,
            stored: Stored::default(),
            previous: None,
            parent: None,
            ordered_by: None,
            context: SubmitContext { skew, ..SubmitContext::default() },
        };
        Self { at, run, request: UserRequest::Submit(Box::new(submission)) }
    }
}

impl World {
    /// The world of a seed. Even seeds are calm, odd ones wild.
    pub fn new(seed: u64) -> Result<Self, Box<Failure>> {
        let failure = |(guarantee, what)| Failure { seed, crashes: Crashes::Never, guarantee, what, story: Vec::new() };
        Self::made(seed).map_err(|broken| Box::new(failure(broken)))
    }

    fn made(seed: u64) -> Result<Self, Broken> {
        if (CLUSTERS..JOBS).contains(&seed) {
            let capacity = Capacity { slots: 0, cpu_milli: 0, memory_bytes: 0 };
            let (acts, cluster) = (cluster::acts(seed)?, Some(Cluster::new(seed)));
            return Ok(Self { seed, flavour: Flavour::Wild, capacity, acts, cluster, flows: None });
        }
        if seed >= WALKS {
            return Self::walks(seed);
        }
        if (COMPANIES..PARENTS).contains(&seed) {
            let capacity = Capacity { slots: 0, cpu_milli: 0, memory_bytes: 0 };
            let (acts, cluster, flows) = (company::acts(seed)?, Cluster::new(seed), company::flows(seed));
            return Ok(Self {
                seed,
                flavour: Flavour::Wild,
                capacity,
                acts,
                cluster: Some(cluster),
                flows: Some(flows),
            });
        }
        let mut draw = Draw::new(seed, "world");
        let mixed = seed >= MIXED;
        // What becomes of a TaskSet depends on the order in which its pods end.
        let flavour = if seed.is_multiple_of(2) && !mixed { Flavour::Calm } else { Flavour::Wild };
        let wild = flavour == Flavour::Wild;
        let slots = *draw.pick(&[1, 2, 2, 3, 4, 100]);
        let capacity = Capacity { slots, cpu_milli: *draw.pick(&[600, 2000, 100_000]), memory_bytes: 1 << 40 };
        let runs = if mixed {
            draw.between(1, 4)
        } else if draw.chance(75) {
            1
        } else {
            draw.between(2, 3)
        };
        let limited = draw.chance(50);
        let mut acts = Vec::new();
        for run in 1..=runs {
            let orders = seed >= PARENTS && (run == 1 || draw.chance(40));
            let taste = Taste {
                orders: orders.then_some(slots),
                timed: wild,
                limited,
                failing: *draw.pick(&[0, 5, 10, 25, 60]),
                size: draw.between(8, if runs > 1 { 30 } else { 60 }),
            };
            let name = format!("w{run}");
            if seed >= FLOWS && !orders && (run == 1 || draw.chance(40)) {
                let at = DAWN.saturating_add(ticks(draw.below(200) * (run - 1)));
                acts.extend(flow::acts(seed, RunId(run), at)?);
                continue;
            }
            if seed >= JOBS && !orders && (run == 1 || draw.chance(50)) {
                let at = DAWN.saturating_add(ticks(draw.below(200) * (run - 1)));
                if (KUBE_JOBS..FLOWS).contains(&seed) {
                    acts.extend(kubejob::acts(seed, RunId(run), at)?);
                } else {
                    acts.extend(volcano::acts(seed, RunId(run), at, slots)?);
                }
                continue;
            }
            let a_task_set = mixed && !orders && (run == 1 || draw.chance(60));
            if a_task_set {
                let at = DAWN.saturating_add(ticks(draw.below(200) * (run - 1)));
                acts.extend(taskset::acts(seed, RunId(run), at, slots)?);
                continue;
            }
            let mut object = manifest::workflow(seed, taste, &name);
            if limited && draw.chance(8) {
                object["spec"]["suspend"] = true.into();
            }
            let manifest = admitted(&object)?;
            let at = DAWN.saturating_add(ticks(draw.below(200) * (run - 1)));
            acts.push(UserAction::submit(seed, RunId(run), at, name.clone(), manifest));
            // In a calm world a suspension may only ever delay, and with limits in place nothing gives up early.
            let most = if wild { 4 } else { u64::from(limited) * 4 };
            for _ in 0..draw.between(0, most) {
                let at = at.saturating_add(ticks(draw.below(1500)));
                acts.push(UserAction { at, run: RunId(run), request: UserRequest::Command(command(&mut draw, wild)) });
            }
        }
        if (FAMILIES..JOBS).contains(&seed) {
            tie(seed, &mut acts);
        }
        let mut flows = (seed >= FLOWS).then(|| FlowPlan::new(seed, slots));
        if let Some(plan) = flows.as_mut().filter(|_| seed >= PARENTS) {
            plan.add_deletions(seed);
        }
        Ok(Self { seed, flavour, capacity, acts, cluster: None, flows })
    }

    fn walks(seed: u64) -> Result<Self, Broken> {
        let mut draw = Draw::new(seed, "world");
        let slots = *draw.pick(&[1, 2, 3, 100]);
        let capacity = Capacity { slots, cpu_milli: *draw.pick(&[600, 2000, 100_000]), memory_bytes: 1 << 40 };
        let mut acts = Vec::new();
        for run in 1..=draw.between(1, 4) {
            let at = DAWN.saturating_add(ticks(draw.below(200) * (run - 1)));
            acts.extend(match run == 1 || draw.chance(75) {
                true => walk::acts(seed, RunId(run), at, slots)?,
                false => taskset::acts(seed, RunId(run), at, slots)?,
            });
        }
        Ok(Self { seed, flavour: Flavour::Wild, capacity, acts, cluster: None, flows: None })
    }

    /// The manifests, for people who want to see what happens in this world.
    pub fn manifests(&self) -> impl Iterator<Item = &Value> {
        self.acts.iter().filter_map(|act| match &act.request {
            UserRequest::Submit(submission) => Some(&submission.manifest),
            UserRequest::Command(_) => None,
        })
    }
}

/// Makes families of runs: each but the first belongs to one before it. Somebody ends one of them.
fn tie(seed: u64, acts: &mut Vec<UserAction>) {
    let mut draw = Draw::new(seed, "family");
    let mut runs = 0;
    for act in acts.iter_mut() {
        let UserRequest::Submit(submission) = &mut act.request else { continue };
        runs = act.run.0;
        if act.run.0 > 1 {
            let owner = draw.between(1, act.run.0 - 1);
            submission.parent = Some(RunId(owner));
            submission.manifest["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "Any", "name": "any", "uid": format!("uid-{owner}"), "controller": true,
            }]);
        }
    }
    let at = DAWN.saturating_add(ticks(draw.below(1500)));
    let command = if draw.chance(50) { Command::Stop } else { Command::Terminate };
    acts.push(UserAction { at, run: RunId(draw.between(1, runs)), request: UserRequest::Command(command) });
}

/// How far the wall clock is ahead of the engine's time when a run is submitted. It is set now and then, and nothing that
/// happens may depend on it.
pub(super) fn skew(seed: u64, run: u64) -> i64 {
    const HOUR: i64 = 3_600_000_000;
    *Draw::new(seed, &format!("clock {run}")).pick(&[0, 0, HOUR, -HOUR, 10 * 365 * 24 * HOUR])
}

pub(super) fn command(draw: &mut Draw, wild: bool) -> Command {
    match draw.below(if wild { 8 } else { 4 }) {
        0 | 1 => Command::Suspend,
        2 | 3 => resume(),
        4 | 5 => Command::Stop,
        6 => Command::Terminate,
        _ => Command::Resume { selector: Some("displayName=s0-0".to_owned()), supplied: BTreeMap::new() },
    }
}

/// The run goes on, and every pause that needs no value.
pub(super) fn resume() -> Command {
    Command::Resume { selector: None, supplied: BTreeMap::new() }
}

pub(super) fn admitted(object: &Value) -> Result<Value, Broken> {
    struct Nothing;
    impl Catalog for Nothing {
        fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
            false
        }
    }
    match admit(object, &Nothing) {
        Ok(admitted) => Ok(admitted.manifest),
        Err(problems) => broken(Guarantee::Admitted, format!("{}\n{object:#}", problems.render(false))),
    }
}
