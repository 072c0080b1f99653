//! The index beside full passes: after every fact of random flows with probes, retries and commands both tell the same; and a
//! flow of ten thousand entries costs as much for each entry as a small one.

use octoflow_model::{
    RunId, Time,
    jobflow::{FlowFact, JobEnd, TaskCounts},
    volcano::JobPhase,
};
use serde_json::{Value, json};

use super::{Program, State, decide};
use crate::dialects::jobflow::{decide::Conditions, index::Index, state::Stage};

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn compiled(flows: &[Value]) -> Program {
    let manifest = json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "test"},
                          "spec": {"flows": flows}});
    Program::compile(&manifest).unwrap()
}

fn random_program(numbers: &mut Numbers) -> Program {
    let count = 1 + numbers.below(10) as usize;
    let mut flows = Vec::new();
    for at in 0..count {
        let targets: Vec<String> = (0..at).filter(|_| numbers.below(3) == 0).map(|up| format!("j{up}")).collect();
        let strategy = if numbers.below(2) == 0 { "all" } else { "any" };
        let mut needs = json!({"targets": targets, "strategy": strategy});
        if numbers.below(3) == 0 {
            let status = json!({"taskName": "t", "phase": "Running"});
            needs["probe"] = json!({"taskStatusList": vec![status; 1 + numbers.below(3) as usize]});
        }
        flows.push(json!({"name": format!("j{at}"), "dependsOn": needs, "retry": {"maxRetries": numbers.below(3), "backoff": "1s"}}));
    }
    for at in (1..count).rev() {
        flows.swap(at, numbers.below(at as u64 + 1) as usize);
    }
    compiled(&flows)
}

fn agrees(program: &Program, state: &State, index: &Index, now: Time, seed: u64) {
    let gates: Vec<_> = (0..program.entries.len()).map(|at| index.gate(at)).collect();
    assert_eq!(gates, decide::gates(program, state), "seed {seed}");
    assert_eq!(*index, Index::new(program, state), "seed {seed}: what is kept is what is worked out anew");
    for bits in 0..8 {
        let told = Conditions { suspended: bits & 1 > 0, closing: bits & 2 > 0, deleted: bits & 4 > 0 };
        let wanted: Vec<FlowFact> =
            index.wanted(told, now).into_iter().map(|entry| FlowFact::Wanted { entry, at: now }).collect();
        assert_eq!(wanted, decide::wanted(program, state, told, now), "seed {seed}, {told:?}");
        assert_eq!(index.is_over(told), decide::is_over(program, state, told), "seed {seed}, {told:?}");
        assert_eq!(index.phase(told), decide::phase(program, state, told), "seed {seed}, {told:?}");
    }
}

/// Draws something that may happen to an entry as it is.
fn random_fact(numbers: &mut Numbers, program: &Program, state: &State, now: Time) -> Option<FlowFact> {
    let at = numbers.below(program.entries.len() as u64) as usize;
    let entry = at as u32;
    let made = |entry| FlowFact::Made { entry, at: now, run: RunId(7), name: String::new(), uid: String::new() };
    let seen =
        |entry, phase| FlowFact::Observed { entry, at: now, phase, restarts: 0, tasks: TaskCounts::new(), changes: 0 };
    let ends = [JobEnd::Completed, JobEnd::Completed, JobEnd::Failed, JobEnd::Terminated, JobEnd::Refused];
    let end = ends[numbers.below(ends.len() as u64) as usize];
    match state.entries[at].stage {
        Stage::Waiting if program.entries[at].conditions > 0 && numbers.below(2) == 0 => {
            let condition = numbers.below(program.entries[at].conditions as u64) as u32;
            Some(FlowFact::ConditionMet { entry, condition, at: now })
        }
        Stage::Waiting | Stage::BackOff(_) => {
            let due = decide::wanted(program, state, Conditions::default(), now);
            due.get(numbers.below(due.len().max(1) as u64) as usize).cloned()
        }
        Stage::Wanted if numbers.below(4) > 0 => Some(made(entry)),
        Stage::Wanted => Some(decide::ended(program, state, at, JobEnd::Refused, String::new(), now)),
        Stage::Active if numbers.below(2) == 0 => {
            let phases = [JobPhase::Running, JobPhase::Restarting, JobPhase::Completed];
            Some(seen(entry, phases[numbers.below(3) as usize]))
        }
        Stage::Active => Some(decide::ended(program, state, at, end, String::new(), now)),
        Stage::Over(_) => None,
    }
}

#[test]
fn the_index_tells_what_a_full_pass_does_after_every_fact() {
    let (mut facts, mut over) = (0, 0);
    for seed in 1..=1500 {
        let mut numbers = Numbers(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15) | 1);
        let program = random_program(&mut numbers);
        let mut state = State::new(program.entries.len());
        let mut index = Index::new(&program, &state);
        let mut now = Time(0);
        for _ in 0..80 {
            now = Time(now.0 + numbers.below(800_000) as i64);
            let Some(fact) = random_fact(&mut numbers, &program, &state, now) else { continue };
            state.apply(&fact);
            let entry = State::entry_of(&fact).unwrap();
            index.update(&program, &state, entry);
            agrees(&program, &state, &index, now, seed);
            facts += 1;
        }
        over += usize::from(index.is_over(Conditions::default()));
    }
    assert!(facts > 20_000 && over > 500, "{facts} facts, {over} flows came to their end");
}

/// Runs a flow all of whose jobs are completed; returns how many looks at entries that took.
fn looks(flows: &[Value]) -> usize {
    let program = compiled(flows);
    let mut state = State::new(program.entries.len());
    let mut index = Index::new(&program, &state);
    let mut looks = 0;
    let now = Time(0);
    loop {
        let due = index.wanted(Conditions::default(), now);
        looks += due.len();
        if due.is_empty() {
            break;
        }
        for entry in due {
            let made = FlowFact::Made { entry, at: now, run: RunId(7), name: String::new(), uid: String::new() };
            let end = JobEnd::Completed;
            let ended = FlowFact::Ended { entry, at: now, end, message: String::new(), again: None };
            for fact in [FlowFact::Wanted { entry, at: now }, made, ended] {
                state.apply(&fact);
                looks += index.update(&program, &state, entry as usize);
            }
        }
    }
    assert!(index.is_over(Conditions::default()) && state.entries.iter().all(|entry| entry.is_completed()));
    looks
}

#[test]
fn a_flow_of_ten_thousand_entries_takes_linear_work() {
    let chain = |count: usize| -> Vec<Value> {
        let entry = |at: usize| match at {
            0 => json!({"name": "j0"}),
            at => json!({"name": format!("j{at}"), "dependsOn": {"targets": [format!("j{}", at - 1)]}}),
        };
        (0..count).map(entry).collect()
    };
    let fan = |count: usize| -> Vec<Value> {
        let middle = (1..count - 1).map(|at| json!({"name": format!("j{at}"), "dependsOn": {"targets": ["j0"]}}));
        let targets: Vec<String> = (1..count - 1).map(|at| format!("j{at}")).collect();
        let last = json!({"name": "last", "dependsOn": {"targets": targets}});
        std::iter::once(json!({"name": "j0"})).chain(middle).chain([last]).collect()
    };
    for shape in [&chain as &dyn Fn(usize) -> Vec<Value>, &fan] {
        let (small, large) = (looks(&shape(100)), looks(&shape(10_000)));
        assert!(large <= 101 * small, "{small} looks at a hundred entries, {large} at ten thousand");
        assert!(large <= 12 * 10_000, "{large} looks");
    }
}
