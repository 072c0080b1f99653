//! Submission of runs: naming, admission, hand-over to the event loop, and the object as it was accepted.

use std::mem;

use octoflow_engine::{Program, admit::capacity::units, schedule::Estimate};
use octoflow_model::RunId;
use serde_json::{Value, json};

use super::{Cause, Created, Fault, Kind, Registry, WriteOptions, admission::AdmittedRun, meta};
use crate::{
    Claim, Error, clock,
    controller::{Author, Submit},
    event_loop::Entered,
    name_suffix, new_uid, park,
};

/// Number of tries when a generated name is taken.
const NAME_TRIES: usize = 8;

/// Annotation of the answer to a dry run: when the run could start.
pub const EXPECTED_START: &str = "octoflow.io/expected-start";

/// Tells what the annotation of a dry run means.
pub fn expected_start_text(at: &str) -> String {
    match at {
        "now" => "it would start now".to_owned(),
        "unknown" => "it would wait, and nobody knows how long".to_owned(),
        at => format!("it would start by {at}"),
    }
}

/// Result of a submission.
#[derive(Debug)]
pub enum Submitted {
    /// The run as it was accepted, or would have been in a dry run.
    New(Created),
    /// The run exists already, for the same idempotency key.
    Existing(RunId),
}

impl Registry {
    /// Admits and submits a run. It is durable when this returns.
    pub(super) fn submit(
        &self,
        kind: &'static Kind,
        namespace: &str,
        object: Value,
        options: &WriteOptions,
    ) -> Result<Created, Fault> {
        match park::wait(self.submit_async(kind, namespace, object, options))? {
            Submitted::New(created) => Ok(created),
            Submitted::Existing(run) => self.made_before(kind, run, options).map(Into::into),
        }
    }

    /// Like [`Registry::submit`] for callers that must not block: it reads the store and otherwise awaits the event
    /// loop.
    pub(super) async fn submit_async(
        &self,
        kind: &'static Kind,
        namespace: &str,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Submitted, Fault> {
        let _permit = self.handle().in_flight.enter();
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (given, prefix) = (text("name"), text("generateName"));
        if let Some(fields) = object.as_object_mut() {
            // A run starts without the status of another.
            fields.remove("status");
        }
        object["metadata"]["namespace"] = json!(namespace);
        if given.is_empty() && prefix.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Fault::Invalid { kind, name: String::new(), causes: vec![cause] });
        }
        let claim = options.claim.as_ref().filter(|_| !options.dry_run);
        for _ in 0..NAME_TRIES {
            // Checked first: an existing run has the requested name.
            if let Some(run) = self.claimed(claim)? {
                return Ok(Submitted::Existing(run));
            }
            let name = match given.as_str() {
                "" => generated_name(kind, &prefix)?,
                name => name.to_owned(),
            };
            if options.dry_run && kind.dialect().is_some_and(|dialect| dialect.names_are_ids) {
                self.check_unique(kind, &name)?;
            }
            object["metadata"]["name"] = json!(name);
            let wrong = meta::wrong(kind, &object);
            if !wrong.is_empty() {
                return Err(Fault::Invalid { kind, name, causes: wrong });
            }
            let mut admitted = self.admit_run(kind, &name, &object, given.is_empty())?;
            let warnings = mem::take(&mut admitted.warnings);
            if options.dry_run {
                if self.row(kind, namespace, &name)?.is_none() {
                    let expected = self.expected_start(namespace, &admitted, options).await?;
                    let mut manifest = admitted.manifest;
                    manifest["metadata"]["annotations"][EXPECTED_START] = json!(expected);
                    return Ok(Submitted::New(Created { object: manifest, warnings }));
                }
                if given.is_empty() {
                    continue;
                }
                return Err(Fault::Exists { kind, name });
            }
            let (submit, program) = into_submit(namespace, &name, admitted, claim);
            let written_by = Some(options.written_by.clone()).filter(|name| !name.is_empty());
            let author = Author { charged: options.submitted_by.clone(), name: written_by };
            match self.handle().enter_shown(submit, program, new_uid()?, author).await {
                Ok(Entered { shown: Some((revision, mut object)), .. }) => {
                    object["metadata"]["resourceVersion"] = json!(revision.to_string());
                    return Ok(Submitted::New(Created { object, warnings }));
                }
                Ok(Entered { run, shown: None }) => return Ok(Submitted::Existing(run)),
                // A concurrent request with the same idempotency key may have come first.
                Err(Error::NameTaken { .. }) if given.is_empty() || self.claimed(claim)?.is_some() => {}
                Err(Error::NameTaken { .. }) => return Err(Fault::Exists { kind, name }),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Fault::Conflict { kind, name: prefix, why: "every generated name is taken".to_owned() })
    }

    /// Estimates when the tasks of a run could start that are certain to: `now`, a time, or `unknown`.
    async fn expected_start(
        &self,
        namespace: &str,
        admitted: &AdmittedRun,
        options: &WriteOptions,
    ) -> Result<String, Fault> {
        let tenant = options.submitted_by.clone().unwrap_or_else(|| namespace.to_owned());
        let inherited = self.handle().queue_of_namespace(namespace)?;
        let units = units(&admitted.program, &admitted.manifest, inherited.as_deref());
        let now = clock::steady();
        let last = self.handle().look_at_scheduler_async(move |scheduler| {
            let mut last = Some(now);
            for unit in units.iter().filter(|unit| unit.is_certain()) {
                last = match (last, unit.estimate(scheduler, &tenant, now)) {
                    (Some(last), Estimate::Now) => Some(last),
                    (Some(last), Estimate::By(at)) => Some(last.max(at)),
                    (None, _) | (_, Estimate::Unknown) => None,
                };
            }
            last
        });
        Ok(match last.await?.flatten() {
            Some(at) if at == now => "now".to_owned(),
            Some(at) => at.to_string(),
            None => "unknown".to_owned(),
        })
    }

    fn claimed(&self, claim: Option<&Claim>) -> Result<Option<RunId>, Fault> {
        claim.map_or(Ok(None), |claim| self.read(|reader| Ok(claim.made(reader, clock::steady())?)))
    }

    /// Returns the run that exists already for the same idempotency key.
    pub fn made_before(&self, kind: &'static Kind, run: RunId, options: &WriteOptions) -> Result<Value, Fault> {
        let row = self.read(|reader| Ok(reader.run(run)?))?.ok_or_else(|| Fault::Conflict {
            kind,
            name: options.claim.as_ref().map(|claim| claim.key.clone()).unwrap_or_default(),
            why: format!("the {} that was made for this idempotency key has been deleted", kind.noun),
        })?;
        self.run_object(&row)
    }
}

fn into_submit(namespace: &str, name: &str, admitted: AdmittedRun, claim: Option<&Claim>) -> (Submit, Program) {
    let AdmittedRun { manifest, stored, program, .. } = admitted;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    (Submit { namespace, name, manifest, stored, claim: claim.cloned() }, program)
}

/// Appends a random suffix to a prefix, within the limit for names.
fn generated_name(kind: &Kind, prefix: &str) -> Result<String, Error> {
    let suffix = name_suffix()?;
    let longest = kind.dialect().expect("only runs are submitted").max_name_length;
    let kept: String = prefix.chars().take(longest - suffix.len()).collect();
    Ok(format!("{kept}{suffix}"))
}
