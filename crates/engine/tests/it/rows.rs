//! What holds for every row of the table of kinds that runs: which commands its runs take in which state, how large a summary
//! gets, and that the files of the machine are judged when a run is submitted. A row without an example here fails.

use std::collections::BTreeMap;

use octoflow_engine::{
    Capacity, Command, Dialect, Engine, Input, Outcome, Refusal,
    admit::{Catalog, admit},
    dialect,
    engine::fold,
    input::CommandKind,
    kinds::{self, Kind},
};
use octoflow_model::{
    AttemptId, Fact, MutableMetadata, Order, Report, RunId, Task,
    order::{Collected, End, Exit},
    submission::{Submission, SubmitContext},
    taskset::StopReason,
};
use serde_json::{Value, json};

use crate::play::{DAWN, Everything, ROOMY};

const RUN: RunId = RunId(1);

/// A run of every row with this many members and these volumes of its pods; `None` for a kind that makes no pods.
fn example(kind: &Kind, members: u32, volumes: Option<&Value>) -> Value {
    let mut pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "i", "command": ["c"]}]});
    let mut work = json!({"name": "work", "container": {"image": "i", "command": ["c"]}});
    if let Some(volumes) = volumes {
        pod["volumes"] = volumes.clone();
        work["volumes"] = volumes.clone();
    }
    let pod = json!({ "spec": pod });
    let spec = match kind.key {
        "Workflow" => json!({"entrypoint": "main", "templates": [
            {"name": "main", "steps": [[{"name": "s", "template": "work", "withSequence": {"count": members.to_string()}}]]},
            work]}),
        "TaskSet" => json!({"roles": [{"name": "r", "replicas": members, "template": pod,
                                       "completionPolicy": {"maxFailed": 1, "minSucceeded": members}}]}),
        "VolcanoJob" => json!({"minAvailable": 1, "tasks": [{"name": "t", "replicas": members, "template": pod}]}),
        "KubeJob" => json!({"parallelism": members, "completions": members, "template": pod}),
        "JobFlow" => {
            let entry = |at| json!({"name": format!("j{at}")});
            json!({"flows": (0..members).map(entry).collect::<Vec<_>>()})
        }
        "SubmittedJob" => {
            let role = json!({"name": "r", "replicas": members, "template": pod});
            let job = json!({"kind": "TaskSet", "spec": {"roles": [role]}});
            json!({"userID": "u", "jobName": "n", "jobKind": "TaskSet", "job": job})
        }
        other => panic!("there is no example of {other}"),
    };
    json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": {"name": "m"}, "spec": spec})
}

fn dialects() -> impl Iterator<Item = &'static Dialect> {
    kinds::of_runs().filter_map(Kind::dialect)
}

struct Play {
    engine: Engine,
    facts: Vec<Fact>,
    running: BTreeMap<AttemptId, Box<Task>>,
}

impl Play {
    fn new(manifest: &Value) -> Self {
        let engine = Engine::new(Capacity { ..ROOMY });
        let mut play = Self { engine, facts: Vec::new(), running: BTreeMap::new() };
        let admitted = admit(manifest, &Everything::default()).expect("the manifest is admitted");
        let submission = Box::new(Submission {
            name: "m".to_owned(),
            namespace: "default".to_owned(),
            uid: "u".to_owned(),
            at: DAWN,
            manifest: admitted.manifest,
            stored: admitted.stored,
            parent: None,
            ordered_by: None,
            context: SubmitContext::default(),
            previous: None,
        });
        play.input(Input::Submit { run: RUN, submission, program: None });
        play.input(Input::Begin { run: RUN });
        play
    }

    fn input(&mut self, input: Input) -> Option<Refusal> {
        let outcome: Outcome = self.engine.handle(input, DAWN);
        outcome.decided.into_iter().for_each(|decided| self.facts.extend(decided.facts));
        for order in outcome.orders {
            match order {
                Order::Start { attempt, task } => drop(self.running.insert(attempt, task)),
                Order::Forget { attempt } => drop(self.running.remove(&attempt)),
                Order::Stop { .. } | Order::Kill { .. } => {}
            }
        }
        outcome.refusal
    }

    fn command(&mut self, command: Command) -> Option<Refusal> {
        self.input(Input::Command { run: RUN, command })
    }

    fn finish(&mut self) {
        while let Some((attempt, task)) = self.running.pop_first() {
            let report = match task.call {
                None => Report::Ended { attempt, at: DAWN, end: Box::new(ended()) },
                Some(_) => {
                    let answer = octoflow_model::request::Answer::Stopped;
                    Report::Answered { attempt, at: DAWN, answer: Box::new(answer) }
                }
            };
            self.input(Input::Report(report));
        }
    }
}

fn ended() -> End {
    End {
        exit: Exit::Signal(15),
        started: Some(DAWN),
        collected: Collected::default(),
        log_truncated: false,
        log_bytes: 0,
        members: Vec::new(),
    }
}

fn commands(marks: &MutableMetadata) -> Vec<Command> {
    let text = |text: &str| text.to_owned();
    vec![
        Command::Mark { read: Box::new(marks.clone()), write: Box::new(marks.clone()) },
        Command::Suspend,
        Command::Resume { selector: None, supplied: BTreeMap::new() },
        Command::StopNodes { selector: text("name=x"), message: text("") },
        Command::Resume { selector: Some(text("name=x")), supplied: BTreeMap::new() },
        Command::Set { selector: text("name=x"), phase: None, message: text(""), outputs: BTreeMap::new() },
        Command::Evict { pod: text("nobody"), why: StopReason::Evicted },
        Command::Disband { unit: text("nobody") },
        Command::Amend { spec: Box::new(json!({"nothing": 1})) },
        Command::Perform { action: text("Dance") },
        Command::Stop,
        Command::Terminate,
    ]
}

#[test]
fn every_command_is_taken_or_refused_by_the_row_and_by_one_rule() {
    let mut decided = 0;
    for dialect in dialects() {
        let name = dialect.kind.name;
        let listed = |kind: &CommandKind| dialect.commands.contains(kind);
        for basic in [CommandKind::Stop, CommandKind::Terminate, CommandKind::Mark] {
            assert!(listed(&basic), "everybody can end a {name} and label it");
        }
        let mut play = Play::new(&example(dialect.kind, 3, None));
        let marks = play.engine.run(RUN).expect("it is open").marks();
        for command in commands(&marks) {
            let (kind, told) = (command.kind(), format!("{command:?} to a {name}"));
            match play.command(command) {
                Some(Refusal::Invalid(why)) if !listed(&kind) => {
                    let words =
                        ["no nodes to choose from", "one by one", "no control unit", "does not change", "no action"];
                    assert!(words.iter().any(|words| why.contains(words)) && why.contains(name), "{told}: {why}");
                }
                Some(Refusal::NoSuchPod { .. }) if kind == CommandKind::Evict => {}
                // It is taken, and found wanting: it names what is not there.
                Some(Refusal::Invalid(_) | Refusal::NoSuchNode { .. }) if listed(&kind) => {
                    assert!(matches!(kind, CommandKind::Nodes | CommandKind::Amend | CommandKind::Perform), "{told}");
                }
                None => assert!(listed(&kind), "{told} is not in the row, and taken"),
                // Nothing of it was there to be waited for.
                Some(Refusal::Finished { .. }) if kind == CommandKind::Terminate => {
                    assert!(play.engine.run(RUN).is_some_and(|run| run.finished()), "{told}");
                }
                Some(refusal) => panic!("{told}: {refusal:?}"),
            }
        }
        // Its end may be decided while its pods are still there.
        let run = play.engine.run(RUN).expect("nobody has released it");
        if run.is_decided() && !run.finished() {
            decided += 1;
            assert!(matches!(play.command(Command::Suspend), Some(Refusal::Finished { .. })), "{name}");
            assert_eq!(play.command(Command::Terminate), None, "{name}");
        }
        play.finish();
        let run = play.engine.run(RUN).expect("nobody has released it");
        assert!(run.finished(), "a {name} ends after it was terminated");
        let facts = play.facts.len();
        for command in commands(&marks) {
            let (told, verb) = (format!("{command:?} to a {name} that is over"), command.verb());
            let marks = command.kind() == CommandKind::Mark;
            match play.command(command) {
                None if marks => {}
                Some(Refusal::Finished { kind, name: run, verb: told }) => {
                    assert_eq!((kind, run.as_str(), told), (dialect.kind.noun, "m", verb));
                }
                other => panic!("{told}: {other:?}"),
            }
        }
        assert_eq!(play.facts.len(), facts, "a {name} that is over decides nothing");
    }
    assert!(decided > 0, "no run is decided before it is over");
}

#[test]
fn a_summary_does_not_grow_with_its_run() {
    // What grows in a submitted job is what plugins say.
    for dialect in dialects().filter(|dialect| dialect.kind.key != "SubmittedJob") {
        let name = dialect.kind.name;
        let manifest = example(dialect.kind, 5_000, None);
        let play = Play::new(&manifest);
        let run = fold(RUN, play.facts.iter().cloned()).expect("the journal folds");
        assert!(run.size() >= 5_000, "{name} has {} members", run.size());
        let (summary, mut object) = (run.summary(), run.object());
        assert!(object.to_string().len() > 200_000, "the object of a {name} has everything");
        let spec = manifest.to_string().len();
        assert!(summary.to_string().len() < 64 * 1024 + spec, "{name}: {} bytes", summary.to_string().len());
        // What is archived is the object; without what grows it is the same summary.
        (dialect::of(&object).expect("it has a dialect").summarize)(&mut object);
        let fields = |object: &Value| -> Vec<String> {
            object["status"].as_object().into_iter().flat_map(|status| status.keys().cloned()).collect()
        };
        assert_eq!(fields(&object), fields(&summary), "{name}");
        assert!(object.to_string().len() < 64 * 1024 + spec, "{name}");
    }
}

/// A catalog of a machine that shows none of its files.
struct Closed;

impl Catalog for Closed {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
    fn host_path(&self, path: &str) -> Result<(), String> {
        Err(format!("nobody may see {path}"))
    }
}

#[test]
fn files_of_the_machine_are_judged_when_a_run_is_submitted() {
    let mut judged = 0;
    for dialect in dialects().filter(|dialect| !dialect.view.consists_of_runs()) {
        let volumes = json!([{"name": "v", "hostPath": {"path": "/etc"}}]);
        let manifest = example(dialect.kind, 2, Some(&volumes));
        assert!(admit(&manifest, &Everything::default()).is_ok(), "a {} may have volumes", dialect.kind.name);
        let problems = admit(&manifest, &Closed).expect_err("the path is not allowed");
        let told = problems.0.iter().any(|one| one.code == "OF1130" && one.message == "nobody may see /etc");
        assert!(told, "{}: {problems:?}", dialect.kind.name);
        judged += 1;
    }
    assert_eq!(
        judged, 4,
        "what consists of runs has no pods of its own: those of the runs are judged when they are made"
    );
}
