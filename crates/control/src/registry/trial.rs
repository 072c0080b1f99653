//! Trials of the submission pipeline: a job walks through plugins in an engine of its own, which is the walk itself, and the
//! calls go out behind the same guard. Nothing is stored, and nothing is decided here.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use octoflow_engine::{
    Capacity, Engine, Input,
    admit::{admit, listed},
    engine::fold,
    plugins::{FeatureRecord, PluginTable},
    submission::{self, state::WalkStep},
};
use octoflow_model::{
    Fact, Order, Report, RunId,
    meta::DEFAULT_NAMESPACE,
    request::{Answer, Request},
    submission::{Stored, Submission, SubmitContext},
};
use serde_json::{Value, json};

use super::{Fault, Registry};
use crate::{Error, clock, new_uid, objects::features};

/// How long a trial may take; whoever asks waits for it.
const WITHIN: Duration = Duration::from_secs(50);
const RUN: RunId = RunId(1);

/// Builds the plugins of features that are not stored, as if they were enabled. Each is a name and a specification with
/// its credentials.
pub fn trial_table(given: &[(String, Value)]) -> Result<PluginTable, Fault> {
    let mut records = Vec::new();
    for (name, spec) in given {
        let refused = |why| Fault::BadRequest(format!("feature `{name}`: {why}"));
        let mut object = json!({"spec": spec});
        let secrets = features::split(&mut object).map_err(refused)?.alone();
        let mut spec = features::spec(&object).map_err(refused)?;
        spec.enabled = true;
        records.push(FeatureRecord { name: name.clone(), spec, secrets });
    }
    match PluginTable::new(&records, &BTreeMap::new()) {
        (table, broken) if broken.is_empty() => Ok(table),
        (_, broken) => Err(Fault::BadRequest(broken.join("; "))),
    }
}

impl Registry {
    /// Walks an admitted submitted job through plugins and calls them. Returns the job as it is then, and in `runs` what
    /// would run, if it gets that far.
    pub fn try_job(&self, job: Value, table: PluginTable) -> Result<Value, Fault> {
        let mut trial = Trial {
            registry: self,
            engine: Engine::new(Capacity { slots: 1, cpu_milli: 1, memory_bytes: 1 }),
            facts: Vec::new(),
            orders: VecDeque::new(),
            began: Instant::now(),
            key: new_uid()?,
        };
        trial.input(Input::Plugins(Arc::new(table)))?;
        let text = |field: &str| job["metadata"][field].as_str().unwrap_or_default().to_owned();
        let namespace = Some(text("namespace")).filter(|text| !text.is_empty());
        let submission = Submission {
            name: text("name"),
            namespace: namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            uid: trial.key.clone(),
            at: clock::now(),
            manifest: job,
            stored: Stored::default(),
            parent: None,
            ordered_by: None,
            context: SubmitContext::default(),
            previous: None,
        };
        trial.input(Input::Submit { run: RUN, submission: Box::new(submission), program: None })?;
        trial.input(Input::Begin { run: RUN })?;
        trial.walk()
    }
}

struct Trial<'a> {
    registry: &'a Registry,
    engine: Engine,
    facts: Vec<Fact>,
    orders: VecDeque<Order>,
    began: Instant,
    /// Marks the calls: a plugin that remembers keys must not take the job itself for a repetition of its trial.
    key: String,
}

impl Trial<'_> {
    fn input(&mut self, input: Input) -> Result<(), Fault> {
        let outcome = self.engine.handle(input, clock::now());
        if let Some(refusal) = outcome.refusal {
            return Err(Error::Refused(refusal).into());
        }
        self.facts.extend(outcome.decided.into_iter().flat_map(|decided| decided.facts));
        self.orders.extend(outcome.orders);
        Ok(())
    }

    fn walk(mut self) -> Result<Value, Fault> {
        loop {
            while let Some(order) = self.orders.pop_front() {
                let Order::Start { attempt, task } = order else { continue };
                let answer = match task.call.map(|call| *call) {
                    Some(Request::Submit(request)) => return self.told(Some(request.manifest)),
                    Some(request) => self.ask(request)?,
                    None => continue,
                };
                self.input(Input::Report(Report::Answered { attempt, at: clock::now(), answer: Box::new(answer) }))?;
            }
            let step = self.engine.run_of::<submission::Run>(RUN).map(|run| run.state.walk.step);
            // A call is repeated; whatever else is waited for may take for ever.
            let Some(WalkStep::Pausing(until)) = step else { return self.told(None) };
            let pause = until.since(clock::now());
            self.left(pause)?;
            thread::sleep(pause);
            self.input(Input::Tick)?;
        }
    }

    /// Returns how much time is left after so much of it.
    fn left(&self, used: Duration) -> Result<Duration, Fault> {
        WITHIN.checked_sub(self.began.elapsed() + used).filter(|left| !left.is_zero()).ok_or_else(|| {
            let text =
                format!("the trial takes longer than {} s; `octoflow job trace` shows a real one", WITHIN.as_secs());
            Fault::BadRequest(text)
        })
    }

    fn ask(&self, request: Request) -> Result<Answer, Fault> {
        let left = self.left(Duration::ZERO)?;
        match request {
            Request::Http(mut request) => {
                request.timeout = request.timeout.min(left);
                request.idempotency_key = request.idempotency_key.map(|key| format!("{key}?trial={}", self.key));
                Ok(self.registry.handle().caller.call(request))
            }
            Request::Builtin(request) => Ok(self.registry.handle().try_builtin(request)?),
            Request::Object(_)
            | Request::Listing(_)
            | Request::Probe(_)
            | Request::Make(_)
            | Request::Submit(_)
            | Request::Remove(_) => Ok(Answer::Refused("a trial only asks plugins".to_owned())),
        }
    }

    /// Tells what became of the job.
    fn told(self, runs: Option<Value>) -> Result<Value, Fault> {
        let run = fold(RUN, self.facts).map_err(|why| Fault::BadRequest(why.to_string()))?;
        let mut told = run.object()["status"].take();
        told["runs"] = Value::Null;
        let Some(manifest) = runs else { return Ok(told) };
        match admit(&manifest, &self.registry.handle().catalog()?) {
            Ok(admitted) => told["runs"] = admitted.manifest,
            Err(problems) => {
                let kind = manifest["kind"].as_str().unwrap_or_default();
                let why = listed(&problems.0);
                (told["phase"], told["state"]) = (json!("failed"), json!("failed"));
                told["message"] = json!(format!("its {kind} is refused: {why}"));
            }
        }
        Ok(told)
    }
}
