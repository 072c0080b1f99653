//! The jobs of a flow: what the flow notes of them when they are made, change and end. It hears of them from the engine, in
//! the commit in which it happens; nothing is inferred from what exists.

use octoflow_model::{
    NodeIx,
    jobflow::{FlowFact, JobEnd, TaskCounts},
    volcano::{JobPhase, PodPhase},
};
use serde_json::Value;

use super::{decide, state::Stage, turn::Turn};
use crate::{
    dialects::{dialect::ChildEvent, volcano},
    engine::input::Command,
    run::Run as AnyRun,
};

impl Turn<'_> {
    /// Takes what happened to the job that an entry has ordered.
    pub(super) fn child(&mut self, node: NodeIx, event: ChildEvent<'_>) {
        match event {
            ChildEvent::Created(child) => {
                let (name, uid) = (child.name().to_owned(), child.uid().to_owned());
                self.decide(FlowFact::Made { entry: node.0, at: self.now, run: child.id(), name, uid });
                self.tell_child(node, child);
                self.probe_tasks(node, child);
            }
            ChildEvent::Changed(child) => self.changed(node, child),
            ChildEvent::Deleted(child) => {
                self.observe(node, child);
                self.give_up(node, JobEnd::Deleted, "its job was deleted before its end".to_owned());
            }
        }
    }

    /// Passes on what the flow was told before its job was made.
    fn tell_child(&mut self, node: NodeIx, child: &AnyRun) {
        let told = self.run.told();
        if told.suspended && self.run.child(node).is_some() {
            self.effects.commands.push((child.id(), Command::Suspend));
        }
    }

    fn changed(&mut self, node: NodeIx, child: &AnyRun) {
        self.observe(node, child);
        self.probe_tasks(node, child);
        let Some(job) = child.of::<volcano::Run>().filter(|_| child.finished()) else { return };
        let phase = job.state.phase;
        let end = decide::end_of(phase).unwrap_or(JobEnd::Failed);
        let message = match end {
            JobEnd::Completed => String::new(),
            JobEnd::Failed | JobEnd::Terminated | JobEnd::Deleted | JobEnd::Refused | JobEnd::Stopped => {
                let why = if child.message().is_empty() { String::new() } else { format!(": {}", child.message()) };
                format!("Job {} is {phase}{why}", child.name())
            }
        };
        self.give_up(node, end, message);
    }

    /// Notes the phase and the pods of a job, if they are not what the flow knows.
    fn observe(&mut self, node: NodeIx, child: &AnyRun) {
        let Some(job) = child.of::<volcano::Run>() else { return };
        let (phase, restarts, tasks) = (job.state.phase, job.state.retries, counts(job));
        for (passed, changes) in self.passed(node, job) {
            self.note_phase(node, passed, changes, restarts, tasks.clone());
        }
        self.note_phase(node, phase, job.state.changes, restarts, tasks);
    }

    /// Returns the phases that a job has passed since the one the flow knows, and how many there were before each. A turn may
    /// go through several, and come back to the first.
    fn passed(&self, node: NodeIx, job: &volcano::Run) -> Vec<(JobPhase, u32)> {
        let Some(known) = &self.run.state.flow.entries[node.at()].job else { return Vec::new() };
        let (all, history) = (job.state.changes, &job.state.history);
        // The first one of the history is when the job was created, and the last one is its phase now.
        let unseen = (all.saturating_sub(known.changes) as usize).min(history.len().saturating_sub(1));
        let passed = history.iter().rev().take(unseen).skip(1).zip((1..all).rev());
        let mut passed: Vec<(JobPhase, u32)> = passed.map(|((phase, _), changes)| (*phase, changes)).collect();
        passed.reverse();
        passed
    }

    fn note_phase(&mut self, node: NodeIx, phase: JobPhase, changes: u32, restarts: u32, tasks: TaskCounts) {
        let Some(known) = &self.run.state.flow.entries[node.at()].job else { return };
        if (known.phase, known.changes, known.restarts, &known.tasks) != (phase, changes, restarts, &tasks) {
            self.decide(FlowFact::Observed { entry: node.0, at: self.now, phase, restarts, tasks, changes });
        }
    }

    /// Takes the object of a job that nobody runs here and that is over.
    pub(super) fn found(&mut self, node: NodeIx, object: &Value) {
        if self.run.state.flow.entries[node.at()].stage != Stage::Active {
            return;
        }
        let status = &object["status"];
        let phase = status["state"]["phase"].as_str().and_then(phase_of_word);
        let Some((phase, end)) = phase.and_then(|phase| Some((phase, decide::end_of(phase)?))) else {
            return self.give_up(node, JobEnd::Deleted, "its job was deleted before its end".to_owned());
        };
        let restarts = status["retryCount"].as_u64().unwrap_or_default() as u32;
        let known = self.run.state.flow.entries[node.at()].job.as_ref();
        let tasks = known.map(|job| job.tasks.clone()).unwrap_or_default();
        let changes = known.map_or(0, |job| job.changes + u32::from(job.phase != phase));
        self.note_phase(node, phase, changes, restarts, tasks);
        let message = status["state"]["message"].as_str().unwrap_or_default().to_owned();
        self.give_up(node, end, message);
    }
}

/// Returns the phase of a Job by its word.
pub(super) fn phase_of_word(word: &str) -> Option<JobPhase> {
    JobPhase::ALL.iter().copied().find(|phase| phase.word() == word)
}

/// Counts the pods of a job by task and by phase in Kubernetes.
fn counts(job: &volcano::Run) -> TaskCounts {
    let mut counts = TaskCounts::new();
    for (task, spec) in job.state.tasks.iter().zip(&job.program.job.spec.tasks) {
        let by_phase = counts.entry(spec.name.clone()).or_default();
        for phase in PodPhase::ALL {
            let (Some(word), count) = (volcano::status::shown_phase(job, *phase), task.count(*phase)) else { continue };
            if count > 0 {
                *by_phase.entry(word.to_owned()).or_default() += count;
            }
        }
    }
    counts
}
