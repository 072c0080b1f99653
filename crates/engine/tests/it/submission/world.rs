//! An engine with submitted jobs, their journals, plugins that a test answers for, and a controller that may crash.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use octoflow_engine::{
    Command, Engine, Input, Outcome, Refusal,
    admit::admit,
    engine::fold,
    plugins::{FeatureRecord, PluginTable},
    submission,
};
use octoflow_manifest::{Problem, Problems};
use octoflow_model::{
    AttemptId, Fact, Order, Report, RunId, Task, Time,
    order::{Collected, End, Exit},
    plugin::{FeatureSecrets, FeatureSpec, PluginType},
    request::{Answer, HttpResponse, Request},
    submission::{Submission, SubmitContext},
    submitted::WalkState,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::play::{DAWN, Everything, ROOMY};

pub(super) const JOB: RunId = RunId(1);

/// A feature with one plugin. `more` is added to the plugin.
pub(super) fn feature(name: &str, plugin_type: PluginType, more: &Value) -> FeatureRecord {
    let mut plugin = json!({"pluginType": plugin_type.word(), "callAddress": format!("http://plugins/{name}")});
    for (key, value) in more.as_object().into_iter().flatten() {
        plugin[key] = value.clone();
    }
    let spec = json!({"author": "a", "enabled": true, "jobSelector": {"expression": "*"}, "plugins": [plugin]});
    let secrets = FeatureSecrets { authorization: Some("c2VjcmV0".to_owned()), signing: None };
    FeatureRecord { name: name.to_owned(), spec: FeatureSpec::deserialize(&spec).expect("it is a feature"), secrets }
}

/// A TaskSet with one pod.
pub(super) fn task_set() -> Value {
    let pod = json!({"spec": {"restartPolicy": "Never",
                              "containers": [{"name": "main", "image": "i", "command": ["sh", "-c", "sleep 20;exit 0"]}]}});
    let policy = json!({"maxFailed": 1, "minSucceeded": 1});
    json!({"kind": "TaskSet", "metadata": {"annotations": {"note": "mine"}},
           "spec": {"roles": [{"name": "worker", "replicas": 1, "template": pod, "completionPolicy": policy}]}})
}

pub(super) struct World {
    pub(super) engine: Engine,
    table: Arc<PluginTable>,
    pub(super) journals: BTreeMap<RunId, Vec<Fact>>,
    /// What runtimes have.
    pub(super) tasks: BTreeMap<AttemptId, Box<Task>>,
    /// Every order of a call: the plugin, its key, and what it was sent.
    pub(super) calls: Vec<Sent>,
    pub(super) now: Time,
    next: u64,
    /// Reports that one of the next commits is lost, before or after it was written.
    pub(super) crash: Option<Crash>,
    pub(super) crashes: u32,
    /// The job, if it was over when the controller was lost: nobody restores it.
    over: Option<submission::Run>,
}

/// When the controller is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crash {
    /// Before the next commit is written.
    Before,
    /// After it was written, before anything followed from it.
    After,
}

#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) plugin: String,
    pub(super) key: String,
    pub(super) body: Value,
    pub(super) headers: Vec<(String, String)>,
    pub(super) follow: bool,
}

impl World {
    /// A world with these features, in this order.
    pub(super) fn new(features: &[FeatureRecord]) -> Self {
        let mut world = Self {
            engine: Engine::new(ROOMY),
            table: Arc::default(),
            journals: BTreeMap::new(),
            tasks: BTreeMap::new(),
            calls: Vec::new(),
            now: DAWN,
            next: 2,
            crash: None,
            crashes: 0,
            over: None,
        };
        world.put_features(features);
        world
    }

    pub(super) fn put_features(&mut self, features: &[FeatureRecord]) {
        let mut order: BTreeMap<PluginType, Vec<String>> = BTreeMap::new();
        for record in features {
            for plugin in &record.spec.plugins {
                let plugin_type = PluginType::of_word(&plugin.plugin_type).expect("it is a type");
                let key = format!("{plugin_type}.{}.{}", record.name, record.spec.author);
                order.entry(plugin_type).or_default().push(key);
            }
        }
        let (table, broken) = PluginTable::new(features, &order);
        assert_eq!(broken, Vec::<String>::new());
        self.table = Arc::new(table);
        self.engine.handle(Input::Plugins(self.table.clone()), self.now);
    }

    /// Submits a job of this content.
    pub(super) fn submit(&mut self, job: &Value) {
        let kind = job["kind"].as_str().expect("it has a kind");
        self.submit_with(
            &json!({"userID": "ada", "jobName": "n", "jobKind": kind, "header": {"type": "debug"}, "job": job}),
        );
    }

    pub(super) fn submit_with(&mut self, spec: &Value) {
        let manifest = json!({"apiVersion": "octoflow.io/v1alpha1", "kind": "SubmittedJob",
                              "metadata": {"name": "j1"}, "spec": spec});
        let outcome = self.submit_run(JOB, "j1", &manifest, None).expect("nothing crashes yet");
        assert_eq!(outcome.refusal, None);
        self.input(Input::Begin { run: JOB });
    }

    fn submit_run(
        &mut self,
        run: RunId,
        name: &str,
        manifest: &Value,
        by: Option<AttemptId>,
    ) -> Result<Outcome, Option<String>> {
        let listed = |problems: Problems| {
            let line = |one: &Problem| {
                let path = one.path.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{path}: {}", one.message)
            };
            Some(problems.0.iter().map(line).collect::<Vec<_>>().join("; "))
        };
        let admitted = admit(manifest, &Everything::default()).map_err(listed)?;
        let submission = Box::new(Submission {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            uid: format!("u-{run}"),
            at: self.now,
            manifest: admitted.manifest,
            stored: admitted.stored,
            parent: by.map(|attempt| attempt.run),
            ordered_by: by,
            context: SubmitContext::default(),
            previous: None,
        });
        self.input(Input::Submit { run, submission, program: None }).ok_or(None)
    }

    /// Hands an input in. Its facts are one commit. Nothing is returned if the controller was lost.
    pub(super) fn input(&mut self, input: Input) -> Option<Outcome> {
        let released = if let Input::Release { run } = &input { Some(*run) } else { None };
        let mut outcome = self.engine.handle(input, self.now);
        while self.engine.has_more() {
            let more = self.engine.handle(Input::Tick, self.now);
            outcome.decided.extend(more.decided);
            outcome.orders.extend(more.orders);
        }
        let crash = self.crash.take_if(|_| !outcome.decided.is_empty() || released.is_some());
        if crash == Some(Crash::Before) {
            self.restart();
            return None;
        }
        self.keep(&outcome);
        if let Some(run) = released {
            self.journals.remove(&run);
            self.tasks.retain(|attempt, _| attempt.run != run);
        }
        self.check();
        if crash == Some(Crash::After) {
            self.restart();
            return None;
        }
        let orders = std::mem::take(&mut outcome.orders);
        orders.into_iter().for_each(|order| self.take(order));
        Some(outcome)
    }

    fn keep(&mut self, outcome: &Outcome) {
        for decided in &outcome.decided {
            self.journals.entry(decided.run).or_default().extend(decided.facts.iter().cloned());
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Start { attempt, task } => self.start(attempt, task),
            // What is told to end is over at once.
            Order::Stop { attempt } | Order::Kill { attempt } => match self.tasks.get(&attempt) {
                Some(task) if task.call.is_some() => {
                    self.input(Input::Report(answered(attempt, self.now, Answer::Stopped)));
                }
                Some(_) => self.exit(attempt, Exit::Signal(15)),
                None => {}
            },
            Order::Forget { attempt } => drop(self.tasks.remove(&attempt)),
        }
    }

    fn start(&mut self, attempt: AttemptId, task: Box<Task>) {
        if let Some(Request::Http(request)) = task.call.as_deref() {
            let headers = request.headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
            self.calls.push(Sent {
                plugin: task.name.clone(),
                key: request.idempotency_key.clone().unwrap_or_default(),
                body: serde_json::from_slice(&request.body).expect("plugins are sent JSON"),
                headers: headers.collect(),
                follow: request.follow,
            });
        }
        self.tasks.insert(attempt, task);
    }

    /// The controller is lost, and restored from the journals of what is open. Pods go on meanwhile, requests do not.
    pub(super) fn restart(&mut self) {
        self.crashes += 1;
        self.engine = Engine::new(ROOMY);
        self.engine.handle(Input::Plugins(self.table.clone()), self.now);
        let mut open = Vec::new();
        for (run, facts) in &self.journals {
            let folded = fold(*run, facts.iter().cloned()).expect("the journal folds");
            if !folded.finished() {
                open.push(*run);
                self.engine.handle(Input::Restore(Box::new(folded)), self.now);
            } else if *run == JOB {
                self.over = folded.into_inner();
            }
        }
        let outcome = self.engine.handle(Input::Continue { runs: open }, self.now);
        self.keep(&outcome);
        self.tasks.retain(|_, task| task.call.is_none());
        let known: Vec<AttemptId> = outcome.assumed_running.iter().map(|(attempt, _)| *attempt).collect();
        self.tasks.retain(|attempt, _| known.contains(attempt));
        for (attempt, task) in outcome.assumed_running {
            if !self.tasks.contains_key(&attempt) {
                self.start(attempt, task);
            }
        }
        outcome.orders.into_iter().for_each(|order| self.take(order));
        self.check();
    }

    /// Goes on with the journal of the job as it is, without its run.
    pub(super) fn restart_without_children(&mut self) {
        self.journals.retain(|run, _| *run == JOB);
        self.restart();
    }

    /// What must hold after every commit.
    fn check(&self) {
        let (Some(job), Some(facts)) = (self.engine.run_of::<submission::Run>(JOB), self.journals.get(&JOB)) else {
            return;
        };
        let folded = fold(JOB, facts.iter().cloned()).expect("the journal folds");
        let folded = folded.into_inner::<submission::Run>().expect("it is a submitted job");
        assert_eq!(folded.state, job.state, "the fold differs from the state");
        let children = self.children();
        assert!(children.len() <= 1, "there is one child at most: {children:?}");
    }

    /// Returns the runs that the job has ever ordered and that are still there.
    pub(super) fn children(&self) -> Vec<RunId> {
        self.journals.keys().copied().filter(|run| *run != JOB).collect()
    }

    pub(super) fn job(&self) -> &submission::Run {
        self.engine.run_of::<submission::Run>(JOB).or(self.over.as_ref()).expect("the job is there")
    }

    pub(super) fn state(&self) -> WalkState {
        self.job().walk_state()
    }

    pub(super) fn message(&self) -> String {
        self.object()["status"]["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn object(&self) -> Value {
        submission::status::object(self.job())
    }

    pub(super) fn command(&mut self, command: Command) -> Option<Refusal> {
        self.input(Input::Command { run: JOB, command }).and_then(|outcome| outcome.refusal)
    }

    /// Returns the call that is under way, with the name of its plugin.
    pub(super) fn call(&self) -> Option<(AttemptId, String)> {
        let is_call = |task: &Task| matches!(task.call.as_deref(), Some(Request::Http(_) | Request::Builtin(_)));
        let (attempt, task) = self.tasks.iter().find(|(_, task)| is_call(task))?;
        Some((*attempt, task.name.clone()))
    }

    /// Answers the call that is under way, which must be this plugin's.
    pub(super) fn answer(&mut self, plugin: &str, body: &Value) {
        self.respond(plugin, 200, &body.to_string());
    }

    pub(super) fn respond(&mut self, plugin: &str, status: u16, body: &str) {
        let response = HttpResponse { status, headers: Vec::new(), body: body.to_owned() };
        self.report(plugin, Answer::Http(response));
    }

    pub(super) fn report(&mut self, plugin: &str, answer: Answer) {
        let (attempt, called) = self.call().unwrap_or_else(|| panic!("{plugin} is not called: {:#}", self.object()));
        assert!(called.contains(&format!(".{plugin}.")), "{called} is called, and not {plugin}");
        self.input(Input::Report(answered(attempt, self.now, answer)));
    }

    /// Returns the manifest of the run that is ordered.
    pub(super) fn ordered(&self) -> Option<(AttemptId, Value)> {
        self.tasks.iter().find_map(|(attempt, task)| match task.call.as_deref() {
            Some(Request::Submit(request)) if request.child.is_none() => Some((*attempt, request.manifest.clone())),
            _ => None,
        })
    }

    /// Does what the controller does: admits the run that is ordered, and submits it.
    pub(super) fn create_child(&mut self) {
        let (attempt, manifest) = self.ordered().unwrap_or_else(|| panic!("nothing is ordered: {:#}", self.object()));
        self.tasks.remove(&attempt);
        let run = RunId(self.next);
        self.next += 1;
        let name = manifest["metadata"]["name"].as_str().expect("it has a name").to_owned();
        match self.submit_run(run, &name, &manifest, Some(attempt)) {
            Ok(outcome) if outcome.refusal.is_some() => {
                let why = Answer::Refused(outcome.refusal.map(|why| why.to_string()).unwrap_or_default());
                self.input(Input::Report(answered(attempt, self.now, why)));
            }
            Ok(_) => drop(self.input(Input::Begin { run })),
            Err(Some(why)) => drop(self.input(Input::Report(answered(attempt, self.now, Answer::Refused(why))))),
            Err(None) => {}
        }
    }

    /// Returns a pod that runs.
    pub(super) fn pod(&self) -> Option<AttemptId> {
        self.tasks.iter().find(|(_, task)| task.call.is_none()).map(|(attempt, _)| *attempt)
    }

    pub(super) fn exit(&mut self, attempt: AttemptId, exit: Exit) {
        self.tasks.remove(&attempt);
        let end = Box::new(End {
            exit,
            started: Some(self.now),
            collected: Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members: Vec::new(),
        });
        self.input(Input::Report(Report::Ended { attempt, at: self.now, end }));
    }

    /// Lets time pass until the next timer, and returns how much.
    pub(super) fn wait(&mut self) -> Option<Duration> {
        let at = self.engine.wake_at()?;
        let passed = at.since(self.now);
        self.now = self.now.max(at);
        self.input(Input::Tick);
        Some(passed)
    }

    pub(super) fn called(&self) -> Vec<&str> {
        self.calls.iter().map(|call| call.plugin.split('.').nth(1).unwrap_or_default()).collect()
    }
}

fn answered(attempt: AttemptId, at: Time, answer: Answer) -> Report {
    Report::Answered { attempt, at, answer: Box::new(answer) }
}
