//! Runs that others make: a template is read as it is at that moment, and its run submitted through the same door as a
//! controller's. A missing template is waited for.

use octoflow_control::{Acceptance, Error, Ticket};
use octoflow_engine::{
    admit::{Catalog, admit},
    kinds::{self, Kind},
};
use octoflow_model::{
    AttemptId, Report,
    request::{Answer, MakeRequest},
    submission::{Submission, SubmitContext},
};
use serde_json::Value;

use super::{Simulation, id};

/// An order to make a run that is not carried out yet.
pub(super) struct MakeOrder {
    pub attempt: AttemptId,
    request: Box<MakeRequest>,
    /// `None` while its template is missing.
    ticket: Option<Ticket>,
}

struct Everything;

impl Catalog for Everything {
    fn has_object(&self, _: &'static Kind, _: &str, _: &str) -> bool {
        true
    }
}

impl Simulation<'_> {
    pub(super) fn make(&mut self, attempt: AttemptId, request: &MakeRequest) {
        // What was made goes on by itself.
        if request.child.is_some() || self.orders.iter().any(|order| order.attempt == attempt) {
            return;
        }
        let Some(template) = self.scenario.templates.get(&request.template) else {
            let why = format!("{} '{}' is missing", request.template_kind, request.template);
            self.orders.push(MakeOrder { attempt, request: Box::new(request.clone()), ticket: None });
            self.event_loop.report(Report::Waiting { attempt, at: self.now, why });
            return;
        };
        match self.submission(attempt, request, template) {
            Err(why) => self.refuse_order(attempt, why),
            Ok(submission) => {
                let run = self.facts.len();
                self.facts.push(Vec::new());
                self.made.push(0);
                self.active.push(0);
                self.outcome.peaks.push(0);
                self.outcome.names.push(submission.name.clone());
                let ticket = self.event_loop.submit(id(run), Box::new(submission), None, Acceptance::default());
                self.orders.push(MakeOrder { attempt, request: Box::new(request.clone()), ticket: Some(ticket) });
            }
        }
    }

    fn submission(&self, attempt: AttemptId, request: &MakeRequest, template: &Value) -> Result<Submission, String> {
        let make = kinds::of_key(&request.template_kind).and_then(|kind| kind.make);
        let make = make.ok_or_else(|| format!("no runs are made of a {}", request.template_kind))?;
        let admitted = admit(&make(template, request), &Everything).map_err(|problems| problems.render(false))?;
        let parent = self.event_loop.engine().run(attempt.run).map(|run| run.uid().to_owned());
        Ok(Submission {
            name: request.name.clone(),
            namespace: request.namespace.clone(),
            uid: format!("{}/{}", parent.unwrap_or_default(), request.seed),
            at: self.now,
            manifest: admitted.manifest,
            stored: admitted.stored,
            context: SubmitContext::default(),
            previous: None,
            parent: Some(attempt.run),
            ordered_by: Some(attempt),
        })
    }

    fn refuse_order(&mut self, attempt: AttemptId, why: String) {
        let answer = Box::new(Answer::Refused(why));
        self.event_loop.report(Report::Answered { attempt, at: self.now, answer });
    }

    /// Reads the answers to what was submitted.
    pub(super) fn read_answers(&mut self) {
        let mut refused = Vec::new();
        self.orders.retain_mut(|order| match order.ticket.as_mut().and_then(Ticket::poll) {
            Some(Ok(())) => false,
            Some(Err(error)) => {
                refused.push((order.attempt, error.to_string()));
                false
            }
            None => true,
        });
        refused.into_iter().for_each(|(attempt, why)| self.refuse_order(attempt, why));
    }

    /// An order that waits for its template is called off; whether there was one.
    pub(super) fn call_off(&mut self, attempt: AttemptId) -> bool {
        let before = self.orders.len();
        self.orders.retain(|order| order.attempt != attempt || order.ticket.is_some());
        if self.orders.len() == before {
            return false;
        }
        self.event_loop.report(Report::Answered { attempt, at: self.now, answer: Box::new(Answer::Stopped) });
        true
    }

    /// A template is there from now on: what waited for it is made.
    pub(super) fn put_template(&mut self, template: Value) -> Result<(), Error> {
        let name = template["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.scenario.templates.insert(name.clone(), template);
        let waits = |order: &MakeOrder| order.ticket.is_none() && order.request.template == name;
        let (ready, others) = std::mem::take(&mut self.orders).into_iter().partition(waits);
        self.orders = others;
        let ready: Vec<MakeOrder> = ready;
        ready.iter().for_each(|order| self.make(order.attempt, &order.request));
        self.settle()
    }
}
