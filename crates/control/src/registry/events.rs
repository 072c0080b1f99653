//! External events: each is matched against every WorkflowEventBinding of its namespace, and matching bindings submit
//! runs. An invalid binding does not affect the others.

use octoflow_engine::argo::{
    EVENT_BINDING, WORKFLOW,
    binding::{self, IncomingEvent},
};
use serde_json::Value;

use crate::{
    clock,
    registry::{Fault, Registry, WriteOptions},
};

/// Result of an event at one binding.
#[derive(Debug)]
pub struct Dispatched {
    pub binding: String,
    pub outcome: EventOutcome,
}

#[derive(Debug)]
pub enum EventOutcome {
    /// The selector does not match.
    NoMatch,
    /// The submitted run.
    Submitted(Box<Value>),
    /// The binding is invalid, or its workflow was not admitted.
    Malformed(String),
    /// The controller failed.
    Failed(Fault),
}

impl Registry {
    /// Dispatches an event to every binding of the namespace. Header names are in lower case; only those that begin
    /// with `x-` are visible to the bindings.
    pub fn dispatch(
        &self,
        namespace: &str,
        discriminator: &str,
        payload: Value,
        metadata: Vec<(String, Vec<String>)>,
    ) -> Result<Vec<Dispatched>, Fault> {
        let (namespace, discriminator) = (namespace.to_owned(), discriminator.to_owned());
        let event = IncomingEvent { namespace, discriminator, payload, metadata, at: clock::now() };
        let kind = &EVENT_BINDING;
        let bindings = self.read(|reader| Ok(reader.objects(kind.key, Some(&event.namespace))?))?;
        let one = |object: octoflow_store::Object| {
            let outcome = match serde_json::from_slice::<Value>(&object.body) {
                Ok(body) => self.dispatch_to(&body, &event),
                Err(error) => EventOutcome::Malformed(format!("it cannot be read: {error}")),
            };
            Dispatched { binding: object.name, outcome }
        };
        Ok(bindings.into_iter().map(one).collect())
    }

    fn dispatch_to(&self, body: &Value, event: &IncomingEvent) -> EventOutcome {
        let workflow = match binding::submission(body, event) {
            Ok(Some(workflow)) => workflow,
            Ok(None) => return EventOutcome::NoMatch,
            Err(why) => return EventOutcome::Malformed(why),
        };
        let kind = &WORKFLOW;
        match self.create(kind, &event.namespace, workflow, &WriteOptions::default()) {
            Ok(run) => EventOutcome::Submitted(Box::new(run)),
            Err(fault @ Fault::Controller(_)) => EventOutcome::Failed(fault),
            Err(fault) => EventOutcome::Malformed(fault.to_string()),
        }
    }
}
