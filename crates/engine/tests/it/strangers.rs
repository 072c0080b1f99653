//! Who may not read a namespace sees its numbers and not its names: in what is told to a victim, and to whoever waits.

use std::time::Duration;

use octoflow_engine::{
    Capacity, Engine, Input, Outcome,
    argo::{Run, explain::explain_with, status},
    schedule::spec::QueueSpec,
};
use octoflow_model::{Fact, RunId, Time, submission::Submission};

use crate::{
    play::{DAWN, ROOMY},
    text::manifest,
};

struct Strangers {
    engine: Engine,
    now: Time,
    facts: Vec<(RunId, Fact)>,
}

impl Strangers {
    /// Two places for tasks, of which each queue deserves one.
    fn new() -> Self {
        let mut strangers = Self { engine: Engine::new(Capacity { slots: 2, ..ROOMY }), now: DAWN, facts: Vec::new() };
        for name in ["a", "b"] {
            let spec = QueueSpec { deserved: [("pods".to_owned(), 1)].into(), ..QueueSpec::new(name) };
            strangers.input(Input::Queue { name: name.to_owned(), spec: Some(Box::new(spec)) });
        }
        strangers
    }

    fn input(&mut self, input: Input) {
        self.now = self.now.saturating_add(Duration::from_secs(2));
        let outcome = self.engine.handle(input, self.now);
        self.take(outcome);
        let outcome = self.engine.handle(Input::Tick, self.now);
        self.take(outcome);
    }

    fn take(&mut self, outcome: Outcome) {
        assert_eq!(outcome.refusal, None);
        for decided in outcome.decided {
            self.facts.extend(decided.facts.into_iter().map(|fact| (decided.run, fact)));
        }
    }

    fn submit(&mut self, run: u64, name: &str, namespace: &str, queue: &str) {
        let steps = "
templates:
- {name: main, steps: [[{name: one, template: ok}, {name: two, template: ok}]]}
- {name: ok, container: {image: i, command: [c]}}";
        let mut manifest = manifest(steps);
        manifest["metadata"] = serde_json::json!({"name": name, "labels": {"volcano.sh/queue-name": queue}});
        let submission = Submission {
            name: name.to_owned(),
            namespace: namespace.into(),
            uid: run.to_string(),
            at: self.now,
            manifest,
            stored: Default::default(),
            previous: None,
            parent: None,
            ordered_by: None,
            context: Default::default(),
        };
        let run = RunId(run);
        self.input(Input::Submit { run, submission: Box::new(submission), program: None });
        self.input(Input::Begin { run });
    }

    /// Everything that a reader of a run is told: its status, its explanations as text and data, and its journal.
    fn told(&self, run: u64) -> String {
        let id = RunId(run);
        let run = self.engine.run_of::<Run>(id).expect("the run is there");
        let mut told = status::object(run)["status"].to_string();
        for one in explain_with(run, Some(self.engine.scheduler()), Some(self.engine.locks())) {
            told.push_str(&format!("\n{}: {}", one.node, one.reason));
        }
        for (_, fact) in self.facts.iter().filter(|(of, _)| *of == id) {
            told.push_str(&format!("\n{}", serde_json::to_string(fact).expect("a fact can be written")));
        }
        told
    }
}

#[test]
fn a_preemption_and_a_wait_tell_numbers_of_other_namespaces_and_no_names() {
    let mut strangers = Strangers::new();
    strangers.submit(1, "secret-one", "mine", "a");
    strangers.submit(2, "hidden-two", "theirs", "b");
    let victim = strangers.told(1);
    assert!(victim.contains("a workflow of another namespace in queue b takes back"), "{victim}");
    assert!(!victim.contains("hidden") && !victim.contains("theirs"), "{victim}");
    let waits = strangers.told(2);
    assert!(waits.contains("waits in queue 'b'") && waits.contains("free pods"), "{waits}");
    assert!(!waits.contains("secret") && !waits.contains("mine"), "{waits}");
    // One of the same namespace is named.
    let mut strangers = Strangers::new();
    strangers.submit(1, "secret-one", "mine", "a");
    strangers.submit(2, "known-two", "mine", "b");
    let victim = strangers.told(1);
    assert!(victim.contains("workflow known-two in queue b takes back"), "{victim}");
}
