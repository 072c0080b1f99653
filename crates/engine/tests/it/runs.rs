//! Several runs in one engine: they share the machine, and nothing else.

use std::collections::BTreeMap;

use octoflow_engine::{Capacity, Command, Engine, Input, Outcome, Refusal};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunFact, RunId, Time,
    argo::WorkflowFact,
    order::{Collected, End, Exit},
    submission::{Stored, Submission},
};

use crate::{
    inputs,
    play::{DAWN, ROOMY},
    text::manifest,
};

fn submit(engine: &mut Engine, run: u64, spec: &str) -> Outcome {
    inputs::submit(engine, RunId(run), submission(run, spec), DAWN)
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
        previous: None,
        parent: None,
        ordered_by: None,
        context: Default::default(),
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
fn a_run_that_was_only_submitted_begins_later_as_it_would_have_at_once() {
    let (run, now) = (RunId(1), DAWN);
    let at_once = decided(submit(&mut Engine::new(ROOMY), 1, LOOP));
    assert!(!at_once.0.is_empty() && !at_once.1.is_empty());
    let submit = || Input::Submit { run, submission: submission(1, LOOP), program: None };

    let mut engine = Engine::new(ROOMY);
    let submitted = engine.handle(submit(), now);
    let [octoflow_engine::Decided { facts: journal, .. }] = submitted.decided.as_slice() else {
        panic!("{submitted:?}")
    };
    assert!(matches!(journal.as_slice(), [Fact::Run(RunFact::Submitted(_))]) && submitted.orders.is_empty());
    // Others go on meanwhile, and it waits.
    assert_eq!(decided(engine.handle(Input::Tick, now)), (vec![], vec![]));
    assert_eq!(decided(engine.handle(Input::Begin { run }, now)), at_once);
    assert_eq!(decided(engine.handle(Input::Begin { run }, now)), (vec![], vec![]), "a run begins once");

    // A crash before it began.
    let mut engine = Engine::new(ROOMY);
    inputs::restore(&mut engine, run, journal.clone());
    assert_eq!(decided(inputs::go_on(&mut engine, &[run], now).1), at_once);
}

#[test]
fn a_command_finds_a_run_that_was_only_submitted_begun() {
    let run = RunId(1);
    let told = |begins: bool| {
        let mut engine = Engine::new(ROOMY);
        let first = Input::Submit { run, submission: submission(1, LOOP), program: None };
        let mut facts = decided(engine.handle(first, DAWN)).0;
        if begins {
            facts.extend(decided(engine.handle(Input::Begin { run }, DAWN)).0);
        }
        facts.extend(decided(engine.handle(Input::Command { run, command: Command::Stop }, DAWN)).0);
        facts
    };
    let at_once = told(true);
    assert!(matches!(at_once.first(), Some(Fact::Workflow(WorkflowFact::Began { .. }))), "{at_once:?}");
    // The scheduler may have given room in between; what the run itself decides comes first, and in the same order.
    let later = told(false);
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
    engine.handle(Input::Release { run: RunId(1) }, DAWN);
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
fn ending_a_run_ends_those_that_belong_to_it_with_the_same_input() {
    let mut engine = Engine::new(ROOMY);
    submit(&mut engine, 1, LOOP);
    // The second and the fourth belong to the one above them; the third was made by the first and belongs to nobody.
    for (run, parent, owner) in [(2, 1, Some("1")), (3, 1, None), (4, 2, Some("2")), (5, 4, Some("other"))] {
        let mut submission = submission(run, LOOP);
        submission.parent = Some(RunId(parent));
        if let Some(uid) = owner {
            submission.manifest["metadata"]["ownerReferences"] = serde_json::json!([{"uid": uid}]);
        }
        inputs::submit(&mut engine, RunId(run), submission, DAWN);
    }
    let told = |outcome: &Outcome| -> Vec<u64> {
        let ends = |fact: &Fact| matches!(fact, Fact::Run(RunFact::ShuttingDown { .. }));
        outcome.decided.iter().filter(|decided| decided.facts.iter().any(ends)).map(|decided| decided.run.0).collect()
    };
    let stopped = engine.handle(Input::Command { run: RunId(1), command: Command::Stop }, DAWN);
    assert_eq!((told(&stopped), stopped.refusal), (vec![1, 2, 4], None));
    // Whoever ends it harder ends all of them harder; a restart knows them as well.
    let mut restored = Engine::new(ROOMY);
    for run in [1, 2, 4] {
        let mut facts = vec![Fact::Run(RunFact::Submitted(submission(run, LOOP)))];
        if let Fact::Run(RunFact::Submitted(submission)) = &mut facts[0]
            && run > 1
        {
            submission.parent = Some(RunId(run / 2));
            submission.manifest["metadata"]["ownerReferences"] = serde_json::json!([{"uid": (run / 2).to_string()}]);
        }
        inputs::restore(&mut restored, RunId(run), facts);
    }
    let ended = restored.handle(Input::Command { run: RunId(1), command: Command::Terminate }, DAWN);
    assert_eq!(told(&ended), [1, 2, 4]);
    // One that is over and kept elsewhere is nobody's child any more.
    restored.handle(Input::Release { run: RunId(2) }, DAWN);
    let ended = restored.handle(Input::Command { run: RunId(1), command: Command::Stop }, DAWN);
    assert!(told(&ended).is_empty());
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
            inputs::restore(&mut engine, *run, facts.iter().cloned());
        }
        engine
    };
    let mut apart = read_back();
    let outcomes = [1, 2].map(|run| inputs::go_on(&mut apart, &[RunId(run)], DAWN).1);
    assert_eq!(outcomes.each_ref().map(|outcome| starts(outcome).len()), [0, 0]);
    assert_eq!((apart.scheduler().running(), apart.scheduler().waiting()), (1, 2));

    let mut together = read_back();
    let (believed, outcome) = inputs::go_on(&mut together, &[RunId(1), RunId(2)], DAWN);
    assert_eq!(believed.iter().map(|(attempt, _)| *attempt).collect::<Vec<_>>(), [running]);
    assert_eq!(starts(&outcome), []);
    let next = starts(&end(&mut together, running));
    assert_eq!(next.iter().map(|attempt| attempt.run).collect::<Vec<_>>(), [RunId(2)], "priority holds as before");
}
