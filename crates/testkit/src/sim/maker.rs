//! The controller's worker that makes the jobs of flows and the runs of resource templates, tests conditions and deletes jobs:
//! slow, sometimes refused, and forgotten with the controller when that crashes. It submits through the same door as the real one.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_control::{Acceptance, Error, Ticket, VirtualLoop};
use octoflow_engine::{
    admit::{Catalog, admit},
    kinds::{Kind, of_key},
};
use octoflow_model::{
    AttemptId, Order, Report, RunId, Task, Time,
    request::{Answer, MakeRequest, ManifestText, ObjectRequest, Request, SubmitRequest},
    submission::{Stored, Submission, SubmitContext},
};
use serde_json::{Value, json};

use super::{
    calendar::{Calendar, Event, ticks},
    draw::Draw,
    failure::{Broken, Guarantee, broken},
    walk,
};

/// Numbers of jobs that flows order begin here.
const FIRST: u64 = 10_000;

pub(super) struct Maker {
    draw: Draw,
    work: BTreeMap<AttemptId, Work>,
    /// Templates as they are now. They outlive crashes.
    templates: BTreeMap<String, Value>,
    /// Every template is there from now on.
    complete: bool,
    /// Jobs that were submitted so far.
    made: u64,
    /// Runs that were deleted.
    deleted: BTreeSet<RunId>,
}

struct Work {
    request: Request,
    state: State,
    told_to_end: bool,
}

enum State {
    /// It is done when its time comes.
    Due,
    /// The template is missing.
    Held(String),
    /// Handed in, and not answered.
    Submitted(Ticket),
    /// Made: the engine tells the flow from now on. Or answered.
    Done,
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

impl Maker {
    pub(super) fn new(seed: u64, templates: BTreeMap<String, Value>) -> Self {
        Self {
            draw: Draw::new(seed, "maker"),
            work: BTreeMap::new(),
            templates,
            complete: false,
            made: 0,
            deleted: BTreeSet::new(),
        }
    }

    pub(super) fn note_deletion(&mut self, run: RunId) {
        self.deleted.insert(run);
    }

    /// The controller is gone, and with it everything that was to be made.
    pub(super) fn crash(&mut self) {
        self.work.clear();
    }

    pub(super) fn send(&mut self, order: &Order, now: Time, calendar: &mut Calendar) -> Result<(), Broken> {
        let id = order.attempt();
        match order {
            Order::Start { task, .. } => {
                if self.work.contains_key(&id) {
                    return broken(Guarantee::Fenced, format!("attempt {id} ({}) is ordered twice", task.name));
                }
                self.start(id, task, now, calendar)
            }
            Order::Stop { .. } | Order::Kill { .. } => {
                let Some(work) = self.work.get_mut(&id) else { return Ok(()) };
                work.told_to_end = true;
                if matches!(work.state, State::Due | State::Held(_)) {
                    self.answer(id, Answer::Stopped, now, calendar);
                }
                Ok(())
            }
            Order::Forget { .. } => {
                self.work.remove(&id);
                Ok(())
            }
        }
    }

    fn start(&mut self, id: AttemptId, task: &Task, now: Time, calendar: &mut Calendar) -> Result<(), Broken> {
        let Some(request) = task.call.as_deref() else {
            return broken(Guarantee::Fenced, format!("{id} of a flow is no request"));
        };
        // Slow now and then.
        let delay = if self.draw.chance(60) { self.draw.below(4) } else { self.draw.below(200) };
        calendar.put(now.saturating_add(ticks(delay)), Event::Make(id));
        self.work.insert(id, Work { request: request.clone(), state: State::Due, told_to_end: false });
        Ok(())
    }

    /// The controller is back and tells what it believes to be under way.
    pub(super) fn adopt(
        &mut self,
        believed: &[(AttemptId, Box<Task>)],
        now: Time,
        calendar: &mut Calendar,
    ) -> Result<(), Broken> {
        let known: BTreeSet<AttemptId> = believed.iter().map(|(id, _)| *id).collect();
        self.work.retain(|id, _| known.contains(id));
        for (id, task) in believed {
            // An answer that got lost on its way is given again.
            self.work.remove(id);
            self.start(*id, task, now, calendar)?;
        }
        Ok(())
    }

    fn answer(&mut self, id: AttemptId, answer: Answer, now: Time, calendar: &mut Calendar) {
        if let Some(work) = self.work.get_mut(&id) {
            work.state = State::Done;
        }
        let at = now.saturating_add(ticks(self.draw.below(10)));
        let report = Report::Answered { attempt: id, at: now, answer: Box::new(answer) };
        if self.draw.chance(10) {
            calendar.put(at.saturating_add(ticks(self.draw.below(100))), Event::Report(report.clone()));
        }
        calendar.put(at, Event::Report(report));
    }

    /// The time of an attempt has come. Tells what it did, for people who want to know.
    pub(super) fn make(
        &mut self,
        id: AttemptId,
        uid: &str,
        now: Time,
        event_loop: &mut VirtualLoop,
        calendar: &mut Calendar,
    ) -> Result<Option<String>, Broken> {
        let Some(work) = self.work.get_mut(&id).filter(|work| matches!(work.state, State::Due)) else {
            return Ok(None);
        };
        let request = match work.request.clone() {
            Request::Make(request) => Ordered::Made(request),
            Request::Submit(request) => Ordered::Given(request),
            Request::Object(request) => return self.order(id, uid, &request, now, event_loop, calendar),
            Request::Http(request) => {
                let answer = walk::answer(&mut self.draw, &request);
                let told = format!("answers {}: {answer:?}", request.url);
                self.answer(id, answer, now, calendar);
                return Ok(Some(told));
            }
            Request::Probe(_) => {
                let answer = if self.draw.chance(90) { Answer::Probed } else { Answer::Failed("closed".to_owned()) };
                self.answer(id, answer, now, calendar);
                return Ok(Some("tests a condition".to_owned()));
            }
            Request::Remove(_) => {
                self.answer(id, Answer::Object(Value::Null), now, calendar);
                return Ok(Some("deletes jobs".to_owned()));
            }
            other => return broken(Guarantee::Fenced, format!("a flow asks for {other:?}")),
        };
        if let Some(child) = request.child() {
            // It was made before, and goes on with everything else: both are in one commit.
            return self.wait_on(id, child, Answer::Object(Value::Null), now, event_loop, calendar);
        }
        let manifest = match &request {
            Ordered::Given(request) => Ok(request.manifest.clone()),
            Ordered::Made(request) => match self.templates.get(&request.template) {
                Some(template) => made(request, template),
                None => {
                    let why = format!("JobTemplate '{}' is missing", request.template);
                    work.state = State::Held(request.template.clone());
                    calendar.put(now, Event::Report(Report::Waiting { attempt: id, at: now, why: why.clone() }));
                    return Ok(Some(why));
                }
            },
        };
        if self.draw.chance(4) {
            self.answer(id, Answer::Refused("there is no queue".to_owned()), now, calendar);
            return Ok(Some("is refused".to_owned()));
        }
        match manifest.and_then(|manifest| submission(id, uid, &request, &manifest, now)) {
            Err(why) => self.answer(id, Answer::Refused(why), now, calendar),
            Ok(submission) => {
                self.made += 1;
                let run = RunId(FIRST + self.made);
                let ticket = event_loop.submit(run, Box::new(submission.clone()), None, Acceptance::default());
                work.state = State::Submitted(ticket);
                if self.draw.chance(5) {
                    // It repeats itself, under another number and name: one of them is refused.
                    self.made += 1;
                    let again = Submission { name: format!("{}-again", submission.name), ..submission };
                    let run = RunId(FIRST + self.made);
                    drop(event_loop.submit(run, Box::new(again), None, Acceptance::default()));
                }
                return Ok(Some(format!("submits {} as run {run}", request.identity().0)));
            }
        }
        Ok(Some("is refused".to_owned()))
    }

    /// Goes on waiting for a run that was made before: the engine tells of it, unless it was deleted meanwhile.
    fn wait_on(
        &mut self,
        id: AttemptId,
        child: RunId,
        gone: Answer,
        now: Time,
        event_loop: &VirtualLoop,
        calendar: &mut Calendar,
    ) -> Result<Option<String>, Broken> {
        if event_loop.engine().run(child).is_some() {
            if let Some(work) = self.work.get_mut(&id) {
                work.state = State::Done;
            }
            return Ok(None);
        }
        if !self.deleted.contains(&child) {
            return broken(Guarantee::Together, format!("{id} waits for run {child}, which is not open"));
        }
        self.answer(id, gone, now, calendar);
        Ok(Some(format!("finds that run {child} was deleted")))
    }

    /// Makes the run that a resource template orders.
    fn order(
        &mut self,
        id: AttemptId,
        uid: &str,
        request: &ObjectRequest,
        now: Time,
        event_loop: &mut VirtualLoop,
        calendar: &mut Calendar,
    ) -> Result<Option<String>, Broken> {
        let known = event_loop.engine().run(id.run).and_then(|run| run.child_of(id.task));
        if let Some(child) = request.child.or(known) {
            let gone = Answer::Refused("it was deleted while it was waited for".to_owned());
            return self.wait_on(id, child, gone, now, event_loop, calendar);
        }
        if self.draw.chance(4) {
            self.answer(id, Answer::Refused("there is no queue".to_owned()), now, calendar);
            return Ok(Some("is refused".to_owned()));
        }
        let submission = ordered(id, uid, request, now)?;
        let name = submission.name.clone();
        self.made += 1;
        let run = RunId(FIRST + self.made);
        let ticket = event_loop.submit(run, Box::new(submission), None, Acceptance::default());
        if let Some(work) = self.work.get_mut(&id) {
            work.state = State::Submitted(ticket);
        }
        Ok(Some(format!("submits {name} as run {run}")))
    }

    /// Reads the answers to what was handed in.
    pub(super) fn read_answers(&mut self, now: Time, calendar: &mut Calendar) -> Result<(), Broken> {
        let mut answered = Vec::new();
        for (id, work) in &mut self.work {
            if let State::Submitted(ticket) = &mut work.state
                && let Some(answer) = ticket.poll()
            {
                answered.push((*id, answer));
            }
        }
        for (id, answer) in answered {
            match answer {
                Ok(()) => {}
                Err(error) if error.is_outage() => {
                    if let Some(work) = self.work.get_mut(&id) {
                        work.state = State::Due;
                    }
                    calendar.put(now.saturating_add(ticks(self.draw.below(50) + 1)), Event::Make(id));
                    continue;
                }
                Err(Error::Refused(why)) => self.answer(id, Answer::Refused(why.to_string()), now, calendar),
                Err(error) => return broken(Guarantee::Acknowledged, format!("the job of {id} is refused: {error}")),
            }
            if let Some(work) = self.work.get_mut(&id) {
                work.state = State::Done;
            }
        }
        Ok(())
    }

    /// A template is there, or another one: those who waited for it go on.
    /// Somebody deletes a template, unless they were told that all are needed: who was held up until then does not.
    pub(super) fn delete(&mut self, name: &str) {
        if !self.complete {
            self.templates.remove(name);
        }
    }

    pub(super) fn put_all(&mut self, all: &BTreeMap<String, Value>, now: Time, calendar: &mut Calendar) {
        self.complete = true;
        for (name, object) in all {
            self.put(name, object.clone(), now, calendar);
        }
    }

    pub(super) fn put(&mut self, name: &str, template: Value, now: Time, calendar: &mut Calendar) {
        self.templates.insert(name.to_owned(), template);
        for (id, work) in &mut self.work {
            if matches!(&work.state, State::Held(held) if held == name) {
                work.state = State::Due;
                calendar.put(now, Event::Make(*id));
            }
        }
    }

    pub(super) fn answers_for(&self, id: AttemptId) -> bool {
        self.work.contains_key(&id)
    }

    /// Returns what is not answered.
    pub(super) fn under_way(&self) -> impl Iterator<Item = AttemptId> {
        self.work.iter().filter(|(_, work)| !matches!(work.state, State::Done)).map(|(id, _)| *id)
    }

    pub(super) fn told_to_end(&self, id: AttemptId) -> bool {
        self.work.get(&id).is_none_or(|work| work.told_to_end)
    }
}

/// An order for a run: of a template, or of a manifest.
enum Ordered {
    Made(MakeRequest),
    Given(SubmitRequest),
}

impl Ordered {
    fn child(&self) -> Option<RunId> {
        match self {
            Self::Made(request) => request.child,
            Self::Given(request) => request.child,
        }
    }

    /// Name, namespace and seed.
    fn identity(&self) -> (&str, &str, &str) {
        match self {
            Self::Made(request) => (&request.name, &request.namespace, &request.seed),
            Self::Given(request) => (&request.name, &request.namespace, &request.seed),
        }
    }
}

/// Makes the manifest of a job of a template, as the controller does.
fn made(request: &MakeRequest, template: &Value) -> Result<Value, String> {
    let make = of_key(&request.template_kind).and_then(|kind| kind.make).ok_or("no runs are made of it")?;
    Ok(make(template, request))
}

/// Makes the submission of a run, as the controller does; on error returns why it is refused.
fn submission(id: AttemptId, uid: &str, request: &Ordered, manifest: &Value, now: Time) -> Result<Submission, String> {
    let admitted = admit(manifest, &Everything).map_err(|problems| problems.render(false))?;
    let (name, namespace, seed) = request.identity();
    Ok(Submission {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        uid: format!("{uid}/{seed}"),
        at: now,
        manifest: admitted.manifest,
        stored: Stored::default(),
        previous: None,
        parent: Some(id.run),
        ordered_by: Some(id),
        context: SubmitContext::default(),
    })
}

/// Makes the submission of a run that a resource template orders, as the controller does.
fn ordered(id: AttemptId, uid: &str, request: &ObjectRequest, now: Time) -> Result<Submission, Broken> {
    let ManifestText::Inline(text) = &request.manifest else {
        return broken(Guarantee::Admitted, format!("{id} orders something that lies elsewhere"));
    };
    let mut object: Value = serde_json::from_str(text)
        .or_else(|error| broken(Guarantee::Admitted, format!("{id} orders no object: {error}")))?;
    // TaskSets are called by letters and digits only.
    let owner = uid.replace('-', "");
    let name = format!("c{owner}t{}a{}r{}", id.task, id.attempt, request.retries);
    object["metadata"] = json!({"name": name});
    if let Some(owner) = &request.owner {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": owner.name, "uid": owner.uid,
        }]);
    }
    let admitted = admit(&object, &Everything)
        .or_else(|problems| broken(Guarantee::Admitted, format!("{}\n{object:#}", problems.render(false))))?;
    Ok(Submission {
        name,
        namespace: request.namespace.clone(),
        uid: format!("{uid}#{}/{}/{}", request.retries, id.task, id.attempt),
        at: now,
        manifest: admitted.manifest,
        stored: admitted.stored,
        previous: None,
        parent: Some(id.run),
        ordered_by: Some(id),
        context: SubmitContext::default(),
    })
}
