//! Runs a manifest in virtual time with a runtime that answers at once, for so many steps: whatever was let in must be
//! decided without a panic, and the fold of its facts must be its state.

use std::{collections::VecDeque, time::Duration};

use octoflow_control::{Acceptance, Capacity, Error, Limits, VirtualDisk, VirtualLoop};
use octoflow_engine::{
    Command, DialectRun, Run,
    argo::{self, status},
    engine::fold,
    kubejob,
    schedule::Scheduler,
    taskset::{self, explain::explain, status as set_status},
    volcano,
};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Time,
    order::{Collected, End, Exit, Found},
    submission::{Stored, Submission},
    task::{StoredArtifact, Task},
};
use serde_json::Value;

use crate::sim::runtime::answer;

const RUN: RunId = RunId(1);
const DAWN: Time = Time(1_700_000_000_000_000);
/// After so many inputs a run has shown what it does; loops and retries may go on for very long.
const MAX_INPUTS: usize = 300;
/// A run of more nodes than this is large on purpose; it is left to tests of large runs.
const MAX_NODES: usize = 3_000;

/// Nor need texts grow further than this to show that they do.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The last argument of every task that was started, in order.
pub(super) fn run(manifest: &Value, stored: Stored) -> Result<Vec<String>, String> {
    if size(manifest) > MAX_NODES as u64 {
        return Ok(Vec::new());
    }
    let mut machine = Machine::new().map_err(|error| error.to_string())?;
    let (name, namespace, uid) = ("w".to_owned(), "default".to_owned(), "u".to_owned());
    let submission = Submission {
        name,
        namespace,
        uid,
        at: DAWN,
        manifest: manifest.clone(),
        stored,
        context: Default::default(),
        previous: None,
        parent: None,
        ordered_by: None,
    };
    let mut ticket = machine.event_loop.submit(RUN, Box::new(submission), None, Acceptance::default());
    machine.settle()?;
    match ticket.poll() {
        Some(Ok(())) => {}
        // Its manifest was let in and is refused by whoever compiles it: that is its own matter.
        Some(Err(Error::Refused(_))) => return Ok(Vec::new()),
        answer => return Err(format!("its submission is answered with {answer:?}")),
    }
    for count in 1..MAX_INPUTS {
        let Some(run) = machine.event_loop.engine().run(RUN) else { break };
        if run.size() > MAX_NODES {
            break;
        }
        machine.now = machine.now.saturating_add(Duration::from_secs(1));
        match (machine.running.pop_front(), machine.event_loop.engine().wake_at()) {
            (Some((attempt, task)), _) => machine.event_loop.report(ended(attempt, &task, machine.now, count)),
            (None, Some(at)) => machine.now = machine.now.max(at),
            // Somebody must say something; whoever waits for more waits for ever.
            (None, None) if count + 1 < MAX_INPUTS => {
                let command = if count.is_multiple_of(2) { resume() } else { Command::Stop };
                drop(machine.event_loop.command(RUN, command));
            }
            (None, None) => break,
        }
        machine.settle()?;
    }
    let folded = fold(RUN, machine.facts).map_err(|why| format!("its own journal cannot be read: {why}"))?;
    let engine = machine.event_loop.engine();
    let same = match engine.run(RUN) {
        Some(live) => is_same(live, &folded, engine.scheduler())?,
        None => folded.finished(),
    };
    if !same {
        return Err("the fold of the facts is not the live state".to_owned());
    }
    Ok(machine.said)
}

/// The event loop with a disk that is fast and a runtime that starts at once.
struct Machine {
    event_loop: VirtualLoop,
    now: Time,
    facts: Vec<Fact>,
    running: VecDeque<(AttemptId, Box<Task>)>,
    said: Vec<String>,
}

impl Machine {
    fn new() -> Result<Self, Error> {
        let capacity = Capacity { slots: 50, cpu_milli: 1_000_000, memory_bytes: u64::MAX };
        let limits = Limits { max_nodes: MAX_NODES, max_bytes: MAX_BYTES, ..capacity.into() };
        let (event_loop, _) = VirtualLoop::open(VirtualDisk::new()?, limits, DAWN)?;
        Ok(Self { event_loop, now: DAWN, facts: Vec::new(), running: VecDeque::new(), said: Vec::new() })
    }

    /// Lets the event loop take steps until nothing is left to do at this moment.
    fn settle(&mut self) -> Result<(), String> {
        self.event_loop.flush();
        while self.event_loop.next_step().is_some_and(|at| at <= self.now) {
            self.event_loop.step(self.now).map_err(|error| format!("the event loop ends: {error}"))?;
            while let Some(written) = self.event_loop.write() {
                if let Some(refusal) = written.refused() {
                    return Err(format!("the store refuses a commit: {refusal}"));
                }
                for (run, facts) in written.facts() {
                    if *run != RUN {
                        return Err(format!("a fact of {run}"));
                    }
                    self.facts.extend(facts.iter().cloned());
                }
                self.event_loop.settle(written);
            }
            for order in self.event_loop.take_orders() {
                match order {
                    Order::Start { attempt, task } => {
                        self.said.push(task.main.args.last().cloned().unwrap_or_default());
                        self.running.push_back((attempt, task));
                    }
                    // It ends by itself soon enough.
                    Order::Stop { .. } | Order::Kill { .. } | Order::Forget { .. } => {}
                }
            }
        }
        Ok(())
    }
}

fn resume() -> Command {
    Command::Resume { selector: None, supplied: std::collections::BTreeMap::new() }
}

/// Most tasks end well, some do not, and what was wanted is mostly there.
fn ended(attempt: AttemptId, task: &Task, at: Time, count: usize) -> Report {
    let said = task.main.args.last().cloned().unwrap_or_default();
    let exit = match count % 11 {
        7 => Exit::Code(1),
        9 => Exit::Signal(9),
        _ => Exit::Code(0),
    };
    let wanted = &task.wanted;
    let collected = Collected {
        result: wanted.result.then(|| said.clone()),
        parameters: wanted.parameters.iter().map(|(name, _)| (name.clone(), Found::Here(said.clone()))).collect(),
        artifacts: wanted
            .artifacts
            .iter()
            .map(|wanted| {
                let digest = format!("sha256:{}", wanted.key);
                let stored = StoredArtifact {
                    digest,
                    size: 1,
                    archive: wanted.archive,
                    key: wanted.key.clone(),
                    noted: None,
                    deleted: false,
                };
                (wanted.name.clone(), if count.is_multiple_of(5) { Found::Missing } else { Found::Here(stored) })
            })
            .collect(),
        ..Collected::default()
    };
    let members = answer::members(task, &exit, Some(at), at);
    let end = End { exit, started: Some(at), collected, log_truncated: false, log_bytes: 0, members };
    Report::Ended { attempt, at, end: Box::new(end) }
}

/// About how many nodes the largest of its sequences would make.
fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(size).max().unwrap_or(0).max(items.len() as u64),
        Value::Object(fields) => {
            let numbers =
                fields.get("withSequence").and_then(Value::as_object).into_iter().flat_map(|map| map.values());
            let number = |value: &Value| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                text.trim().parse::<i64>().unwrap_or(0).unsigned_abs()
            };
            let replicas =
                ["replicas", "completions", "parallelism"].into_iter().filter_map(|name| fields.get(name)).map(number);
            numbers.map(number).chain(replicas).chain(fields.values().map(size)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// Compares a live run with the fold of its facts, and draws it on the way.
fn is_same(live: &Run, folded: &Run, scheduler: &Scheduler) -> Result<bool, String> {
    if let (Some(live), Some(folded)) = (live.of::<argo::Run>(), folded.of::<argo::Run>()) {
        status::status(live);
        return Ok(live.state == folded.state);
    }
    if let (Some(live), Some(folded)) = (live.of::<taskset::Run>(), folded.of::<taskset::Run>()) {
        set_status::object(live);
        if !live.state.over() && explain(live, Some(scheduler)).is_empty() {
            return Err("it is not over, and nobody says why".to_owned());
        }
        return Ok(live.state == folded.state);
    }
    if let (Some(live), Some(folded)) = (live.of::<volcano::Run>(), folded.of::<volcano::Run>()) {
        volcano::status::object(live);
        live.objects();
        // One without pods waits for a person, and shows that by its phase.
        let waits = !live.state.over && live.state.replicas > 0;
        if waits && volcano::explain::explain(live, Some(scheduler)).is_empty() {
            return Err("it is not over, and nobody says why".to_owned());
        }
        return Ok(live.state == folded.state);
    }
    if let (Some(live), Some(folded)) = (live.of::<kubejob::Run>(), folded.of::<kubejob::Run>()) {
        kubejob::status::object(live);
        if !live.state.over && kubejob::explain::explain(live, Some(scheduler)).is_empty() {
            return Err("it is not over, and nobody says why".to_owned());
        }
        return Ok(live.state == folded.state);
    }
    Ok(false)
}
