//! Conditions on the tasks of running jobs. Those about phases of pods are read off the job when it changes; the others are
//! tested over the network by a runtime, from the time at which their pods run until all of them have answered. What held
//! once, holds.

use std::collections::BTreeSet;

use octoflow_model::{
    NodeIx, Order,
    jobflow::{FlowFact, spec::TaskStatus},
    request::Answer,
    volcano::PodPhase,
};

use super::{
    run::Run,
    state::{Stage, Test},
    turn::Turn,
};
use crate::{
    dialects::volcano::{self, status::shown_phase},
    run::Run as AnyRun,
};

impl Turn<'_> {
    /// Decides what the job of an entry means for the conditions of those that wait for it.
    pub(super) fn probe_tasks(&mut self, node: NodeIx, child: &AnyRun) {
        let Some(job) = child.of::<volcano::Run>().filter(|_| self.run.is_probed(node.at())) else { return };
        let program = self.run.program.clone();
        for entry in program.after[node.at()].iter().map(|after| *after as usize) {
            let Some(probe) =
                program.probe(entry).filter(|_| self.run.state.flow.entries[entry].stage == Stage::Waiting)
            else {
                continue;
            };
            for (number, status) in probe.task_status_list.iter().enumerate() {
                let condition = (probe.tested() + number) as u32;
                if !self.run.is_met(entry, condition) && holds(job, status) {
                    self.decide(FlowFact::ConditionMet { entry: entry as u32, condition, at: self.now });
                }
            }
            let gets = probe.http_get_list.iter().map(|get| (get.task_name.as_str(), get.port));
            let sockets = probe.tcp_socket_list.iter().map(|socket| (socket.task_name.as_str(), socket.port));
            for (condition, (task, port)) in gets.chain(sockets).enumerate() {
                self.retarget(entry, condition as u32, job, task, port);
            }
        }
    }

    /// Replaces the addresses of this job among those that a condition is tested at.
    fn retarget(&mut self, entry: usize, condition: u32, job: &volcano::Run, task: &str, port: u16) {
        if self.run.is_met(entry, condition) {
            return;
        }
        let none = Test::default();
        let known = self.run.state.flow.entries[entry].tests.get(&condition).unwrap_or(&none);
        let own: BTreeSet<String> =
            (0..job.program.slots).map(|pod| format!("{}:{port}", job.address_of(pod))).collect();
        let mut addresses: Vec<String> = known.addresses.iter().filter(|one| !own.contains(*one)).cloned().collect();
        addresses.extend(running(job, task).map(|pod| format!("{}:{port}", job.address_of(pod))));
        if addresses != known.addresses {
            self.test(entry, condition, addresses);
        }
    }

    /// Tests a condition at other addresses from now on.
    fn test(&mut self, entry: usize, condition: u32, addresses: Vec<String>) {
        let Some(node) = self.run.program.test_node(entry as u32, condition) else { return };
        if let Some(attempt) = self.run.attempt_of(node) {
            self.effects.orders.push(Order::Stop { attempt });
        }
        self.decide(FlowFact::Probing { entry: entry as u32, condition, at: self.now, addresses });
        self.start(node);
    }

    /// Ends the tests of an entry that needs them no more.
    pub(super) fn end_tests(&mut self, entry: usize) {
        let tests = &self.run.state.flow.entries[entry].tests;
        let open: Vec<u32> =
            tests.iter().filter(|(_, test)| !test.addresses.is_empty()).map(|(condition, _)| *condition).collect();
        open.into_iter().for_each(|condition| self.test(entry, condition, Vec::new()));
    }

    /// Takes the answer of a test.
    pub(super) fn tested(&mut self, entry: usize, condition: u32, answer: Answer) {
        let entry = entry as u32;
        match answer {
            Answer::Probed => self.decide(FlowFact::ConditionMet { entry, condition, at: self.now }),
            Answer::Refused(why) | Answer::Failed(why) => {
                self.decide(FlowFact::Probing { entry, condition, at: self.now, addresses: Vec::new() });
                self.decide(FlowFact::Held { entry, at: self.now, why });
            }
            Answer::Stopped | Answer::Http(_) | Answer::Object(_) | Answer::Listing(_) => {
                self.decide(FlowFact::Probing { entry, condition, at: self.now, addresses: Vec::new() });
            }
        }
    }
}

impl Run {
    fn is_met(&self, entry: usize, condition: u32) -> bool {
        self.state.flow.entries[entry].met.contains(&condition)
    }
}

/// Reports whether a task that is meant has enough pods in the phase. Without a name, every task has.
fn holds(job: &volcano::Run, wanted: &TaskStatus) -> bool {
    let mut tasks = (0..job.program.tasks.len())
        .filter(|task| wanted.task_name.is_empty() || job.program.spec(*task).name == wanted.task_name)
        .peekable();
    let enough = |task: usize| {
        let plan = &job.program.tasks[task];
        let least = if plan.least > 0 { plan.least } else { plan.count };
        let of = |phase: &&PodPhase| shown_phase(job, **phase) == Some(wanted.phase.as_str());
        let there: u32 = PodPhase::ALL.iter().filter(of).map(|phase| job.state.tasks[task].count(*phase)).sum();
        there >= least
    };
    tasks.peek().is_some() && tasks.all(enough)
}

/// Returns the running pods of a task; of every task without a name.
fn running<'j>(job: &'j volcano::Run, task: &str) -> impl Iterator<Item = u32> + 'j {
    let of = task.to_owned();
    (0..job.program.slots).filter(move |pod| {
        job.state.pods[*pod as usize].phase == PodPhase::Running
            && (of.is_empty() || job.program.spec(job.program.task_of(*pod)).name == of)
    })
}
