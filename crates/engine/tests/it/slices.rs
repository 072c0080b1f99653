//! Decisions in slices: one input does bounded work, what is left follows, and what comes of it is the same. And budgets:
//! no expression, however often it stands there, keeps a run from its end.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use octoflow_engine::{Capacity, Command, Engine, Input, Outcome, Setup, engine::fold};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Time,
    order::{Collected, End, Exit},
    submission::{Stored, Submission},
};
use proptest::prelude::*;

use crate::{
    inputs,
    lives::Lives,
    play::{DAWN, ROOMY},
    text::manifest,
};

const OTHER: RunId = RunId(2);
const RUN: RunId = RunId(1);

/// Loops in steps and in a DAG, conditions, a limit, and tasks that follow loops.
const MIXED: &str = "
parallelism: 7
templates:
- name: main
  steps:
  - - {name: a, template: ok, withSequence: {count: 40}, when: \"{{=asInt(item) % 3 != 0}}\"}
    - {name: b, template: graph, withItems: [1, 2, 3]}
  - - {name: c, template: ok, withParam: '[1, 2, 3, 4, 5]'}
- name: graph
  dag:
    tasks:
    - {name: one, template: ok, withSequence: {count: 30}}
    - {name: two, template: ok, depends: one}
    - {name: three, template: pause, depends: two, withSequence: {count: 10}}
- {name: pause, suspend: {duration: '1'}}";

/// The manifest that once stopped a server for good.
const HOSTILE: &str = "
templates:
- name: main
  steps:
  - - {name: a, template: ok, withSequence: {count: 100000}, when: \"{{=len(map(1..3000, map(1..3000, map(1..3000, #)))) == 0}}\"}";

struct Stage {
    pub(crate) lives: Lives,
    engine: Engine,
    now: Time,
    journal: BTreeMap<RunId, Vec<Fact>>,
    running: Vec<AttemptId>,
    /// The most facts that one input ever decided.
    most: usize,
}

impl Stage {
    fn new(slice: u64) -> Self {
        Self::of(slice, ROOMY)
    }

    fn of(slice: u64, capacity: Capacity) -> Self {
        let engine = Engine::new(Setup { slice, ..capacity.into() });
        Self { lives: Lives::default(), engine, now: DAWN, journal: BTreeMap::new(), running: Vec::new(), most: 0 }
    }

    fn submit(&mut self, run: RunId, spec: &str) {
        let mut manifest = manifest(spec);
        manifest["metadata"]["name"] = format!("w{}", run.0).into();
        let submission = Box::new(Submission {
            name: format!("w{}", run.0),
            namespace: "default".into(),
            uid: run.to_string(),
            at: DAWN,
            manifest,
            stored: Stored::default(),
            previous: None,
            parent: None,
            ordered_by: None,
            context: Default::default(),
        });
        let outcome = inputs::submit(&mut self.engine, run, submission, self.now);
        assert_eq!(self.take(outcome), None);
    }

    fn input(&mut self, input: Input) -> Option<octoflow_engine::Refusal> {
        let outcome = self.engine.handle(input, self.now);
        self.take(outcome)
    }

    fn take(&mut self, outcome: Outcome) -> Option<octoflow_engine::Refusal> {
        self.most = self.most.max(outcome.decided.iter().map(|decided| decided.facts.len()).sum());
        outcome.decided.iter().for_each(|decided| self.lives.take(decided));
        for octoflow_engine::Decided { run, facts, .. } in outcome.decided {
            self.journal.entry(run).or_default().extend(facts);
        }
        for order in outcome.orders {
            match order {
                Order::Start { attempt, .. } => self.running.push(attempt),
                Order::Stop { .. } | Order::Kill { .. } | Order::Forget { .. } => {}
            }
        }
        outcome.refusal
    }

    fn end(&mut self, attempt: AttemptId) {
        let end = End {
            exit: Exit::Code(0),
            started: None,
            collected: Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        self.input(Input::Report(Report::Ended { attempt, at: self.now, end: Box::new(end) }));
    }

    /// One thing that happens next; false when nothing does.
    fn step(&mut self, choice: u8) -> bool {
        if self.engine.has_more() && !choice.is_multiple_of(3) {
            self.input(Input::Tick);
        } else if !self.running.is_empty() {
            let attempt = self.running.remove(usize::from(choice) % self.running.len());
            self.end(attempt);
        } else if let Some(at) = self.engine.wake_at() {
            self.now = at.max(self.now);
            self.input(Input::Tick);
        } else {
            return false;
        }
        true
    }

    /// Drops everything but the journal.
    fn restart(&mut self, slice: u64) {
        self.engine = Engine::new(Setup { slice, ..ROOMY.into() });
        inputs::restore(&mut self.engine, RUN, self.journal[&RUN].clone());
        let (believed, outcome) = inputs::go_on(&mut self.engine, &[RUN], self.now);
        self.running = believed.into_iter().map(|(attempt, _)| attempt).collect();
        self.take(outcome);
    }

    fn agrees(&self) {
        if let Some(live) = self.engine.run_of::<octoflow_engine::argo::Run>(RUN) {
            let folded = fold(RUN, self.journal[&RUN].iter().cloned()).expect("a journal of ours folds");
            assert_eq!(
                live.state,
                folded.of::<octoflow_engine::argo::Run>().expect("the run is a workflow").state,
                "the fold of the journal is the live state"
            );
        }
    }

    /// By name, what every node came to, and the run itself.
    fn outcome(&self, run: RunId) -> (String, BTreeMap<String, String>) {
        let folded = fold(run, self.journal[&run].iter().cloned()).expect("a journal of ours folds");
        let state = &folded.of::<octoflow_engine::argo::Run>().expect("the run is a workflow").state;
        let nodes = state.nodes.iter().map(|node| (node.name.to_string(), node.phase.word().to_owned()));
        (state.phase.word().to_owned(), nodes.collect())
    }

    fn messages(&self, run: RunId) -> Vec<String> {
        let folded = fold(run, self.journal[&run].iter().cloned()).expect("a journal of ours folds");
        let nodes = &folded.of::<octoflow_engine::argo::Run>().expect("the run is a workflow").state.nodes;
        nodes.iter().filter_map(|node| node.message.as_deref().map(str::to_owned)).collect()
    }

    fn finished(&self, run: RunId) -> bool {
        self.engine.run_of::<octoflow_engine::argo::Run>(run).is_none_or(|run| run.state.finished())
    }
}

fn unsliced() -> (String, BTreeMap<String, String>) {
    let mut stage = Stage::new(u64::MAX);
    stage.submit(RUN, MIXED);
    for choice in 0.. {
        if !stage.step(choice as u8) {
            break;
        }
    }
    stage.outcome(RUN)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn slices_of_any_size_come_to_the_same_end_also_with_restarts(
        slice in 1_u64..400,
        choices in prop::collection::vec((any::<u8>(), 0_u8..60), 40),
    ) {
        let mut stage = Stage::new(slice);
        stage.submit(RUN, MIXED);
        let mut choices = choices.into_iter().cycle();
        let mut steps = 0;
        while !stage.finished(RUN) {
            let (choice, restart) = choices.next().unwrap();
            prop_assert!(stage.step(choice) , "nothing is left to do and the run is not over");
            steps += 1;
            if steps % 16 == 0 {
                stage.agrees();
            }
            if restart == 0 && steps < 2_000 {
                stage.restart(slice);
                stage.agrees();
            }
            prop_assert!(steps < 100_000, "the run does not end");
        }
        prop_assert_eq!(stage.outcome(RUN), unsliced());
    }
}

#[test]
fn one_input_decides_only_so_much_and_others_go_on_in_between() {
    let mut stage = Stage::new(1_000);
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: pause, withSequence: {count: 20000}}]]
- {name: pause, suspend: {}}";
    stage.submit(RUN, spec);
    assert!(stage.engine.has_more());
    assert!(stage.engine.wake_at().is_some_and(|at| at <= stage.now), "it is called again at once");
    stage.submit(OTHER, "templates: [{name: main, steps: [[{name: a, template: ok}]]}]");
    assert_eq!(stage.running.len(), 1, "the other run starts at once");
    let attempt = stage.running[0];
    stage.end(attempt);
    assert!(stage.finished(OTHER), "and ends before the first has unfolded");
    assert!(stage.engine.has_more());
    // So is a command to the run itself.
    assert_eq!(stage.input(Input::Command { run: RUN, command: Command::Terminate }), None);
    let made = stage.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap().state.nodes.len();
    assert!(made < 1_000, "{made}");
    while stage.engine.has_more() {
        stage.input(Input::Tick);
    }
    assert!(stage.finished(RUN));
    assert!(stage.most < 300, "{} facts came of one input", stage.most);
    let unfolded = stage.engine.run_of::<octoflow_engine::argo::Run>(RUN).unwrap().state.nodes.len();
    assert!(unfolded < 1_000, "{unfolded}: nothing was begun after it was to end");
}

#[test]
fn a_run_of_very_many_open_nodes_is_ended_in_slices() {
    let spec = "
onExit: bye
templates:
- name: main
  steps: [[{name: a, template: many}, {name: b, template: many}], [{name: c, template: ok}]]
- name: many
  dag: {tasks: [{name: one, template: hold, withSequence: {count: 3000}}, {name: two, template: ok, depends: one}]}
- {name: hold, suspend: {}}
- {name: bye, suspend: {duration: '1'}}";
    let ended = |slice: u64, restart: bool| {
        let mut stage = Stage::new(slice);
        stage.submit(RUN, spec);
        while stage.engine.has_more() {
            stage.input(Input::Tick);
        }
        stage.most = 0;
        assert_eq!(stage.input(Input::Command { run: RUN, command: Command::Terminate }), None);
        let most = stage.most;
        for step in 0.. {
            if restart && step == 5 {
                stage.restart(slice);
                stage.agrees();
            }
            if !stage.step(1) {
                break;
            }
        }
        assert!(stage.finished(RUN));
        (most, stage.outcome(RUN))
    };
    let (all, outcome) = ended(u64::MAX, false);
    assert!(all > 6_000, "{all}");
    for restart in [false, true] {
        let (most, sliced) = ended(1_000, restart);
        assert!(most < 300, "{most} facts came of one input");
        assert!(sliced == outcome, "slices change when something is decided and never what");
    }
}

#[test]
fn no_fact_grows_with_the_loop_before_or_below_it() {
    let mut stage = Stage::new(1_000);
    let spec = "
templates:
- name: main
  dag:
    tasks:
    - {name: many, template: none, when: 1 == 2, withSequence: {count: 3000}}
    - {name: each, template: group, depends: many, withSequence: {count: 300}}
    - {name: last, template: group, depends: each}
- name: group
  steps:
  - - {name: a, template: none, when: 1 == 2, withSequence: {count: 9}}
  - - {name: b, template: none, when: 1 == 2}
- {name: none, suspend: {}}";
    stage.submit(RUN, spec);
    while stage.step(1) {}
    assert!(stage.finished(RUN));
    stage.agrees();
    let facts = stage.journal[&RUN].iter().skip(1);
    let longest = facts.map(|fact| serde_json::to_string(fact).unwrap()).max_by_key(String::len).unwrap();
    assert!(longest.len() < 500, "{longest}");
    let nodes = stage.engine.run(RUN).unwrap().object()["status"]["nodes"].as_object().unwrap().clone();
    let drawn = |name: &str, field: &str| {
        let node = nodes.values().find(|node| node["name"] == name).unwrap();
        node[field].as_array().map_or(0, Vec::len)
    };
    assert_eq!(drawn("w1.many(2999:2999)", "children"), 1, "what follows hangs off every item");
    assert_eq!(drawn("w1.each(0:0)", "outboundNodes"), 1);
    assert_eq!(drawn("w1.each(0:0)[0].a(0:0)", "children"), 1);
}

/// A task, and beside it a loop that begins a second later.
const LATE_LOOP: &str = "
templates:
- name: main
  dag:
    tasks:
    - {name: work, template: ok, withItems: [1, 2]}
    - {name: wait, template: pause}
    - {name: many, template: hold, depends: wait, withSequence: {count: 20000}}
- {name: pause, suspend: {duration: '1'}}
- {name: hold, suspend: {}}";

#[test]
fn a_task_that_ends_while_its_run_unfolds_gives_its_room_to_others() {
    let mut stage = Stage::of(1_000, Capacity { slots: 1, ..ROOMY });
    stage.submit(RUN, LATE_LOOP);
    stage.submit(OTHER, "templates: [{name: main, steps: [[{name: a, template: ok}]]}]");
    let own = stage.running.pop().unwrap();
    assert_eq!((own.run, stage.running.len()), (RUN, 0), "there is room for one");
    stage.now = stage.now.saturating_add(Duration::from_secs(1));
    stage.input(Input::Tick);
    assert!(stage.engine.is_unsettled(RUN));
    stage.end(own);
    assert!(stage.engine.is_unsettled(RUN), "it has not heard of it");
    let others: Vec<RunId> = stage.running.iter().map(|attempt| attempt.run).collect();
    assert_eq!(others, [OTHER], "the other run does not wait for it");
    // Room that the other one frees is not given to a run that cannot use it yet.
    let other = stage.running.pop().unwrap();
    stage.end(other);
    assert!(stage.finished(OTHER) && stage.engine.is_unsettled(RUN));
    assert_eq!(stage.engine.scheduler().running(), 0);
    stage.agrees();
    while stage.engine.has_more() {
        stage.input(Input::Tick);
    }
    let second = stage.running.pop().unwrap();
    assert_eq!(second.run, RUN, "once it has unfolded it goes on with its next task");
    stage.end(own);
    assert_eq!(stage.engine.scheduler().running(), 1, "what is said again frees nothing");
    stage.agrees();
}

#[test]
fn requests_of_one_loop_are_sent_in_slices_too() {
    let mut stage = Stage::new(1_000);
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: ask, withSequence: {count: 2000}}]]
- {name: ask, http: {url: 'http://example.com/'}}";
    stage.submit(RUN, spec);
    while stage.engine.has_more() {
        stage.input(Input::Tick);
    }
    assert_eq!(stage.running.len(), 2_000);
    assert!(stage.most < 400, "{} facts came of one input", stage.most);
}

#[test]
fn the_most_expensive_loop_ends_with_errors_that_name_the_budget() {
    let mut stage = Stage::new(5_000);
    stage.submit(RUN, HOSTILE);
    let mut slices = 0;
    while !stage.finished(RUN) {
        slices += 1;
        assert!(stage.engine.has_more(), "nothing is left to do and the run is not over");
        stage.input(Input::Tick);
        if slices == 5 {
            stage.restart(5_000);
        }
    }
    let (phase, nodes) = stage.outcome(RUN);
    assert!(matches!(phase.as_str(), "Error" | "Failed"), "{phase}");
    assert_eq!(nodes.len(), 100_002);
    let told = stage.messages(RUN);
    let of = |words: &str| told.iter().filter(|message| message.contains(words)).count();
    assert!(of("one evaluation may take") >= 1);
    assert!(of("budget") > 99_000, "the run has one budget for all");
    assert!(of("map(1..3000") > 99_000, "each names its expression");
}

#[test]
fn braces_that_never_close_take_no_longer_than_other_text() {
    let (began, mut stage) = (Instant::now(), Stage::new(1_000));
    let texts = ["{{=".repeat(200_000), "{{".repeat(300_000), "{{".repeat(300_000) + "}}"];
    for (run, text) in (1..).zip(texts) {
        let spec = format!("templates: [{{name: main, container: {{image: i, command: [c], args: ['{text}']}}}}]");
        stage.submit(RunId(run), &spec);
        assert_eq!(stage.running.len() as u64, run, "it is a text like any other, and its task is started");
    }
    // Seconds without optimisation; minutes when each opening looked through the rest of the text.
    assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
}

#[test]
fn timers_that_are_due_at_once_are_heard_in_slices() {
    let mut stage = Stage::new(1_000);
    let spec = "
templates:
- name: main
  steps: [[{name: a, template: pause, withSequence: {count: 3000}}]]
- {name: pause, suspend: {duration: '60'}}";
    stage.submit(RUN, spec);
    while stage.engine.has_more() {
        stage.input(Input::Tick);
    }
    stage.most = 0;
    stage.now = stage.now.saturating_add(Duration::from_secs(61));
    while !stage.finished(RUN) {
        assert!(stage.engine.wake_at().is_some_and(|at| at <= stage.now));
        stage.input(Input::Tick);
    }
    assert!(stage.most < 600, "{} facts came of one input", stage.most);
}
