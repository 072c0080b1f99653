//! Flows with their jobs in one engine, one case at a time: what the flow remembers, tests and calls its jobs. The test is
//! the controller that makes the jobs, and the runtime of their pods.

use std::collections::BTreeMap;

use octoflow_engine::{
    Command, Engine, Input,
    admit::admit,
    engine::fold,
    jobflow, kinds,
    rerun::{RerunOptions, RunContext},
    volcano,
};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Task,
    order::{Collected, End, Exit},
    previous::PreviousRun,
    request::{Answer, MakeRequest, Request},
    submission::{Submission, SubmitContext},
};
use serde_json::{Value, json};

use crate::{
    play::{DAWN, Everything, ROOMY},
    text::yaml,
};

/// An engine with flows, whose jobs are made when the test says so.
struct Scenario {
    engine: Engine,
    facts: BTreeMap<RunId, Vec<Fact>>,
    /// What a runtime was told to do.
    tasks: BTreeMap<AttemptId, Task>,
    flow: RunId,
    next: u64,
}

impl Scenario {
    fn new(flow: &str) -> Self {
        let mut scenario = Self {
            engine: Engine::new(ROOMY),
            facts: BTreeMap::new(),
            tasks: BTreeMap::new(),
            flow: RunId(1),
            next: 2,
        };
        let manifest = json!({"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f"},
                              "spec": yaml(flow).remove(0)});
        scenario.submit(RunId(1), "f", &manifest, None, None);
        scenario
    }

    fn submit(
        &mut self,
        run: RunId,
        name: &str,
        manifest: &Value,
        by: Option<AttemptId>,
        previous: Option<PreviousRun>,
    ) {
        let admitted = admit(manifest, &Everything::default()).expect("the manifest is admitted");
        let submission = Box::new(Submission {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            uid: format!("u-{run}"),
            at: DAWN,
            manifest: admitted.manifest,
            stored: admitted.stored,
            parent: by.map(|attempt| attempt.run),
            ordered_by: by,
            context: SubmitContext::default(),
            previous: previous.map(Box::new),
        });
        self.input(Input::Submit { run, submission, program: None });
        self.input(Input::Begin { run });
    }

    fn input(&mut self, input: Input) {
        let outcome = self.engine.handle(input, DAWN);
        assert_eq!(outcome.refusal, None);
        for decided in outcome.decided {
            self.facts.entry(decided.run).or_default().extend(decided.facts);
        }
        for order in outcome.orders {
            match order {
                Order::Start { attempt, task } => drop(self.tasks.insert(attempt, *task)),
                Order::Stop { .. } | Order::Kill { .. } => {}
                Order::Forget { attempt } => drop(self.tasks.remove(&attempt)),
            }
        }
    }

    /// The request to make the job of this name.
    fn wanted(&self, name: &str) -> (AttemptId, MakeRequest) {
        let make = |(attempt, task): (&AttemptId, &Task)| match task.call.as_deref() {
            Some(Request::Make(request)) if request.name == name => Some((*attempt, request.clone())),
            _ => None,
        };
        self.tasks.iter().find_map(make).unwrap_or_else(|| panic!("nobody wants {name}: {:?}", self.tasks.values()))
    }

    /// Makes the job of this name from a template.
    fn make(&mut self, name: &str, spec: &str) -> RunId {
        let (attempt, request) = self.wanted(name);
        let mut spec = yaml(spec).remove(0);
        for task in spec["tasks"].as_array_mut().expect("there are tasks") {
            task["template"] = json!({"spec": {"containers": [{"name": "main", "image": "i", "command": ["c"]}]}});
        }
        let make = kinds::of_key("JobTemplate").and_then(|kind| kind.make).expect("jobs are made of templates");
        let manifest = make(&json!({"spec": spec}), &request);
        let run = RunId(self.next);
        self.next += 1;
        self.tasks.remove(&attempt);
        self.submit(run, &request.name, &manifest, Some(attempt), None);
        run
    }

    fn attempt(&self, pod: &str) -> AttemptId {
        let mut found = self.tasks.iter().filter(|(_, task)| task.name == pod);
        *found.next().unwrap_or_else(|| panic!("there is no pod {pod}: {:?}", self.tasks.values())).0
    }

    fn up(&mut self, pod: &str) {
        let attempt = self.attempt(pod);
        self.input(Input::Report(Report::Started { attempt, at: DAWN }));
    }

    fn exit(&mut self, pod: &str, code: i32) {
        let attempt = self.attempt(pod);
        let (exit, collected) = (Exit::Code(code), Collected::default());
        let end = End { exit, started: None, collected, log_truncated: false, log_bytes: 0, members: Vec::new() };
        self.input(Input::Report(Report::Ended { attempt, at: DAWN, end: Box::new(end) }));
    }

    /// The flow as it is, or was when it ended.
    fn object(&self) -> Value {
        let folded = fold(self.flow, self.facts[&self.flow].iter().cloned()).expect("the journal folds");
        jobflow::status::object(&folded.into_inner::<jobflow::Run>().expect("it is a flow"))
    }

    /// Retries the flow, which is over.
    fn retry(&mut self) {
        let object = self.object();
        let catalog = Everything::default();
        let (context, options) = (RunContext::default(), RerunOptions::default());
        let again = jobflow::DIALECT.reruns.retry(&object, &context, &options, &catalog).expect("it can be retried");
        let previous =
            PreviousRun { runs: vec![self.flow], entries: again.plan.entries.clone(), ..PreviousRun::default() };
        self.flow = RunId(self.next);
        self.next += 1;
        self.submit(self.flow, "f", &again.manifest, None, Some(previous));
    }
}

const ONE: &str = "tasks: [{name: main}]";

#[test]
fn jf18_a_job_that_comes_back_to_its_phase_in_one_turn_leaves_no_gap() {
    let mut scenario = Scenario::new("flows: [{name: a}]");
    let spec = "{minAvailable: 2, policies: [{event: PodFailed, action: RestartPod}], tasks: [{name: w, replicas: 3, minAvailable: 2}]}";
    let job = scenario.make("f-a", spec);
    (0..3).for_each(|pod| scenario.up(&format!("f-a-w-{pod}")));
    scenario.exit("f-a-w-0", 1);
    let own = scenario.engine.run_of::<volcano::Run>(job).expect("it is there");
    let passed: Vec<String> = own.state.history.iter().map(|(phase, _)| phase.to_string()).collect();
    assert_eq!(passed, ["Pending", "Running", "Restarting", "Pending", "Running"]);
    let object = scenario.object();
    let told = &object["status"]["jobStatusList"][0];
    let histories = told["runningHistories"].as_array().expect("there are histories");
    let states: Vec<&str> = histories.iter().filter_map(|part| part["state"].as_str()).collect();
    assert_eq!(states, passed, "{told}");
    assert_eq!(told["restartCount"], 1);
}

#[test]
fn a_probe_asks_every_pod_of_a_job_that_has_shrunk() {
    let mut scenario = Scenario::new(
        "flows: [{name: a}, {name: b, dependsOn: {targets: [a], probe: {tcpSocketList: [{taskName: w, port: 80}]}}}]",
    );
    let job = scenario.make(
        "f-a",
        "{minAvailable: 1, tasks: [{name: s, replicas: 2, minAvailable: 1}, {name: w, replicas: 2, minAvailable: 1}]}",
    );
    let mut spec =
        volcano::status::object(scenario.engine.run_of::<volcano::Run>(job).expect("it is there"))["spec"].take();
    spec["tasks"][0]["replicas"] = json!(1);
    scenario.input(Input::Command { run: job, command: Command::Amend { spec: Box::new(spec) } });
    (0..2).for_each(|pod| scenario.up(&format!("f-a-w-{pod}")));
    let probes = scenario.tasks.values().filter_map(|task| match task.call.as_deref() {
        Some(Request::Probe(probe)) => Some(probe.addresses.len()),
        _ => None,
    });
    assert_eq!(probes.max(), Some(2));
}

#[test]
fn a_retry_of_an_entry_whose_probe_held_once_starts() {
    let mut scenario = Scenario::new(
        "flows: [{name: a}, {name: b, dependsOn: {targets: [a], probe: {taskStatusList: [{taskName: main, phase: Running}]}}}]",
    );
    scenario.make("f-a", ONE);
    scenario.up("f-a-main-0");
    scenario.make("f-b", ONE);
    scenario.exit("f-b-main-0", 1);
    scenario.exit("f-a-main-0", 0);
    assert_eq!(scenario.object()["status"]["state"]["phase"], "Failed");
    scenario.retry();
    scenario.make("f-b-1", ONE);
    scenario.exit("f-b-1-main-0", 0);
    assert_eq!(scenario.object()["status"]["state"]["phase"], "Succeed");
}

#[test]
fn a_retry_does_not_take_the_name_of_another_entry() {
    let mut scenario = Scenario::new("flows: [{name: a}, {name: a-1}, {name: a-3}]");
    scenario.make("f-a-1", ONE);
    scenario.exit("f-a-1-main-0", 0);
    scenario.make("f-a-3", ONE);
    scenario.exit("f-a-3-main-0", 0);
    scenario.make("f-a", ONE);
    scenario.exit("f-a-main-0", 1);
    scenario.retry();
    scenario.make("f-a-2", ONE);
    scenario.exit("f-a-2-main-0", 1);
    scenario.retry();
    scenario.make("f-a-4", ONE);
    scenario.exit("f-a-4-main-0", 0);
    assert_eq!(scenario.object()["status"]["state"]["phase"], "Succeed");
}

#[test]
fn a_retry_whose_names_would_be_too_long_is_refused_with_the_reason() {
    let name = "x".repeat(61);
    let mut scenario = Scenario::new(&format!("flows: [{{name: {name}}}]"));
    let (attempt, _) = scenario.wanted(&format!("f-{name}"));
    let answer = Box::new(Answer::Refused("no".to_owned()));
    scenario.input(Input::Report(Report::Answered { attempt, at: DAWN, answer }));
    let object = scenario.object();
    let (context, options) = (RunContext::default(), RerunOptions::default());
    let refused = jobflow::DIALECT.reruns.plan(&object, &context, &options).expect_err("the name is too long");
    assert!(format!("{refused:?}").contains("65 characters, and 63 are the most"), "{refused:?}");
}

#[test]
fn jf09_the_jobs_of_earlier_tries_are_deleted_too() {
    let mut scenario =
        Scenario::new("{jobRetainPolicy: delete, flows: [{name: a, retry: {maxRetries: 1, backoff: 0s}}]}");
    let first = scenario.make("f-a", ONE);
    scenario.exit("f-a-main-0", 1);
    let second = scenario.make("f-a-1", ONE);
    let below = jobflow::DIALECT.view.runs_below(&scenario.object());
    let names: Vec<(&str, &str)> = below.iter().map(|run| (run.name.as_str(), run.label.as_str())).collect();
    assert_eq!(names, [("f-a", "a (try 1)"), ("f-a-1", "a")]);
    scenario.exit("f-a-1-main-0", 1);
    scenario.retry();
    let third = scenario.make("f-a-2", ONE);
    scenario.exit("f-a-2-main-0", 0);
    let removed = scenario.tasks.values().find_map(|task| match task.call.as_deref() {
        Some(Request::Remove(uids)) => Some(uids.clone()),
        _ => None,
    });
    assert_eq!(removed, Some([first, second, third].map(|run| format!("u-{run}")).to_vec()));
}
