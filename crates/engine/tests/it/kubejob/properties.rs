//! What must hold for every job: random ones in random order, with losses, deletions, drained nodes, commands, crashes and
//! restarts, step by step against an oracle that knows nothing of how the engine works.

use octoflow_engine::{Capacity, Command, Input, kubejob::admit::examine};
use octoflow_model::{AttemptId, kubejob::PodPhase, taskset::StopReason};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::{Value, json};

use super::{
    oracle::{Oracle, Scheme, What, Who},
    stage::{Everything, Stage, manifest},
};
use crate::{
    plan::Dice,
    play::{ROOMY, RUN},
};

/// After so many steps pods end well.
const PATIENCE: usize = 120;

impl Scheme {
    fn new(dice: &mut Dice) -> Self {
        let indexed = dice.chance(50);
        let completions = (indexed || dice.chance(70)).then(|| dice.below(5) as u32);
        let mut scheme = Self {
            completions,
            parallelism: 1 + dice.below(4) as u32,
            indexed,
            limit: dice.below(6) as u32,
            restarts: dice.chance(30),
            deadline: dice.chance(15).then(|| 30 + dice.below(200) as u64),
            ..Self::default()
        };
        let all = completions.unwrap_or(0);
        if indexed && dice.chance(60) {
            scheme.per_index = Some(dice.below(3) as u32);
            scheme.limit = i32::MAX as u32;
            scheme.max_failed = dice.chance(40).then(|| dice.below(all as usize + 1) as u32);
        }
        if !scheme.restarts && dice.chance(50) {
            scheme.rules = (0..1 + dice.below(3)).map(|_| Self::rule(dice, scheme.per_index.is_some())).collect();
        }
        scheme.waits = !scheme.rules.is_empty() || dice.chance(40);
        if indexed && all > 0 && dice.chance(40) {
            let indexes: Vec<u32> = (0..all).filter(|_| dice.chance(60)).collect();
            let indexes = if indexes.is_empty() { vec![0] } else { indexes };
            let count = 1 + dice.below(indexes.len()) as u32;
            scheme.success = vec![(indexes, count)];
        }
        scheme
    }

    fn rule(dice: &mut Dice, per_index: bool) -> (Option<i32>, &'static str) {
        let on = [None, Some(1), Some(2), Some(143)][dice.below(4)];
        let action = ["Ignore", "Count", "FailIndex", "FailJob"][dice.below(4)];
        (on, if action == "FailIndex" && !per_index { "Count" } else { action })
    }

    fn spec(&self) -> Value {
        let mut spec = json!({
            "parallelism": self.parallelism,
            "backoffLimit": self.limit,
            "podReplacementPolicy": if self.waits { "Failed" } else { "TerminatingOrFailed" },
            "template": {"spec": {"restartPolicy": if self.restarts { "OnFailure" } else { "Never" }}},
        });
        let numbers = [
            ("completions", self.completions.map(u64::from)),
            ("backoffLimitPerIndex", self.per_index.map(u64::from)),
            ("maxFailedIndexes", self.max_failed.map(u64::from)),
            ("activeDeadlineSeconds", self.deadline),
        ];
        for (field, value) in numbers {
            if let Some(value) = value {
                spec[field] = json!(value);
            }
        }
        if self.indexed {
            spec["completionMode"] = json!("Indexed");
        }
        let rule = |(on, action): &(Option<i32>, &str)| match on {
            Some(code) => json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}}),
            None => json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}),
        };
        if !self.rules.is_empty() {
            spec["podFailurePolicy"] = json!({"rules": self.rules.iter().map(rule).collect::<Vec<_>>()});
        }
        if !self.success.is_empty() {
            let text = |indexes: &[u32]| indexes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let rule = |(indexes, count): &(Vec<u32>, u32)| json!({"succeededIndexes": text(indexes), "succeededCount": count});
            spec["successPolicy"] = json!({"rules": self.success.iter().map(rule).collect::<Vec<_>>()});
        }
        spec
    }
}

struct Story {
    stage: Stage,
    oracle: Oracle,
    /// How the oracle was before the last input.
    before: Oracle,
    dice: Dice,
}

impl Story {
    fn play(seed: u64, slots: usize, rough: bool) -> Self {
        let mut dice = Dice(seed);
        let scheme = Scheme::new(&mut dice);
        let admitted = examine(&manifest("j", scheme.spec()), &Everything)
            .unwrap_or_else(|problems| panic!("{problems:?} in {:#}", scheme.spec()));
        let mut stage = Stage::empty(Capacity { slots, ..ROOMY });
        stage.submit_as(1, "j".into(), admitted.manifest, admitted.stored);
        let oracle = Oracle { scheme, started: stage.now, ..Oracle::default() };
        let mut story = Self { stage, before: oracle.clone(), oracle, dice };
        story.agree(None, &[]);
        for step in 0..4 * PATIENCE {
            if story.stage.over() {
                return story;
            }
            story.step(rough && step < PATIENCE, step >= PATIENCE);
        }
        panic!("it does not come to an end: {:#}\n{:#?}", story.oracle.scheme.spec(), story.oracle);
    }

    fn step(&mut self, rough: bool, late: bool) {
        let live: Vec<(AttemptId, String)> = self.stage.pods.iter().map(|(id, pod)| (*id, pod.name.clone())).collect();
        if rough && self.dice.chance(5) {
            self.stage.restart();
            return self.agree(None, &[]);
        }
        if rough && self.dice.chance(5) && self.stage.crashable() {
            self.stage.crash_before();
            self.oracle = self.before.clone();
            return self.agree(None, &[]);
        }
        self.before = self.oracle.clone();
        if late && self.oracle.suspended || rough && self.dice.chance(6) {
            return self.hold();
        }
        if rough && self.dice.chance(1) && self.stage.command(Command::Stop).is_ok() {
            self.oracle.stopped = true;
            return self.agree(None, &[]);
        }
        if rough && self.dice.chance(5) && !live.is_empty() {
            let (_, pod) = &live[self.dice.below(live.len())];
            let was_told = self.stage.pods.values().any(|one| one.name == *pod && one.told.is_some());
            let command = Command::Evict { pod: pod.clone(), why: StopReason::Deleted };
            if self.stage.command(command).is_ok() && !was_told {
                let pod = self.number_of(pod);
                return self.agree(Some(Who::User), &[pod]);
            }
            return self.agree(None, &[]);
        }
        if rough && self.dice.chance(2) {
            let run = self.stage.run(RUN);
            let there = |phase| matches!(phase, PodPhase::Starting | PodPhase::Running | PodPhase::BackOff);
            let taken: Vec<usize> =
                run.state.pods.iter().enumerate().filter(|(_, pod)| there(pod.phase)).map(|(at, _)| at).collect();
            self.stage.input(Input::Drain { node: "local".to_owned() });
            return self.agree(Some(Who::Scheduler), &taken);
        }
        if rough && self.dice.chance(4) {
            let to = self.dice.below(5) as u32;
            if self.stage.amend(json!({"parallelism": to})).is_ok() {
                self.oracle.scheme.parallelism = to;
            }
            return self.agree(None, &[]);
        }
        if late && self.oracle.scheme.parallelism == 0 && self.stage.amend(json!({"parallelism": 2})).is_ok() {
            self.oracle.scheme.parallelism = 2;
            return self.agree(None, &[]);
        }
        if self.dice.chance(15) || live.is_empty() {
            let due = self.stage.engine.wake_at().map(|at| at.since(self.stage.now).as_secs());
            let seconds = self.dice.below(30) as u64;
            // Whatever is due on the way is looked at when it is.
            self.stage.tick(due.map_or(seconds, |due| if live.is_empty() { due } else { due.min(seconds) }));
            return self.agree(None, &[]);
        }
        let (id, pod) = live[self.dice.below(live.len())].clone();
        self.touch(id, &pod, late);
    }

    fn hold(&mut self) {
        if self.oracle.suspended {
            let resume = Command::Resume { selector: None, supplied: Default::default() };
            if self.stage.command(resume).is_ok() {
                self.oracle.suspended = false;
                self.oracle.started = self.stage.now;
            }
        } else if self.stage.command(Command::Suspend).is_ok() {
            self.oracle.suspended = true;
        }
        self.agree(None, &[]);
    }

    /// Something happens to a pod: it comes up, or is gone.
    fn touch(&mut self, id: AttemptId, pod: &str, late: bool) {
        if self.dice.chance(30) && self.stage.pods[&id].told.is_none() {
            self.stage.up(pod);
            return self.agree(None, &[]);
        }
        let told = self.stage.pods[&id].told.is_some();
        let code = match (told, late) {
            (true, _) => [Some(0), Some(143), None][self.dice.below(3)],
            (false, true) => Some(0),
            (false, false) => [Some(0), Some(0), Some(1), Some(2), None][self.dice.below(5)],
        };
        let number = self.number_of(pod);
        match code {
            Some(code) => self.stage.exit(pod, code),
            None => self.stage.lose(pod),
        }
        let again = self.oracle.scheme.restarts && !told && code.is_some_and(|code| code != 0);
        let what = if again { What::Restarted(code.unwrap_or_default()) } else { What::Ended(code) };
        self.oracle.log.push((self.stage.now, number, what));
        self.agree(None, &[]);
    }

    fn number_of(&self, name: &str) -> usize {
        let run = self.stage.run(RUN);
        (0..run.state.pods.len()).find(|pod| run.pod_name(*pod as u32) == name).expect("the pod is known")
    }

    /// The engine does what the oracle says, and nothing else. `by` has had these pods ended just now.
    fn agree(&mut self, by: Option<Who>, taken: &[usize]) {
        let now = self.stage.now;
        let Some(_) = self.stage.engine.run(RUN) else { return assert!(self.oracle.verdict.is_some()) };
        let state = self.stage.state().clone();
        let told = |oracle: &Oracle| format!("{:#}\n{oracle:#?}\n{:?}", oracle.scheme.spec(), self.stage.facts[&RUN]);
        // What somebody else has done comes before what the job does about it.
        let note = |oracle: &mut Oracle, pod: usize, who: Who| {
            let known = oracle.log.iter().any(|(_, of, what)| *of == pod && matches!(what, What::Told(_)));
            let gone = matches!(state.pods[pod].phase, PodPhase::Gone);
            let ended = oracle.log.iter().any(|(_, of, what)| *of == pod && matches!(what, What::Ended(_)));
            if !known && !ended && (state.pods[pod].phase == PodPhase::Terminating || gone) {
                oracle.log.push((now, pod, What::Told(who)));
                if gone {
                    oracle.log.push((now, pod, What::Ended(None)));
                }
            }
        };
        for pod in self.oracle.pods.len()..state.pods.len() {
            self.oracle.pods.push(state.pods[pod].index);
            self.oracle.log.push((now, pod, What::Made));
        }
        taken.iter().for_each(|pod| note(&mut self.oracle, *pod, by.expect("somebody has done it")));
        self.oracle.judge(now);
        let who = self.oracle.verdict.map_or(Who::Job, |(_, good)| Who::Over(good));
        (0..state.pods.len()).for_each(|pod| note(&mut self.oracle, pod, who));
        self.oracle.judge(now);
        let found = self.oracle.recount(now);
        let verdict = state.judgement.as_ref().map(|judgement| judgement.reason.as_str());
        assert_eq!(verdict, self.oracle.verdict.map(|(reason, _)| reason), "{}", told(&self.oracle));
        let is = (state.active() as usize, state.count(PodPhase::Terminating) as usize, state.succeeded, state.failed);
        let wanted = (found.active.len(), found.terminating.len(), found.succeeded, found.failed);
        assert_eq!(is, wanted, "{}\n{found:?}", told(&self.oracle));
        let text = |indexes: &std::collections::BTreeSet<u32>| {
            indexes.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        };
        let of = |indexes: &octoflow_engine::kubejob::indexes::Indexes| {
            let all = indexes.ranges().iter().flat_map(|range| range.0..=range.1);
            all.map(|index| index.to_string()).collect::<Vec<_>>().join(",")
        };
        assert_eq!(of(&state.succeeded_indexes), text(&found.good_indexes), "{}", told(&self.oracle));
        assert_eq!(of(&state.failed_indexes), text(&found.bad_indexes), "{}", told(&self.oracle));
        let (least, most) = self.oracle.bounds(now);
        let active = state.active();
        assert!((least..=most).contains(&active), "{active} of {least} to {most} pods: {}", told(&self.oracle));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(20_261_118), ..ProptestConfig::default() })]

    #[test]
    fn pods_that_end_in_any_order_come_to_what_kubernetes_says(seed in any::<u64>(), slots in 1..9_usize) {
        Story::play(seed, slots, false);
    }

    #[test]
    fn whatever_happens_on_the_way(seed in any::<u64>(), slots in 1..9_usize) {
        Story::play(seed, slots, true);
    }
}

/// If jobs became trivial by accident, the properties would prove nothing.
#[test]
fn the_stories_are_not_trivial() {
    let (mut pods, mut ends) = (0, std::collections::BTreeMap::new());
    for seed in 0..400 {
        let story = Story::play(seed, 1 + (seed % 7) as usize, true);
        pods += story.stage.starts.len();
        *ends.entry(story.oracle.verdict.map(|(reason, _)| reason)).or_insert(0) += 1;
    }
    assert!(pods > 800, "{pods}");
    assert!(ends.len() == 8 && ends.values().all(|count| *count > 2), "{ends:?}");
}
