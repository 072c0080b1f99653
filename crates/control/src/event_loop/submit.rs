//! Accepting a run: its name and its idempotency key must be free, in the store and among what is on its way there. A run
//! that is accepted begins later, under backpressure.

use std::sync::PoisonError;

use octoflow_engine::{Dialect, Input, Program, dialect, rerun};
use octoflow_model::{RunId, Time, submission::Submission};
use octoflow_store::{Change, RunRow};

use super::{EventLoop, Name, Terms, Watcher};
use crate::Error;

/// Returns where a name is taken while its run is on its way to the store: in its namespace, or everywhere.
pub(crate) fn reserved_in<'a>(dialect: &Dialect, namespace: &'a str) -> &'a str {
    if dialect.names_are_ids { "" } else { namespace }
}

impl EventLoop {
    pub(super) fn submit(
        &mut self,
        run: RunId,
        submission: Box<Submission>,
        program: Option<Program>,
        terms: Terms,
        watcher: Option<Watcher>,
        now: Time,
    ) -> Result<(), Error> {
        let Terms { claim, replaces, beside } = terms;
        if let Some(claim) = &claim
            && let Some(run) = self.claims.made(claim, &*self.storage, now)?
        {
            return Err(Error::Made { run });
        }
        let known =
            dialect::of(&submission.manifest).map_err(|why| Error::Object { what: submission.name.clone(), why })?;
        let kind = known.kind.key.to_owned();
        let scope = reserved_in(known, &submission.namespace).to_owned();
        let name: Name = (scope, kind, submission.name.clone());
        // In this order: a name leaves the set when the store has it.
        let pending = self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(&name);
        let holder = self.holder(known, &submission)?;
        match replaces {
            // Somebody may have retried it, or deleted it, at the same time.
            Some(old) if self.replaced.contains(&old) => {
                return Err(rerun::RerunRefusal::Open { phase: "Running".to_owned() }.into());
            }
            Some(old) if holder.as_ref().is_none_or(|holder| holder.run != old || !holder.archived) => {
                return Err(Error::UnknownRun(old));
            }
            Some(_) => {}
            None if pending || holder.is_some() => {
                let namespace = holder.map_or(submission.namespace, |holder| holder.namespace);
                return Err(Error::NameTaken { namespace, kind: name.1, name: name.2 });
            }
            None => {}
        }
        self.check_beside(&beside)?;
        if !self.adopted {
            self.adopt(Vec::new())?;
        }
        if let Some(watcher) = watcher {
            self.watch(run, watcher, 0);
        }
        self.input(Input::Submit { run, submission, program }, now)?;
        self.memory.take(run);
        self.accepted.push_back(run);
        if let Some(old) = replaces {
            self.replaces.insert(run, old);
            self.replaced.insert(old);
        }
        let mut beside = beside;
        beside.extend(self.bring_objects(run, now)?);
        if !beside.is_empty() {
            self.beside.insert(run, beside);
        }
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        self.named.push(name);
        if let Some(claim) = claim {
            self.claims.hold(run, claim);
        }
        Ok(())
    }

    /// Returns the run that has the name of a submission. Where names are ids that may be one of another namespace.
    fn holder(&self, dialect: &Dialect, submission: &Submission) -> Result<Option<RunRow>, Error> {
        let (reader, kind) = (self.storage.reader()?, dialect.kind.key);
        let beside = reader.run_by_name(&submission.namespace, Some(kind), &submission.name)?;
        if beside.is_some() || !dialect.names_are_ids {
            return Ok(beside);
        }
        Ok(reader.runs_named(kind, &submission.name)?.into_iter().next())
    }

    /// A commit that is refused would take everything else of it along, so that is found out before.
    fn check_beside(&self, beside: &[Change]) -> Result<(), Error> {
        for change in beside {
            if let Change::Tick(tick) = change
                && self.storage.reader()?.tick(&tick.uid, tick.nominal)?.is_some()
            {
                let (uid, nominal) = (tick.uid.clone(), tick.nominal);
                return Err(octoflow_store::Error::TickTaken { uid, nominal }.into());
            }
        }
        Ok(())
    }
}
