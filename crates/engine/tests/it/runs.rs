//! Several runs in one engine: they share the machine, and nothing else.

use std::collections::BTreeMap;

use octoflow_engine::{Command, Engine, Input, Outcome, Refusal, schedule::Capacity};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunFact, RunId, Time,
    argo::WorkflowFact,
    order::{Collected, End, Exit},
    submission::{Stored, Submission},
};

use crate::{
    play::{DAWN, ROOMY},
    text::manifest,
};

fn submit(engine: &mut Engine, run: u64, spec: &str) -> Outcome {
    engine.handle(Input::Submit { run: RunId(run), submission: submission(run, spec) }, DAWN)
}

fn submission(run: u64, spec: &str) -> Box<Submission> {
    let mut manifest = manifest(spec);
    manifest["metadata"]["name"] = format!("w{run}").into();
    Box::new(Submission {
        name: format!("w{run}"),
        namespace: "default".into(),
        uid: run.to_string(),
        at: DAWN,
        manifest,
        stored: Stored::default(),
        before: None,
        parent: None,
        known: Default::default(),
    })
}

fn end(engine: &mut Engine, attempt: AttemptId) -> Outcome {
    let end = End {
        exit: Exit::Code(0),
        started: None,
        collected: Collected::default(),
        log_truncated: false,
        log_bytes: 0,
        members: Vec::new(),
    };
    engine.handle(Input::Report(Report::Ended { attempt, at: DAWN, end: Box::new(end) }), DAWN)
}

fn starts(outcome: &Outcome) -> Vec<AttemptId> {
    let started = |order: &Order| match order {
        Order::Start { attempt, .. } => Some(*attempt),
        _ => None,
    };
    outcome.orders.iter().filter_map(started).collect()
}

const LOOP: &str = "templates: [{name: main, steps: [[{name: a, template: ok, withItems: [1, 2]}]]}]";

#[test]
fn higher_priority_goes_first_whoever_came_first() {
    let mut engine = Engine::new(Capacity { slots: 1, ..ROOMY });
    let first = starts(&submit(&mut engine, 1, LOOP))[0];
    assert!(starts(&submit(&mut engine, 2, &format!("{{priority: 5, {}}}", LOOP.trim_start()))).is_empty());
    let mut order = vec![first];
    while let Some(attempt) = starts(&end(&mut engine, order[order.len() - 1])).first() {
        order.push(*attempt);
    }
    let runs: Vec<u64> = order.iter().map(|attempt| attempt.run.0).collect();
    assert_eq!(runs, [1, 2, 2, 1]);
    assert!(
        [1, 2].iter().all(|run| engine
            .run_of::<octoflow_engine::argo::Run>(RunId(*run))
            .is_some_and(|run| run.state.finished()))
    );
}

/// The facts and the orders of an input, without the first fact.
fn decided(outcome: Outcome) -> (Vec<Fact>, Vec<Order>) {
    let facts = outcome.decided.into_iter().flat_map(|decided| decided.facts);
    (facts.filter(|fact| !matches!(fact, Fact::Run(RunFact::Submitted(_)))).collect(), outcome.orders)
}

#[test]
fn a_run_that_was_only_accepted_begins_later_as_it_would_have_at_once() {
    let (run, now) = (RunId(1), DAWN);
    let at_once = decided(submit(&mut Engine::new(ROOMY), 1, LOOP));
    assert!(!at_once.0.is_empty() && !at_once.1.is_empty());
    let accept = || Input::Accept { run, submission: submission(1, LOOP), program: None };

    let mut engine = Engine::new(ROOMY);
    let accepted = engine.handle(accept(), now);
    let [octoflow_engine::Decided { facts: journal, .. }] = accepted.decided.as_slice() else { panic!("{accepted:?}") };
    assert!(matches!(journal.as_slice(), [Fact::Run(RunFact::Submitted(_))]) && accepted.orders.is_empty());
    // Others go on meanwhile, and it waits.
    assert_eq!(decided(engine.handle(Input::Tick, now)), (vec![], vec![]));
    assert_eq!(decided(engine.handle(Input::Begin { run }, now)), at_once);
    assert_eq!(decided(engine.handle(Input::Begin { run }, now)), (vec![], vec![]), "a run begins once");

    // A crash before it began.
    let mut engine = Engine::new(ROOMY);
    engine.restore(run, journal.clone()).unwrap();
    assert_eq!(decided(engine.take_up(run, now).1), at_once);
}

#[test]
fn a_command_finds_a_run_that_was_only_accepted_begun() {
    let run = RunId(1);
    let told = |first: Input| {
        let mut engine = Engine::new(ROOMY);
        let mut facts = decided(engine.handle(first, DAWN)).0;
        facts.extend(decided(engine.handle(Input::Command { run, command: Command::Stop }, DAWN)).0);
        facts
    };
    let at_once = told(Input::Submit { run, submission: submission(1, LOOP) });
    assert!(matches!(at_once.first(), Some(Fact::Workflow(WorkflowFact::Began { .. }))), "{at_once:?}");
    // The scheduler may have given room in between; what the run itself decides comes first, and in the same order.
    let later = told(Input::Accept { run, submission: submission(1, LOOP), program: None });
    assert!(matches!(later.first(), Some(Fact::Workflow(WorkflowFact::Began { .. }))), "{later:?}");
    assert!(
        later.iter().all(|fact| !matches!(fact, Fact::Workflow(WorkflowFact::Launched { .. }))),
        "what is stopped starts nothing: {later:?}"
    );
}

#[test]
fn a_forgotten_run_leaves_nothing_behind() {
    let mut engine = Engine::new(Capacity { slots: 1, ..ROOMY });
    let spec = "{activeDeadlineSeconds: 100, templates: [{name: main, container: {image: i, command: [c]}}]}";
    let attempt = starts(&submit(&mut engine, 1, spec))[0];
    assert!(engine.wake_at().is_some());
    end(&mut engine, attempt);
    assert_eq!(engine.wake_at(), None, "nothing is due when nothing is open");
    engine.forget(RunId(1));
    assert_eq!((engine.scheduler().running(), engine.scheduler().waiting()), (0, 0));
    let late = end(&mut engine, attempt);
    assert_eq!(late.orders, [Order::Forget { attempt }], "the runtime may clean up");
    let refused = engine.handle(Input::Command { run: RunId(1), command: Command::Stop }, Time(0)).refusal;
    assert_eq!(refused, Some(Refusal::UnknownRun(RunId(1))));
}

#[test]
fn stopping_one_run_gives_its_places_to_the_other() {
    let mut engine = Engine::new(Capacity { slots: 1, ..ROOMY });
    let first = starts(&submit(&mut engine, 1, LOOP))[0];
    submit(&mut engine, 2, LOOP);
    engine.handle(Input::Command { run: RunId(1), command: Command::Stop }, DAWN);
    let next = starts(&end(&mut engine, first));
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].run, RunId(2));
    assert!(engine.run_of::<octoflow_engine::argo::Run>(RunId(1)).is_some_and(|run| run.state.finished()));
}

#[test]
fn a_manifest_that_cannot_be_read_is_refused_and_leaves_nothing() {
    let mut engine = Engine::new(ROOMY);
    let outcome =
        submit(&mut engine, 1, "templates: [{name: main, dag: {tasks: [{name: A, template: ok, depends: B}]}}]");
    assert!(
        matches!(&outcome.refusal, Some(Refusal::Invalid(why)) if why.contains("unknown task `B`")),
        "{:?}",
        outcome.refusal
    );
    assert!(outcome.decided.is_empty() && engine.run_of::<octoflow_engine::argo::Run>(RunId(1)).is_none());
}

#[test]
fn after_a_restart_nobody_gets_the_place_of_a_task_that_still_runs() {
    let capacity = Capacity { slots: 1, ..ROOMY };
    let mut engine = Engine::new(capacity);
    let mut journals: BTreeMap<RunId, Vec<Fact>> = BTreeMap::new();
    let mut keep = |outcome: &Outcome| {
        for octoflow_engine::Decided { run, facts, .. } in &outcome.decided {
            journals.entry(*run).or_default().extend(facts.iter().cloned());
        }
    };
    let outcome = submit(&mut engine, 1, LOOP);
    let first = starts(&outcome)[0];
    keep(&outcome);
    keep(&submit(&mut engine, 2, &format!("{{priority: 5, {}}}", LOOP.trim_start())));
    let outcome = end(&mut engine, first);
    let running = starts(&outcome)[0];
    keep(&outcome);
    assert_eq!(running.run, RunId(2), "the second run has the one place, and the first waits for it");

    let read_back = || {
        let mut engine = Engine::new(capacity);
        for (run, facts) in &journals {
            engine.restore(*run, facts.iter().cloned()).unwrap();
        }
        engine
    };
    let mut apart = read_back();
    let outcomes = [1, 2].map(|run| apart.take_up(RunId(run), DAWN).1);
    assert_eq!(outcomes.each_ref().map(|outcome| starts(outcome).len()), [0, 0]);
    assert_eq!((apart.scheduler().running(), apart.scheduler().waiting()), (1, 2));

    let mut together = read_back();
    let (believed, outcome) = together.take_up_all(&[RunId(1), RunId(2)], DAWN);
    assert_eq!(believed.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [running]);
    assert_eq!(starts(&outcome), []);
    let next = starts(&end(&mut together, running));
    assert_eq!(next.iter().map(|attempt| attempt.run).collect::<Vec<_>>(), [RunId(2)], "priority holds as before");
}
