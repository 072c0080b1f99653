//! Tasks on their way: started as a stub says, ended when their time comes or when they are told to.

use std::{collections::BTreeMap, time::Duration};

use octoflow_engine::argo::refer;
use octoflow_model::{
    AttemptId, Order, Report, Task, Time,
    argo::{ArtifactValue, Role},
    order::Exit,
    request::Request,
};

use super::{ActiveTask, Event, Launch, Simulation, index};
use crate::logic::{
    answer::{Answer, Ending, Given},
    stub::Fault,
};

/// The final signal.
const KILLED: i32 = 9;

impl<'a> Simulation<'a> {
    pub(super) fn end(&mut self, attempt: AttemptId) {
        let Some(active_task) = self.active_tasks.remove(&attempt) else { return };
        self.active[index(attempt.run)] -= 1;
        let ActiveTask { answer, task, started, told, .. } = active_task;
        let report = answer.report(attempt, self.now, started, told, &task, &mut self.outcome.artifact_texts);
        self.event_loop.report(report);
    }

    pub(super) fn obey(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => self.start(attempt, task),
            Order::Stop { attempt } | Order::Kill { attempt } if self.call_off(attempt) => {}
            Order::Stop { attempt } => {
                let Some(active_task) = self.active_tasks.get(&attempt) else { return };
                let (after, exit) = active_task.answer.stopped.clone();
                self.end_early(attempt, after, exit);
            }
            Order::Kill { attempt } => self.end_early(attempt, Duration::ZERO, Exit::Signal(KILLED)),
            Order::Forget { .. } => {}
        }
    }

    /// Told to end, it ends then, unless it would be over before.
    fn end_early(&mut self, attempt: AttemptId, after: Duration, exit: Exit) {
        self.turn += 1;
        let key = (self.now.saturating_add(after), self.turn);
        let Some(active_task) = self.active_tasks.get_mut(&attempt) else { return };
        if active_task.ends_at.is_some_and(|(at, _)| at <= key.0) {
            return;
        }
        for old in [active_task.ends_at.replace(key), active_task.runs_at.take()].into_iter().flatten() {
            self.queue.remove(&old);
        }
        active_task.told = Some(exit);
        self.queue.insert(key, Event::Ends(attempt));
    }

    pub(super) fn start(&mut self, attempt: AttemptId, task: Box<Task>) {
        if let Some(Request::Make(request)) = task.call.as_deref() {
            return self.make(attempt, request);
        }
        let run = index(attempt.run);
        let node = self.node_name(attempt, &task);
        let answer = match self.answer(attempt, &task) {
            Ok(answer) => answer,
            Err(Fault::Unstubbed) => {
                let text = format!("no stub is for the task of node `{node}`, and `unstubbed: error` insists on one");
                self.outcome.faults.push((None, text));
                Answer::plain()
            }
            Err(Fault::Reference(located, why)) => {
                self.outcome.faults.push((Some(located), why));
                Answer::plain()
            }
        };
        self.outcome.launches.push(Launch { run, node, at: self.now, task: task.clone() });
        let begins = self.now.saturating_add(answer.pending);
        let schedule = answer.schedule(&task);
        // A task of several containers is over when its work is.
        let after = match &schedule {
            Some(schedule) => schedule.end().map(|(after, _)| after),
            None => (!matches!(answer.ending, Ending::Never)).then_some(answer.after),
        };
        let mut plan = |at: Time, event: Event| {
            self.turn += 1;
            self.queue.insert((at, self.turn), event);
            (at, self.turn)
        };
        let runs_at = answer.runs().then(|| plan(begins, Event::Runs(attempt)));
        for (at, member) in schedule.iter().flat_map(|schedule| schedule.news(begins)) {
            plan(at, Event::Tells(Report::Container { attempt, at, member: Box::new(member) }));
        }
        for (after, (done, total)) in &answer.progress {
            let at = begins.saturating_add(*after);
            plan(at, Event::Tells(Report::Progress { attempt, at, done: *done, total: *total }));
        }
        if answer.runs() && task.pod.iter().flat_map(|pod| &pod.members).any(|member| member.probe.is_some()) {
            let at = begins.saturating_add(answer.ready);
            plan(at, Event::Tells(Report::Ready { attempt, at, ready: true }));
        }
        let ends_at = after.map(|after| plan(begins.saturating_add(after), Event::Ends(attempt)));
        self.active_tasks.insert(attempt, ActiveTask { answer, task, runs_at, ends_at, started: None, told: None });
        self.active[run] += 1;
        self.outcome.peaks[run] = self.outcome.peaks[run].max(self.active[run]);
        self.outcome.peak = self.outcome.peak.max(self.active_tasks.len());
    }

    fn node_name(&self, attempt: AttemptId, task: &Task) -> String {
        let engine = self.event_loop.engine();
        match engine.run_of::<octoflow_engine::argo::Run>(attempt.run) {
            Some(run) => run.state.node(attempt.task).name.to_string(),
            None => short_name(engine.run(attempt.run).map_or("", |run| run.name()), &task.name).to_owned(),
        }
    }

    /// What a pod of a run does that has no templates; its task stands for one.
    fn answer_to_pod(&mut self, attempt: AttemptId, task: &Task, run: &str) -> Result<Answer, Fault<'a>> {
        let display = short_name(run, &task.name);
        let given = Given {
            task,
            run,
            node: &task.name,
            display,
            template: display.rsplit_once('-').map_or(display, |(of, _)| of),
            daemon: false,
            attempt: attempt.attempt as usize,
            call: 0,
            parameters: BTreeMap::new(),
            artifacts: BTreeMap::new(),
        };
        self.scenario.stubs.answer(given)
    }

    fn answer(&mut self, attempt: AttemptId, task: &Task) -> Result<Answer, Fault<'a>> {
        let engine = self.event_loop.engine();
        let Some(run) = engine.run_of::<octoflow_engine::argo::Run>(attempt.run) else {
            let run = engine.run(attempt.run).expect("a task that starts belongs to an open run").name().to_owned();
            return self.answer_to_pod(attempt, task, &run);
        };
        let state = &run.state;
        let node = state.node(attempt.task);
        // The attempt of a retried call may be a node far above the task that runs.
        let mut above = Some(attempt.task);
        let mut tries = 0;
        let mut inputs = node.inputs.as_deref();
        while let Some(at) = above {
            let node = state.node(at);
            if let Role::Attempt(number) = node.role {
                tries = number as usize;
                inputs = inputs.or_else(|| state.node(node.parent?).inputs.as_deref());
                break;
            }
            above = node.parent;
        }
        let artifacts = inputs.iter().flat_map(|inputs| &inputs.artifacts).filter_map(|artifact| {
            // What comes from elsewhere has no text here.
            let text = if let ArtifactValue::Raw(data) = &artifact.source {
                data
            } else if let ArtifactValue::Stored { artifact, .. } = &artifact.source {
                self.outcome.artifact_texts.text(&artifact.digest)?
            } else {
                return None;
            };
            Some((artifact.name.clone(), text.to_owned()))
        });
        let given = Given {
            task,
            run: &state.head.name,
            node: &node.name,
            display: state.display_of(attempt.task),
            template: node.template.as_deref().map_or("", refer::bare),
            daemon: node
                .template
                .as_deref()
                .and_then(|key| run.program.compiled(key))
                .is_some_and(|compiled| compiled.template.daemon == Some(true)),
            attempt: tries,
            call: 0,
            parameters: inputs.iter().flat_map(|inputs| inputs.parameters.iter().cloned()).collect(),
            artifacts: artifacts.collect(),
        };
        self.scenario.stubs.answer(given)
    }
}

/// The name of a pod among those of its run.
fn short_name<'t>(run: &str, name: &'t str) -> &'t str {
    name.strip_prefix(run).and_then(|rest| rest.strip_prefix('-')).unwrap_or(name)
}
