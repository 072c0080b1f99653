//! Runs that resource templates order: the parent hears of its child in the input in which something happens to it, also
//! after a restart, and a run is created once.

use std::collections::BTreeMap;

use octoflow_engine::{Capacity, Command, Engine, Input, Outcome, Refusal, admit::admit, engine::fold};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunFact, RunId, Time,
    argo::WorkflowFact,
    order::{Collected, End, Exit},
    request::Request,
    submission::{Submission, SubmitContext},
};
use serde_json::{Value, json};

use crate::play::{DAWN, Everything, ROOMY};

const PARENT: RunId = RunId(1);
const CHILD: RunId = RunId(2);

/// An engine with its journals, and the orders that nobody has carried out yet.
struct World {
    engine: Engine,
    journals: BTreeMap<RunId, Vec<Fact>>,
    orders: Vec<Order>,
    now: Time,
}

impl World {
    /// A parent whose only step creates a run with these fields of its resource template.
    fn new(fields: Value) -> Self {
        let mut resource = json!({"action": "create", "manifest": child_manifest().to_string()});
        extend(&mut resource, fields);
        let template = json!({"name": "main", "resource": resource});
        Self::of(&json!({"entrypoint": "main", "templates": [template]}))
    }

    fn of(spec: &Value) -> Self {
        Self::with_capacity(spec, ROOMY)
    }

    fn with_capacity(spec: &Value, capacity: Capacity) -> Self {
        let mut world =
            Self { engine: Engine::new(capacity), journals: BTreeMap::new(), orders: Vec::new(), now: DAWN };
        let manifest =
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "w"}, "spec": spec});
        assert_eq!(world.submit(PARENT, "w", manifest, None).refusal, None);
        world.input(Input::Begin { run: PARENT });
        world
    }

    fn submit(&mut self, run: RunId, name: &str, manifest: Value, ordered_by: Option<AttemptId>) -> Outcome {
        let admitted = admit(&manifest, &Everything::default()).expect("the manifest is admitted");
        let submission = Box::new(Submission {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            uid: format!("u-{run}"),
            at: self.now,
            manifest: admitted.manifest,
            stored: admitted.stored,
            parent: ordered_by.map(|attempt| attempt.run),
            ordered_by,
            context: SubmitContext::default(),
            previous: None,
        });
        self.input(Input::Submit { run, submission, program: None })
    }

    fn input(&mut self, input: Input) -> Outcome {
        let outcome = self.engine.handle(input, self.now);
        for decided in &outcome.decided {
            self.journals.entry(decided.run).or_default().extend(decided.facts.iter().cloned());
        }
        self.orders.extend(outcome.orders.iter().cloned());
        for (run, facts) in &self.journals {
            if let Some(live) = self.engine.run_of::<octoflow_engine::argo::Run>(*run) {
                let folded = fold(*run, facts.iter().cloned()).expect("the journal folds");
                let folded = folded.into_inner::<octoflow_engine::argo::Run>().expect("it is a workflow");
                assert!(folded.state == live.state, "the fold of run {run} differs from its state");
            }
        }
        outcome
    }

    /// The attempt of a run that was ordered to start last, and what it asks for.
    fn ordered(&mut self, run: RunId) -> (AttemptId, Option<Request>) {
        let place =
            self.orders.iter().rposition(|order| matches!(order, Order::Start { attempt, .. } if attempt.run == run));
        match self.orders.remove(place.expect("a task of the run was ordered")) {
            Order::Start { attempt, task } => (attempt, task.call.map(|call| *call)),
            other => unreachable!("{other:?}"),
        }
    }

    /// Creates the run that the parent's step has ordered, and begins it.
    fn create_child(&mut self) -> (AttemptId, Outcome) {
        let (attempt, request) = self.ordered(PARENT);
        assert!(matches!(request, Some(Request::Object(_))));
        let outcome = self.submit(CHILD, "c", child_manifest(), Some(attempt));
        assert_eq!(outcome.refusal, None);
        (attempt, outcome)
    }

    /// Ends the task of a run that was ordered last.
    fn end_task(&mut self, run: RunId, code: i32) -> Outcome {
        let (attempt, _) = self.ordered(run);
        let end = End {
            exit: Exit::Code(code),
            started: None,
            collected: Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        };
        self.input(Input::Report(Report::Ended { attempt, at: self.now, end: Box::new(end) }))
    }

    fn phase(&self, run: RunId) -> &'static str {
        self.engine.run(run).expect("the run is in the engine").phase()
    }

    fn message(&self) -> String {
        self.engine.run(PARENT).expect("the parent is kept").message().to_owned()
    }

    /// Loses the engine, and restores these runs from their journals.
    fn restart(&mut self, runs: &[RunId]) -> Vec<(AttemptId, Option<Request>)> {
        self.engine = Engine::new(ROOMY);
        self.orders.clear();
        for run in runs {
            let folded = fold(*run, self.journals[run].iter().cloned()).expect("the journal folds");
            self.engine.handle(Input::Restore(Box::new(folded)), self.now);
        }
        let outcome = self.input(Input::Continue { runs: runs.to_vec() });
        outcome.assumed_running.into_iter().map(|(attempt, task)| (attempt, task.call.map(|call| *call))).collect()
    }
}

fn extend(object: &mut Value, more: Value) {
    let (Value::Object(object), Value::Object(more)) = (object, more) else { panic!("both are objects") };
    object.extend(more);
}

fn child_manifest() -> Value {
    let step = |name: &str| json!([{"name": name, "template": "true"}]);
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "c"},
        "spec": {"entrypoint": "main", "templates": [
            {"name": "main", "steps": [step("one"), step("two")]},
            {"name": "true", "container": {"image": "busybox", "command": ["true"]}},
        ]},
    })
}

fn phases() -> Value {
    json!({"successCondition": "status.phase == Succeeded", "failureCondition": "status.phase in (Failed, Error)"})
}

/// The runs of an outcome whose facts become durable together.
fn runs_of(outcome: &Outcome) -> Vec<RunId> {
    outcome.decided.iter().map(|decided| decided.run).collect()
}

#[test]
fn the_parent_notes_its_child_in_the_commit_of_the_childs_first_fact() {
    let mut world = World::new(phases());
    let (_, outcome) = world.create_child();
    assert_eq!(runs_of(&outcome), [CHILD, PARENT]);
    assert!(matches!(outcome.decided[0].facts[..], [Fact::Run(RunFact::Submitted(_))]));
    let noted = &outcome.decided[1].facts;
    assert!(
        matches!(&noted[..], [Fact::Workflow(WorkflowFact::ChildCreated { run: CHILD, name, uid, .. })] if name == "c" && uid == "u-2"),
        "{noted:?}"
    );
}

#[test]
fn the_parent_ends_in_the_input_in_which_its_child_does() {
    for (code, phase) in [(0, "Succeeded"), (1, "Failed")] {
        let mut world = World::new(phases());
        world.create_child();
        world.input(Input::Begin { run: CHILD });
        if code == 0 {
            world.end_task(CHILD, 0);
            assert_eq!(world.phase(PARENT), "Running");
        }
        let last = world.end_task(CHILD, code);
        assert_eq!((world.phase(CHILD), world.phase(PARENT)), (phase, phase));
        let ended = |run: RunId| last.decided.iter().any(|decided| decided.run == run && decided.change.ended);
        assert!(ended(CHILD) && ended(PARENT), "both ends are in one commit");
    }
}

#[test]
fn a_child_that_nobody_waits_for_is_enough_once_it_is_there() {
    let mut world = World::new(json!({}));
    world.create_child();
    assert_eq!(world.phase(PARENT), "Succeeded");
    world.input(Input::Begin { run: CHILD });
    world.end_task(CHILD, 1);
    assert_eq!(world.phase(PARENT), "Succeeded");
}

#[test]
fn a_child_that_ends_without_the_condition_fails_the_step_and_says_so() {
    let mut world = World::new(json!({"successCondition": "status.phase == Succeeded"}));
    world.create_child();
    world.input(Input::Begin { run: CHILD });
    world.end_task(CHILD, 1);
    assert_eq!(world.phase(PARENT), "Failed");
    assert!(
        world.message().contains("workflow 'c' ended Failed, and the success condition does not hold"),
        "{}",
        world.message()
    );
}

#[test]
fn a_condition_on_parts_of_the_child_is_seen_when_they_change() {
    let mut world = World::new(json!({"successCondition": "status.progress == 1/2"}));
    world.create_child();
    world.input(Input::Begin { run: CHILD });
    assert_eq!(world.phase(PARENT), "Running");
    world.end_task(CHILD, 0);
    assert_eq!((world.phase(CHILD), world.phase(PARENT)), ("Running", "Succeeded"));
}

#[test]
fn a_run_is_created_once_however_often_it_was_ordered() {
    let mut world = World::new(phases());
    let (attempt, _) = world.create_child();
    let again = world.submit(RunId(3), "c2", child_manifest(), Some(attempt));
    assert_eq!(again.refusal, Some(Refusal::Unwanted { name: "c2".to_owned() }));
    assert!(again.decided.is_empty() && world.engine.run(RunId(3)).is_none());
}

#[test]
fn a_parent_that_is_over_gets_no_child() {
    let mut world = World::new(phases());
    let (attempt, _) = world.ordered(PARENT);
    world.input(Input::Command { run: PARENT, command: Command::Terminate });
    let late = world.submit(CHILD, "c", child_manifest(), Some(attempt));
    assert!(matches!(late.refusal, Some(Refusal::Unwanted { .. })), "{:?}", late.refusal);
}

#[test]
fn after_a_restart_the_engine_tells_the_parent_and_nobody_is_asked_again() {
    let mut world = World::new(phases());
    world.create_child();
    world.input(Input::Begin { run: CHILD });
    world.end_task(CHILD, 0);
    let assumed = world.restart(&[PARENT, CHILD]);
    assert!(assumed.iter().all(|(attempt, _)| attempt.run == CHILD), "{assumed:?}");
    let (attempt, _) = assumed[0];
    let lost = Report::Lost { attempt, at: world.now, why: "the machine restarted".to_owned() };
    world.input(Input::Report(lost));
    assert_eq!((world.phase(CHILD), world.phase(PARENT)), ("Failed", "Failed"));
}

#[test]
fn a_crash_between_order_and_creation_orders_it_again() {
    let mut world = World::new(phases());
    let (first, _) = world.ordered(PARENT);
    let assumed = world.restart(&[PARENT]);
    assert!(
        matches!(&assumed[..], [(attempt, Some(Request::Object(request)))] if *attempt == first && request.child.is_none())
    );
}

#[test]
fn a_parent_restored_without_its_child_asks_for_that_one_and_not_for_another() {
    let mut world = World::new(phases());
    world.create_child();
    let assumed = world.restart(&[PARENT]);
    assert!(
        matches!(&assumed[..], [(_, Some(Request::Object(request)))] if request.child == Some(CHILD)),
        "{assumed:?}"
    );
}

#[test]
fn a_deleted_child_fails_the_step_that_waits_for_it() {
    let mut world = World::new(phases());
    world.create_child();
    world.input(Input::Begin { run: CHILD });
    world.input(Input::Release { run: CHILD });
    assert_eq!(world.phase(PARENT), "Failed");
    assert!(world.message().contains("workflow 'c' was deleted while it was waited for"), "{}", world.message());
}

#[test]
fn an_open_child_that_is_deleted_gives_its_room_back() {
    let mut resource = phases();
    extend(
        &mut resource,
        json!({"action": "create", "manifest": child_manifest().to_string(), "setOwnerReference": true}),
    );
    let spec = json!({"entrypoint": "main", "templates": [
        {"name": "main", "dag": {"tasks": [
            {"name": "gone", "template": "order"}, {"name": "work", "template": "work"}]}},
        {"name": "order", "resource": resource},
        {"name": "work", "container": {"image": "busybox", "command": ["true"]}},
    ]});
    let mut world = World::with_capacity(&spec, Capacity { slots: 1, ..ROOMY });
    // The parent's own task has the only place.
    world.end_task(PARENT, 0);
    world.create_child();
    world.input(Input::Begin { run: CHILD });
    world.input(Input::Tick);
    let (_, task) = world.ordered(CHILD);
    assert!(task.is_none(), "it runs a task");
    let other = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "other"},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": {"image": "busybox", "command": ["true"]}}]},
    });
    let other_run = RunId(3);
    world.orders.clear();
    world.submit(other_run, "other", other, None);
    world.input(Input::Begin { run: other_run });
    assert!(world.orders.is_empty(), "there is no room: {:?}", world.orders);
    world.input(Input::Release { run: CHILD });
    let killed = |order: &Order| matches!(order, Order::Kill { attempt } if attempt.run == CHILD);
    assert!(world.orders.iter().any(killed), "its task is killed: {:?}", world.orders);
    assert!(world.engine.has_more(), "what follows is decided at once");
    world.input(Input::Tick);
    world.ordered(other_run);
    assert_eq!(world.phase(PARENT), "Failed");
}

#[test]
fn a_step_that_runs_out_of_time_ends_the_child_it_owns_and_no_other() {
    for owned in [true, false] {
        let mut resource = phases();
        let manifest = child_manifest().to_string();
        extend(&mut resource, json!({"action": "create", "manifest": manifest, "setOwnerReference": owned}));
        let spec = json!({"entrypoint": "main", "templates": [
            {"name": "main", "activeDeadlineSeconds": 5, "resource": resource},
        ]});
        let mut world = World::of(&spec);
        world.create_child();
        world.input(Input::Begin { run: CHILD });
        world.now = world.now.saturating_add(std::time::Duration::from_secs(6));
        let outcome = world.input(Input::Tick);
        assert_eq!(world.phase(PARENT), "Failed");
        let stopped =
            outcome.orders.iter().any(|order| matches!(order, Order::Stop { attempt } if attempt.run == CHILD));
        assert_eq!(stopped, owned, "{:?}", outcome.orders);
        assert_eq!(runs_of(&outcome).contains(&CHILD), owned);
    }
}
