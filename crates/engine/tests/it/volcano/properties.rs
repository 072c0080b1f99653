//! What must hold for every job: random ones in random order, with losses, evictions, drained nodes, commands, crashes and
//! restarts, step by step against an oracle that knows nothing of how the engine works.

use std::time::Duration;

use octoflow_engine::{Capacity, Command, Input, volcano::admit::examine};
use octoflow_model::{AttemptId, taskset::StopReason, volcano::PodPhase};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};

use super::{
    oracle::{Is, Oracle},
    scheme::Scheme,
    stage::{Everything, Stage, manifest},
};
use crate::{
    plan::Dice,
    play::{ROOMY, RUN},
};

/// How rough a story is, in percent of its steps.
#[derive(Clone, Copy)]
struct Weather {
    restarts: u64,
    crashes: u64,
    suspensions: u64,
    evictions: u64,
    drains: u64,
    ends: u64,
    changes: u64,
    commands: u64,
}

const CALM: Weather =
    Weather { restarts: 0, crashes: 0, suspensions: 0, evictions: 0, drains: 0, ends: 0, changes: 0, commands: 0 };
const ROUGH: Weather =
    Weather { restarts: 5, crashes: 6, suspensions: 5, evictions: 5, drains: 2, ends: 1, changes: 4, commands: 2 };

/// Some jobs run for ever; after so many steps somebody ends them.
const PATIENCE: usize = 250;

struct Story {
    scheme: Scheme,
    stage: Stage,
    oracle: Oracle,
    /// How the oracle was before the last input.
    before: Oracle,
    dice: Dice,
    /// Pods that were launched and told to the oracle.
    known: usize,
}

impl Story {
    fn new(seed: u64, slots: usize) -> Self {
        let scheme = Scheme::new(seed);
        let admitted = examine(&manifest("j", scheme.spec()), &Everything)
            .unwrap_or_else(|problems| panic!("{problems:?} in {:#}", scheme.spec()));
        let mut stage = Stage::empty(Capacity { slots, ..ROOMY });
        stage.submit_as(1, "j".into(), admitted.manifest, admitted.stored);
        let oracle = Oracle::new(&scheme, stage.now);
        let mut story = Self { scheme, stage, before: oracle.clone(), oracle, dice: Dice(seed ^ 0x5eed), known: 0 };
        story.agree();
        story
    }

    fn play(seed: u64, slots: usize, weather: Weather) -> Self {
        let mut story = Self::new(seed, slots);
        for step in 0..2 * PATIENCE {
            if story.stage.over() {
                assert!(story.stage.live().is_empty());
                return story;
            }
            if step >= PATIENCE
                && matches!(story.oracle.phase, "Pending" | "Running" | "Restarting" | "Aborting" | "Aborted")
            {
                story.stop();
            } else {
                story.step(if step < PATIENCE { weather } else { CALM });
            }
        }
        panic!("it does not come to an end: {:#}\n{:?}", story.scheme.spec(), story.oracle);
    }

    fn stop(&mut self) {
        self.before = self.oracle.clone();
        self.stage.command(Command::Stop).expect("it is open");
        self.oracle.stop();
        self.agree();
    }

    fn step(&mut self, weather: Weather) {
        let live: Vec<(AttemptId, String)> = self.stage.pods.iter().map(|(id, pod)| (*id, pod.name.clone())).collect();
        if self.dice.chance(weather.restarts) {
            self.stage.restart();
            return self.agree();
        }
        if self.dice.chance(weather.crashes) && self.stage.crashable() {
            self.known = self.stage.crash_before();
            self.oracle = self.before.clone();
            self.oracle.pass(self.stage.now);
            return self.agree();
        }
        self.before = self.oracle.clone();
        if self.dice.chance(weather.suspensions) {
            self.turn_off_or_on();
        } else if self.dice.chance(weather.ends) {
            // One that is about to end by itself refuses.
            if self.stage.command(Command::Stop).is_ok() {
                self.oracle.stop();
            }
        } else if self.dice.chance(weather.changes) {
            self.resize();
        } else if self.dice.chance(weather.commands) {
            let action = ["AbortJob", "RestartJob", "CompleteJob", "ResumeJob", "TerminateJob"][self.dice.below(5)];
            if self.stage.command(Command::Perform { action: action.to_owned() }).is_ok() {
                self.oracle.perform(action);
            }
        } else if self.dice.chance(weather.evictions) && !live.is_empty() {
            let (_, pod) = &live[self.dice.below(live.len())];
            let command = Command::Evict { pod: pod.clone(), why: StopReason::Deleted };
            if self.stage.command(command).is_ok() {
                self.oracle.taken(pod);
            }
        } else if self.dice.chance(weather.drains) && !self.rests() {
            self.drain();
        } else if self.dice.chance(10) {
            let seconds = self.dice.below(8) as u64;
            self.wait(seconds);
        } else if !live.is_empty() {
            let (id, pod) = live[self.dice.below(live.len())].clone();
            self.touch(id, &pod);
        } else if let Some(wake) = self.stage.engine.wake_at() {
            let until = wake.since(self.stage.now).as_secs();
            self.wait(until);
        } else {
            assert_eq!(
                self.oracle.phase,
                "Aborted",
                "nothing will ever happen again: {:#}\n{:?}",
                self.scheme.spec(),
                self.oracle
            );
            self.stage.resume();
            self.oracle.resume();
        }
        self.agree();
    }

    /// Somebody changes the numbers of pods.
    fn resize(&mut self) {
        let sizes = self.scheme.other_sizes(&mut self.dice);
        let change = |spec: &mut Value| {
            spec["minAvailable"] = json!(sizes.least);
            for (at, (replicas, least)) in sizes.tasks.iter().enumerate() {
                spec["tasks"][at]["replicas"] = json!(replicas);
                spec["tasks"][at]["minAvailable"] = json!(least);
            }
        };
        // One that is about to end by itself refuses.
        if self.stage.amend(change).is_ok() {
            self.oracle.amend(&sizes);
        }
    }

    fn turn_off_or_on(&mut self) {
        if self.dice.chance(50) {
            if self.stage.command(Command::Suspend).is_ok() {
                self.oracle.suspend();
            }
        } else {
            let resume = Command::Resume { selector: None, supplied: Default::default() };
            if self.stage.command(resume).is_ok() {
                self.oracle.resume();
            }
        }
    }

    /// A pod waits to be started again. Taken away, its event may end others before it is their turn.
    fn rests(&self) -> bool {
        self.oracle.pods.iter().any(|pod| matches!(pod.is, Is::Resting(_)))
    }

    /// All pods are taken away, in the order of their numbers.
    fn drain(&mut self) {
        let keeps = |is: Is| matches!(is, Is::Starting | Is::Up);
        let names: Vec<String> =
            self.oracle.pods.iter().filter(|pod| keeps(pod.is)).map(|pod| pod.name.clone()).collect();
        self.stage.input(Input::Drain { node: "local".to_owned() });
        names.iter().for_each(|pod| self.oracle.taken(pod));
    }

    /// Time passes, and whatever is due on the way is looked at when it is.
    fn wait(&mut self, seconds: u64) {
        let until = self.stage.now.saturating_add(Duration::from_secs(seconds));
        loop {
            self.before = self.oracle.clone();
            let now = self.stage.now;
            let next = self.stage.engine.wake_at().filter(|at| *at <= until && *at > now).unwrap_or(until);
            self.stage.tick(next.since(now).as_secs());
            self.oracle.pass(next);
            self.agree();
            if next == until {
                return;
            }
        }
    }

    /// Something happens to a pod: it comes up, or is gone.
    fn touch(&mut self, id: AttemptId, pod: &str) {
        if self.oracle.is_probed(pod) && self.dice.chance(50) {
            let ready = self.dice.chance(80);
            self.stage.ready(pod, ready);
            return self.oracle.ready(pod, ready);
        }
        if self.dice.chance(30) {
            self.stage.up(pod);
            return self.oracle.up(pod);
        }
        let told = self.stage.pods[&id].told.is_some();
        let code = if told {
            [Some(0), Some(143), None][self.dice.below(3)]
        } else {
            self.scheme.code(pod, id.attempt as usize)
        };
        match code {
            Some(code) => self.stage.exit(pod, code),
            None => self.stage.lose(pod),
        }
        self.oracle.ended(pod, code);
    }

    fn tell_launches(&mut self) {
        let launched: Vec<String> = self.stage.starts[self.known..].iter().map(|(_, pod)| pod.clone()).collect();
        self.known = self.stage.starts.len();
        self.oracle.launched(&launched);
    }

    /// The engine does what the oracle says, and nothing else.
    fn agree(&mut self) {
        self.tell_launches();
        let (oracle, scheme) = (&self.oracle, &self.scheme);
        if self.stage.engine.run(RUN).is_none() {
            assert!(oracle.over);
            return;
        }
        let state = self.stage.state();
        let told = || format!("{:#}\n{oracle:#?}\n{:?}", scheme.spec(), self.stage.facts[&RUN]);
        assert_eq!(state.phase.word(), oracle.phase, "{}", told());
        assert_eq!((state.retries, state.version), (oracle.attempts, oracle.kills), "{}", told());
        assert_eq!(state.over, oracle.over, "{}", told());
        for (pod, known) in state.pods.iter().zip(&oracle.pods) {
            let wanted = match known.is {
                Is::Gone => PodPhase::Absent,
                Is::Waiting => PodPhase::Queued,
                Is::Starting => PodPhase::Starting,
                Is::Up => PodPhase::Running,
                Is::Dying { .. } => PodPhase::Terminating,
                Is::Resting(_) => PodPhase::BackOff,
                Is::Good => PodPhase::Succeeded,
                Is::Bad => PodPhase::Failed,
            };
            assert_eq!(pod.phase, wanted, "{} {}", known.name, told());
        }
        let waiting: Vec<(usize, i64)> = state.delayed.iter().map(|(pod, one)| (*pod as usize, one.due.0)).collect();
        let wanted: Vec<(usize, i64)> = oracle.later.iter().map(|(pod, (due, _, _))| (*pod, due.0)).collect();
        assert_eq!(waiting, wanted, "{}", told());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(20_261_118), ..ProptestConfig::default() })]

    #[test]
    fn pods_that_end_in_any_order_come_to_what_the_contract_says(seed in any::<u64>(), slots in 1..12_usize) {
        Story::play(seed, slots, CALM);
    }

    #[test]
    fn whatever_happens_on_the_way(seed in any::<u64>(), slots in 1..12_usize) {
        Story::play(seed, slots, ROUGH);
    }
}

/// If jobs became trivial by accident, the properties would prove nothing.
#[test]
fn the_stories_are_not_trivial() {
    let (mut pods, mut restarted, mut delayed, mut ends) = (0, 0, 0, std::collections::BTreeMap::new());
    for seed in 0..150 {
        let story = Story::play(seed, 1 + (seed % 7) as usize, ROUGH);
        pods += story.stage.starts.len();
        restarted += usize::from(story.oracle.attempts > 0);
        delayed += story.stage.facts[&RUN].iter().filter(|fact| format!("{fact:?}").contains("Delayed(")).count();
        *ends.entry(story.oracle.phase).or_insert(0) += 1;
    }
    assert!(pods > 500 && restarted > 40 && delayed > 30, "{pods} {restarted} {delayed}");
    assert!(ends.len() == 3 && ends.values().all(|count| *count > 10), "{ends:?}");
}
