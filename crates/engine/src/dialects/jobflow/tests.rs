//! Tests of the pure parts of flows, with an oracle that works out a flow from how its jobs ended.

mod admission;
mod index;
mod oracle;
mod patches;

use octoflow_model::{
    RunId, Time,
    jobflow::{FlowFact, FlowPhase, JobEnd, TaskCounts},
    volcano::JobPhase,
};
use serde_json::{Value, json};

use super::{
    decide::{self, Conditions, EntryGate},
    program::{Program, job_name},
    state::{Stage, State},
};

/// A flow in which tests make and end jobs.
struct Play {
    program: Program,
    state: State,
    told: Conditions,
    now: Time,
    facts: Vec<FlowFact>,
}

impl Play {
    fn new(flows: Value) -> Self {
        let manifest = json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow",
                              "metadata": {"name": "test"}, "spec": {"flows": flows}});
        let program = Program::compile(&manifest).unwrap();
        let state = State::new(program.entries.len());
        let mut play = Self { program, state, told: Conditions::default(), now: Time(0), facts: Vec::new() };
        play.settle();
        play
    }

    fn decide(&mut self, fact: FlowFact) {
        self.state.apply(&fact);
        self.facts.push(fact);
    }

    /// Orders what is due, and makes every ordered job.
    fn settle(&mut self) {
        for fact in decide::wanted(&self.program, &self.state, self.told, self.now) {
            let FlowFact::Wanted { entry, .. } = fact else { panic!("{fact:?}") };
            self.decide(fact);
            let name =
                job_name("test", self.program.name(entry as usize), self.state.entries[entry as usize].tries - 1);
            self.decide(FlowFact::Made { entry, at: self.now, run: RunId(7), name, uid: String::new() });
        }
        assert!(decide::wanted(&self.program, &self.state, self.told, self.now).is_empty(), "nothing is decided twice");
    }

    fn number(&self, name: &str) -> usize {
        (0..self.program.entries.len()).find(|at| self.program.name(*at) == name).unwrap()
    }

    fn observe(&mut self, name: &str, phase: JobPhase) {
        let entry = self.number(name) as u32;
        let tasks = TaskCounts::new();
        self.decide(FlowFact::Observed { entry, at: self.now, phase, restarts: 0, tasks, changes: 0 });
        self.settle();
    }

    fn end(&mut self, name: &str, end: JobEnd) {
        let at = self.number(name);
        assert!(self.state.entries[at].is_active(), "{name} has a job");
        let fact = decide::ended(&self.program, &self.state, at, end, String::new(), self.now);
        self.decide(fact);
        self.settle();
    }

    /// Returns the names of the jobs that are there and not over.
    fn active(&self) -> Vec<String> {
        let active = self.state.entries.iter().filter(|entry| entry.is_active());
        active.map(|entry| entry.job.as_ref().unwrap().name.clone()).collect()
    }

    fn phase(&self) -> FlowPhase {
        decide::phase(&self.program, &self.state, self.told)
    }
}

fn entry(name: &str, targets: &[&str]) -> Value {
    json!({"name": name, "dependsOn": {"targets": targets}})
}

/// The seed's flow, with names in lower case.
fn seed() -> Play {
    Play::new(json!([
        {"name": "a"}, entry("b", &["a"]), entry("c", &["b"]), entry("d", &["b"]), entry("e", &["c", "d"])
    ]))
}

#[test]
fn jf01_the_seeds_flow_runs_in_its_order() {
    let mut play = seed();
    assert_eq!((play.active(), play.phase()), (vec!["test-a".to_owned()], FlowPhase::Pending));
    play.observe("a", JobPhase::Running);
    assert_eq!(play.phase(), FlowPhase::Running);
    play.end("a", JobEnd::Completed);
    assert_eq!(play.active(), ["test-b"]);
    play.end("b", JobEnd::Completed);
    assert_eq!(play.active(), ["test-c", "test-d"]);
    play.end("c", JobEnd::Completed);
    assert_eq!((play.active(), play.phase()), (vec!["test-d".to_owned()], FlowPhase::Running));
    play.end("d", JobEnd::Completed);
    play.end("e", JobEnd::Completed);
    assert_eq!(play.phase(), FlowPhase::Succeed);
    assert!(decide::is_over(&play.program, &play.state, play.told));
}

#[test]
fn jf02_both_entry_jobs_are_made_in_the_first_pass() {
    assert_eq!(Play::new(json!([{"name": "a"}, {"name": "b"}])).active(), ["test-a", "test-b"]);
}

#[test]
fn jf06_a_failed_job_does_not_stop_an_independent_branch() {
    let mut play = seed();
    play.end("a", JobEnd::Completed);
    play.end("b", JobEnd::Completed);
    play.end("c", JobEnd::Failed);
    assert_eq!((play.active(), play.phase()), (vec!["test-d".to_owned()], FlowPhase::Running));
    assert_eq!(decide::gates(&play.program, &play.state)[4], EntryGate::Never);
    play.end("d", JobEnd::Completed);
    assert_eq!((play.active(), play.phase()), (Vec::<String>::new(), FlowPhase::Failed));
    assert_eq!(play.state.entries[4].tries, 0, "what waits for it is never made");
    assert_eq!(decide::failure(&play.program, &play.state), "job 'c' failed; not started: 'e'");
}

#[test]
fn jf08_a_terminated_job_fails_the_flow_and_an_aborted_one_holds_it_open() {
    let mut play = Play::new(json!([{"name": "a"}]));
    play.end("a", JobEnd::Terminated);
    assert_eq!(play.phase(), FlowPhase::Failed);
    let mut play = Play::new(json!([{"name": "a"}]));
    for phase in [JobPhase::Running, JobPhase::Aborting, JobPhase::Aborted] {
        play.observe("a", phase);
        assert_eq!((play.phase(), decide::end_of(phase)), (FlowPhase::Running, None));
    }
    play.observe("a", JobPhase::Completed);
    play.end("a", JobEnd::Completed);
    assert_eq!(play.phase(), FlowPhase::Succeed);
}

#[test]
fn a_dependant_starts_when_a_job_is_completed_and_its_pods_are_still_being_ended() {
    let mut play = seed();
    play.observe("a", JobPhase::Completing);
    assert_eq!(play.active(), ["test-a"]);
    play.observe("a", JobPhase::Completed);
    assert_eq!(play.active(), ["test-a", "test-b"]);
}

#[test]
fn one_of_several_targets_is_enough_if_the_flow_says_so() {
    let any = json!([{"name": "a"}, {"name": "b"},
                     {"name": "c", "dependsOn": {"targets": ["a", "b"], "strategy": "any"}}]);
    let mut play = Play::new(any.clone());
    play.end("a", JobEnd::Failed);
    assert_eq!(play.active(), ["test-b"]);
    play.end("b", JobEnd::Completed);
    assert_eq!(play.active(), ["test-c"]);
    let mut play = Play::new(any);
    play.end("a", JobEnd::Failed);
    play.end("b", JobEnd::Deleted);
    assert_eq!(play.phase(), FlowPhase::Failed);
}

#[test]
fn jf19_a_probe_lets_a_job_start_while_its_target_runs() {
    let status = json!([{"taskName": "server", "phase": "Running"}, {"taskName": "db", "phase": "Running"}]);
    let probed = |strategy: &str| {
        let needs = json!({"targets": ["a"], "strategy": strategy, "probe": {"taskStatusList": status}});
        Play::new(json!([{"name": "a"}, {"name": "b", "dependsOn": needs}]))
    };
    let mut play = probed("all");
    play.observe("a", JobPhase::Running);
    assert_eq!(play.active(), ["test-a"]);
    for (condition, active) in [(1, 1), (0, 2)] {
        play.decide(FlowFact::ConditionMet { entry: 1, condition, at: play.now });
        play.settle();
        assert_eq!(play.active().len(), active);
    }
    let mut play = probed("any");
    play.decide(FlowFact::ConditionMet { entry: 1, condition: 1, at: play.now });
    play.settle();
    assert_eq!(play.active(), ["test-a", "test-b"]);
    // What never held before its target was over never will.
    let mut play = probed("all");
    play.decide(FlowFact::ConditionMet { entry: 1, condition: 1, at: play.now });
    play.end("a", JobEnd::Completed);
    assert_eq!((play.phase(), play.active().len()), (FlowPhase::Failed, 0));
}

#[test]
fn failed_jobs_are_tried_again_with_growing_delays_and_what_people_end_is_not() {
    let flows = json!([{"name": "a", "retry": {"maxRetries": 2, "backoff": "3s"}}, entry("b", &["a"])]);
    let mut play = Play::new(flows.clone());
    play.end("a", JobEnd::Failed);
    assert_eq!((play.active().len(), play.phase()), (0, FlowPhase::Running));
    assert_eq!(play.state.entries[0].stage, Stage::BackOff(Time::from_secs(3)));
    play.now = Time::from_secs(3);
    play.settle();
    assert_eq!(play.active(), ["test-a-1"]);
    play.end("a", JobEnd::Refused);
    assert_eq!(play.state.entries[0].stage, Stage::BackOff(Time::from_secs(9)));
    play.now = Time::from_secs(9);
    play.settle();
    play.end("a", JobEnd::Failed);
    assert_eq!((play.phase(), play.state.entries[0].tries), (FlowPhase::Failed, 3));
    for end in [JobEnd::Terminated, JobEnd::Deleted] {
        let mut play = Play::new(flows.clone());
        play.end("a", end);
        assert_eq!(play.phase(), FlowPhase::Failed, "{end:?}");
    }
}

#[test]
fn delays_double_up_to_a_limit() {
    use std::time::Duration;
    let of = |first: u64, tries| decide::delay(Duration::from_secs(first), tries).as_secs();
    assert_eq!([of(10, 1), of(10, 2), of(10, 3), of(10, 40), of(10, u32::MAX)], [10, 20, 40, 3600, 3600]);
    assert_eq!(of(7200, 5), 7200, "who asks for more gets it");
    assert_eq!(of(0, 9), 0);
}

#[test]
fn a_suspended_flow_orders_nothing_and_one_that_is_ended_is_over_with_its_jobs() {
    let mut play = seed();
    play.told.suspended = true;
    play.end("a", JobEnd::Completed);
    assert_eq!((play.active().len(), play.phase()), (0, FlowPhase::Running));
    play.told.suspended = false;
    play.settle();
    assert_eq!(play.active(), ["test-b"]);
    play.told.closing = true;
    assert_eq!(play.phase(), FlowPhase::Running);
    play.end("b", JobEnd::Terminated);
    assert_eq!(play.phase(), FlowPhase::Failed);
}

#[test]
fn jf22_a_flow_that_is_deleted_is_terminating() {
    let mut play = seed();
    play.told.deleted = true;
    assert_eq!(play.phase(), FlowPhase::Terminating);
    assert!(!decide::is_over(&play.program, &play.state, play.told));
}

#[test]
fn jf18_the_history_of_a_job_has_one_entry_for_each_change() {
    let mut play = Play::new(json!([{"name": "a"}]));
    let phases = [JobPhase::Running, JobPhase::Running, JobPhase::Restarting, JobPhase::Running, JobPhase::Completed];
    for (second, phase) in phases.into_iter().enumerate() {
        play.now = Time::from_secs(second as i64);
        play.observe("a", phase);
    }
    let words: Vec<&str> = play.state.entries[0].history.iter().map(|(phase, _)| phase.word()).collect();
    assert_eq!(words, ["Pending", "Running", "Restarting", "Running", "Completed"]);
}
