//! The oracle: from how every job of a flow would end, it works out which are made and how the flow ends. It keeps no
//! state and knows no order: an entry's fate is that of those it waits for. Random flows are played against it.

use octoflow_model::{
    jobflow::{FlowPhase, JobEnd, Strategy},
    volcano::JobPhase,
};
use serde_json::json;

use super::{Play, decide};
use crate::dialects::jobflow::state::Stage;

/// A small generator of numbers: the same seed gives the same flow.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// How the tries of an entry end, one after the other; the last one for all that follow.
type Ends = Vec<JobEnd>;

/// Returns whether an entry's job is made, and whether it is completed in the end.
fn fate(play: &Play, ends: &[Ends], at: usize) -> (bool, bool) {
    let plan = &play.program.entries[at];
    let completed = |up: &usize| fate(play, ends, *up).1;
    let made = match plan.strategy {
        Strategy::All => plan.needs.iter().all(completed),
        Strategy::Any => plan.needs.is_empty() || plan.needs.iter().any(completed),
    };
    (made, made && tries(play, ends, at).1)
}

/// Returns the number of tries of an entry that is made, and whether the last one is completed.
fn tries(play: &Play, ends: &[Ends], at: usize) -> (u32, bool) {
    let mut count = 0;
    loop {
        let end = end_of_try(&ends[at], count);
        count += 1;
        let again = matches!(end, JobEnd::Failed | JobEnd::Refused) && count <= play.program.entries[at].retries;
        if !again {
            return (count, end == JobEnd::Completed);
        }
    }
}

fn end_of_try(ends: &Ends, number: u32) -> JobEnd {
    ends.get(number as usize).or(ends.last()).copied().unwrap_or(JobEnd::Completed)
}

fn random_flow(numbers: &mut Numbers) -> (Play, Vec<Ends>) {
    let count = 1 + numbers.below(9) as usize;
    let mut flows = Vec::new();
    for at in 0..count {
        // Only earlier entries of a hidden order are waited for, so that there is no circle; the manifest's order is another.
        let targets: Vec<String> = (0..at).filter(|_| numbers.below(3) == 0).map(|up| format!("j{up}")).collect();
        let strategy = if numbers.below(2) == 0 { "all" } else { "any" };
        flows.push(json!({"name": format!("j{at}"), "dependsOn": {"targets": targets, "strategy": strategy},
                          "retry": {"maxRetries": numbers.below(3), "backoff": "1s"}}));
    }
    for at in (1..count).rev() {
        flows.swap(at, numbers.below(at as u64 + 1) as usize);
    }
    let all =
        [JobEnd::Completed, JobEnd::Completed, JobEnd::Failed, JobEnd::Terminated, JobEnd::Deleted, JobEnd::Refused];
    let ends = (0..count)
        .map(|_| (0..1 + numbers.below(3)).map(|_| all[numbers.below(all.len() as u64) as usize]).collect())
        .collect();
    (Play::new(json!(flows)), ends)
}

#[test]
fn random_flows_end_as_the_oracle_says() {
    let (mut failed, mut succeeded) = (0, 0);
    for seed in 1..=3000 {
        let mut numbers = Numbers(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15) | 1);
        let (mut play, ends) = random_flow(&mut numbers);
        let mut steps = 0;
        while !decide::is_over(&play.program, &play.state, play.told) {
            steps += 1;
            assert!(steps < 1000, "seed {seed} is stuck");
            let active: Vec<usize> =
                (0..play.state.entries.len()).filter(|at| play.state.entries[*at].is_active()).collect();
            if active.is_empty() {
                // Only retries are left to wait for.
                let due = |stage| if let Stage::BackOff(until) = stage { Some(until) } else { None };
                let next = play.state.entries.iter().filter_map(|entry| due(entry.stage)).min();
                play.now = next.unwrap_or_else(|| panic!("seed {seed} waits for nothing"));
                play.settle();
                continue;
            }
            let at = active[numbers.below(active.len() as u64) as usize];
            let name = play.program.name(at).to_owned();
            if numbers.below(2) == 0 {
                play.observe(&name, JobPhase::Running);
            }
            let end = end_of_try(&ends[at], play.state.entries[at].tries - 1);
            if end == JobEnd::Completed && numbers.below(2) == 0 {
                play.observe(&name, JobPhase::Completed);
            }
            play.end(&name, end);
            // A crash: the state is what the facts say, and nothing is decided anew.
            let mut folded = super::State::new(play.program.entries.len());
            play.facts.iter().for_each(|fact| folded.apply(fact));
            assert_eq!(folded, play.state);
        }
        for at in 0..ends.len() {
            let (made, completed) = fate(&play, &ends, at);
            let wanted = if made { tries(&play, &ends, at).0 } else { 0 };
            assert_eq!(play.state.entries[at].tries, wanted, "seed {seed}, entry {at}");
            assert_eq!(play.state.entries[at].is_completed(), completed, "seed {seed}, entry {at}");
        }
        let all = (0..ends.len()).all(|at| fate(&play, &ends, at).1);
        assert_eq!(play.phase(), if all { FlowPhase::Succeed } else { FlowPhase::Failed }, "seed {seed}");
        *(if all { &mut succeeded } else { &mut failed }) += 1;
    }
    assert!(failed > 100 && succeeded > 100, "both ends are played: {failed} and {succeeded}");
}
