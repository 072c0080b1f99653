//! JobFlows in a world: random ones over a few templates that all of them share, what people do to flows, templates and
//! jobs, and the guarantees as checks on flows.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    Command, Engine, Run as AnyRun,
    jobflow::{
        Run,
        decide::{EntryGate, gates},
        state::{Removal, Stage},
    },
    volcano::Run as JobRun,
};
use octoflow_model::{
    AttemptId, Fact, NodeIx, RunId, Time,
    jobflow::{API_VERSION, FlowFact, KIND, TEMPLATE_KIND},
};
use serde_json::{Value, json};

use super::{
    calendar::{DAWN, ticks},
    disk::Part,
    draw::Draw,
    failure::{Broken, Guarantee, broken},
    maker::Maker,
    volcano,
    world::{UserAction, UserRequest, admitted, resume},
};

const TEMPLATES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Everything about templates and jobs of flows that is settled before the story begins.
#[derive(Debug)]
pub(super) struct FlowPlan {
    /// Templates that are there at the beginning.
    pub templates: BTreeMap<String, Value>,
    /// The last of them puts every template.
    pub acts: Vec<(Time, FlowAct)>,
}

#[derive(Clone, Debug)]
pub(super) enum FlowAct {
    PutTemplate(String, Value),
    DeleteTemplate(String),
    /// Somebody tells one of the jobs that are there to do something.
    TellJob {
        which: u64,
        command: Command,
    },
    /// Somebody tells one of the runs that were ordered to end, and has it deleted after so long, over or not.
    DeleteChild {
        which: u64,
        patience: u64,
    },
    /// Every template that was ever named is there from now on.
    PutAll(BTreeMap<String, Value>),
}

impl FlowPlan {
    pub(super) fn new(seed: u64, slots: usize) -> Self {
        let mut draw = Draw::new(seed, "templates");
        let all: BTreeMap<String, Value> =
            TEMPLATES.iter().map(|name| ((*name).to_owned(), template(&mut draw, name, slots))).collect();
        let templates = all.clone().into_iter().filter(|_| draw.chance(75)).collect();
        let mut acts = Vec::new();
        for _ in 0..draw.below(12) {
            let at = DAWN.saturating_add(ticks(draw.below(2500)));
            let name = *draw.pick(&TEMPLATES);
            let act = match draw.below(6) {
                0 | 1 => FlowAct::PutTemplate(name.to_owned(), template(&mut draw, name, slots)),
                2 => FlowAct::DeleteTemplate(name.to_owned()),
                _ => FlowAct::TellJob { which: draw.number(), command: job_command(&mut draw) },
            };
            acts.push((at, act));
        }
        acts.push((DAWN.saturating_add(ticks(3000 + draw.below(1000))), FlowAct::PutAll(all)));
        Self { templates, acts }
    }

    /// Adds people who delete what was ordered, and tell it to do this and that.
    pub(super) fn add_deletions(&mut self, seed: u64) {
        let mut draw = Draw::new(seed, "deletions");
        for _ in 0..draw.below(12) {
            let at = DAWN.saturating_add(ticks(draw.below(1200)));
            let act = if draw.chance(50) {
                let patience = if draw.chance(50) { draw.below(20) } else { draw.below(400) };
                FlowAct::DeleteChild { which: draw.number(), patience }
            } else {
                FlowAct::TellJob { which: draw.number(), command: job_command(&mut draw) }
            };
            self.acts.push((at, act));
        }
    }
}

fn template(draw: &mut Draw, name: &str, slots: usize) -> Value {
    let spec = volcano::manifest(draw, name, slots)["spec"].take();
    json!({"apiVersion": API_VERSION, "kind": TEMPLATE_KIND, "metadata": {"name": name}, "spec": spec})
}

/// Deleting a job ends it first; that is what its flow hears of.
fn job_command(draw: &mut Draw) -> Command {
    match draw.below(8) {
        0 | 1 => Command::Terminate,
        2 => Command::Stop,
        3 => Command::Suspend,
        4 => resume(),
        _ => {
            let action = *draw.pick(&["AbortJob", "RestartJob", "CompleteJob", "ResumeJob", "TerminateJob"]);
            Command::Perform { action: action.to_owned() }
        }
    }
}

/// Somebody submits a flow, and tells it to do this and that.
pub(super) fn acts(seed: u64, run: RunId, at: Time) -> Result<Vec<UserAction>, Broken> {
    let name = format!("f{run}");
    let mut draw = Draw::new(seed, &name);
    let object = admitted(&manifest(&mut draw, &name))?;
    let mut acts = vec![UserAction::submit(seed, run, at, name, object)];
    for _ in 0..draw.below(3) {
        let at = at.saturating_add(ticks(draw.below(2500)));
        let command = match draw.below(8) {
            0..=2 => Command::Suspend,
            3..=5 => resume(),
            6 => Command::Stop,
            _ => Command::Terminate,
        };
        acts.push(UserAction { at, run, request: UserRequest::Command(command) });
    }
    Ok(acts)
}

/// A flow that is let in.
fn manifest(draw: &mut Draw, name: &str) -> Value {
    let mut flows: Vec<Value> = Vec::new();
    for (at, template) in TEMPLATES.iter().enumerate().take(draw.between(1, TEMPLATES.len() as u64) as usize) {
        let mut entry = json!({"name": template});
        let targets: Vec<&str> = TEMPLATES[..at].iter().copied().filter(|_| draw.chance(40)).collect();
        if !targets.is_empty() {
            entry["dependsOn"] = json!({"targets": targets, "strategy": if draw.chance(50) { "any" } else { "all" }});
            if draw.chance(30) {
                entry["dependsOn"]["probe"] = probe(draw);
            }
        }
        if draw.chance(50) {
            entry["retry"] = json!({"maxRetries": draw.between(1, 2), "backoff": format!("{}s", draw.between(1, 4))});
        }
        if draw.chance(10) {
            // No template has so many pods: the job is refused.
            entry["patch"] = json!({"jobSpec": {"minAvailable": 1000}});
        } else if draw.chance(20) {
            entry["patch"] = json!({"jobSpec": {"maxRetry": draw.between(1, 3)}});
        }
        flows.push(entry);
    }
    let retain = if draw.chance(40) { "delete" } else { "retain" };
    json!({
        "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name},
        "spec": {"jobRetainPolicy": retain, "flows": flows},
    })
}

fn probe(draw: &mut Draw) -> Value {
    match draw.below(3) {
        0 => json!({"tcpSocketList": [{"taskName": "t0", "port": 80}]}),
        1 => json!({"httpGetList": [{"taskName": "t0", "port": 80, "path": "/"}]}),
        _ => json!({"taskStatusList": [{"taskName": "t0", "phase": *draw.pick(&["Running", "Succeeded", "Failed"])}]}),
    }
}

/// Everything of a flow that can end for good, and how it has: entries, and the flow itself.
pub(super) fn finals(run: &Run) -> Vec<(Part, Option<&'static str>)> {
    let entries = run.state.flow.entries.iter().enumerate();
    let end = |stage| if let Stage::Over(end) = stage { Some(word(end)) } else { None };
    let mut finals: Vec<_> = entries.map(|(at, entry)| (Part::Node(at as u32), end(entry.stage))).collect();
    finals.push((Part::Job, run.state.finished.map(|_| run.flow_phase().word())));
    finals
}

fn word(end: octoflow_model::jobflow::JobEnd) -> &'static str {
    use octoflow_model::jobflow::JobEnd;
    match end {
        JobEnd::Completed => "Completed",
        JobEnd::Failed => "Failed",
        JobEnd::Terminated => "Terminated",
        JobEnd::Deleted => "Deleted",
        JobEnd::Refused => "Refused",
        JobEnd::Stopped => "Stopped",
    }
}

/// G4 and G5: no try is ordered that may not be, and none more often than there are retries.
pub(super) fn grown(run: &Run, fact: &Fact) -> Result<(), Broken> {
    let Fact::JobFlow(FlowFact::Wanted { entry, .. }) = fact else { return Ok(()) };
    let (at, told) = (*entry as usize, run.told());
    let (plan, state) = (&run.program.entries[at], &run.state.flow.entries[at]);
    if told.closing || told.suspended || told.deleted {
        return broken(Guarantee::Limits, format!("entry {at} is ordered though the flow was told {told:?}"));
    }
    if state.tries > plan.retries + 1 {
        return broken(Guarantee::Limits, format!("entry {at} has {} tries of {}", state.tries, plan.retries + 1));
    }
    Ok(())
}

/// What a flow remembers of its jobs is what the jobs were, as people see both. One that was deleted is remembered as it was.
pub(super) fn remembers<'r>(
    run: &Run,
    seen: impl Fn(RunId) -> Option<&'r AnyRun>,
    is_leaving: impl Fn(RunId) -> bool,
) -> Result<(), Broken> {
    for (at, entry) in run.state.flow.entries.iter().enumerate() {
        let Some(job) = &entry.job else { continue };
        let Some(number) = job.run else { continue };
        let Some(child) = seen(number).and_then(|child| child.of::<JobRun>()) else {
            return broken(Guarantee::Together, format!("entry {at} of {} has a job that nobody sees", run.id));
        };
        if (job.phase, job.restarts) != (child.state.phase, child.state.retries) {
            let told = format!("{} after {} restarts", job.phase, job.restarts);
            let is = format!("{} after {}", child.state.phase, child.state.retries);
            return broken(Guarantee::Together, format!("run {number} is {is}, and its flow {} tells {told}", run.id));
        }
        if matches!(entry.stage, Stage::Over(_) | Stage::BackOff(_)) && !child.state.over && !is_leaving(number) {
            return broken(Guarantee::Together, format!("entry {at} of {} is over and its job is not", run.id));
        }
    }
    Ok(())
}

/// No job of a flow is open that its flow does not wait for.
pub(super) fn ordered(engine: &Engine, job: &AnyRun) -> Result<(), Broken> {
    // What becomes of runs that workflows have ordered is up to their templates.
    let of_flow = job.marks().ownership.owners.iter().any(|owner| owner["kind"] == KIND);
    let Some(attempt) = job.head().ordered_by.filter(|_| of_flow && !job.finished()) else { return Ok(()) };
    let parent = engine.run(attempt.run).filter(|parent| !parent.finished());
    if parent.and_then(|parent| parent.child_of(attempt.task)) == Some(job.id()) {
        return Ok(());
    }
    broken(Guarantee::NothingLeft, format!("run {} is open, and nobody waits for it: {attempt}", job.id()))
}

/// G2: everything open has somebody who will bring it on.
pub(super) fn owned(
    run: &Run,
    (engine, wake_at): (&Engine, Option<Time>),
    maker: &Maker,
    (starting, ending): (&BTreeSet<AttemptId>, &BTreeSet<AttemptId>),
    now: Time,
) -> Result<(), Broken> {
    let (told, state) = (run.told(), &run.state.flow);
    let fail = |what: String| broken(Guarantee::Owned, format!("{}: {what}", run.state.head.name));
    let woken = |at: Time| at <= now || wake_at.is_some_and(|wake| wake <= at);
    let gates = gates(&run.program, state);
    let mut moves = told.suspended;
    for (at, entry) in state.entries.iter().enumerate() {
        let node = NodeIx(at as u32);
        match entry.stage {
            Stage::Waiting => {
                if gates[at] == EntryGate::Open && !told.suspended && !told.closing {
                    return fail(format!("entry {at} may start and does not"));
                }
            }
            Stage::Wanted => {
                let Some(attempt) = run.attempt_of(node) else { return fail(format!("entry {at} has no attempt")) };
                if !maker.answers_for(attempt) && !starting.contains(&attempt) {
                    return fail(format!("nobody makes the job of entry {at}"));
                }
                if told.closing && !maker.told_to_end(attempt) && !ending.contains(&attempt) {
                    return fail(format!("nobody is told that the job of entry {at} is not wanted any more"));
                }
                moves = true;
            }
            Stage::Active => {
                let attempt = run.attempt_of(node);
                let child = attempt.and_then(|_| entry.job.as_ref()?.run);
                // Of one that was deleted while the controller was down the worker tells.
                let told = attempt.is_some_and(|attempt| maker.answers_for(attempt) || starting.contains(&attempt));
                let is_over = child.and_then(|child| engine.run(child)).map_or(!told, |child| child.finished());
                if is_over {
                    return fail(format!("entry {at} waits for {child:?}, which is over"));
                }
                moves = true;
            }
            Stage::BackOff(until) => {
                if !told.closing && !woken(until) {
                    return fail(format!("nobody tries entry {at} again"));
                }
                moves = true;
            }
            Stage::Over(_) => {}
        }
        for (condition, _) in entry.tests.iter().filter(|(_, test)| !test.addresses.is_empty()) {
            let node = run.program.test_node(at as u32, *condition);
            let attempt = node.and_then(|node| run.attempt_of(node));
            if attempt.is_none_or(|attempt| !maker.answers_for(attempt) && !starting.contains(&attempt)) {
                return fail(format!("nobody tests condition {condition} of entry {at}"));
            }
        }
    }
    if state.removal == Removal::UnderWay {
        let attempt = run.attempt_of(run.program.removal_node());
        moves = attempt.is_some_and(|attempt| maker.answers_for(attempt) || starting.contains(&attempt));
    }
    if !moves { fail("it is open and nothing will ever happen to it".to_owned()) } else { Ok(()) }
}
