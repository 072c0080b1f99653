//! Actions of resource templates on workflows and TaskSets: each is a run of its own in the same controller.

use octoflow_engine::{
    Command,
    admit::{admit, listed},
};
use octoflow_model::{RunId, request::ObjectAction};
use octoflow_store::RunRow;
use serde_json::{Value, json};

use super::{
    ActionResult, Answer, ResourceWorker, Target,
    act::{Action, add_owner, apply_patch},
    action_error::ActionError,
    kind::{exists, not_found},
    submitted,
};
use crate::{
    Error,
    controller::Submit,
    registry::delete::remove_run_if,
    registry::{
        run::of_row,
        steer::{self, ObjectUpdate},
    },
};

/// Maximum depth of runs that create runs, to stop endless recursion.
const MAX_DEPTH: usize = 20;

impl ResourceWorker {
    pub(super) fn act_on_run(&self, order: &Action<'_>) -> Result<ActionResult, ActionError> {
        let name = order.name.as_str();
        if order.request.action == ObjectAction::Create {
            return self.create_run(order);
        }
        let row = self.row(order, name)?;
        let there = || row.clone().ok_or_else(|| not_found(order.kind, name));
        match order.request.action {
            ObjectAction::Create => unreachable!("creating was dealt with"),
            ObjectAction::Get => self.found(&there()?),
            ObjectAction::Apply => match &row {
                Some(row) => self.found(row),
                None => self.create_run(order),
            },
            ObjectAction::Replace => {
                Err(format!("a {} that runs cannot be replaced; create another one", order.kind.noun).into())
            }
            ObjectAction::Patch(how) => {
                let row = there()?;
                let before = self.handle.object(row.run)?;
                let mut after = before.clone();
                apply_patch(order.kind, how, &mut after, &order.given)?;
                self.update_run(order, &row, &before, &after)?;
                self.found(&row)
            }
            ObjectAction::Delete => match row {
                None if order.again || order.flags.ignore_not_found => {
                    Ok(ActionResult::Done { object: Value::Null, target: None, removes: false })
                }
                None => Err(not_found(order.kind, name).into()),
                Some(row) => {
                    if row.run == order.attempt.run {
                        return Err("a workflow cannot delete itself while it runs".to_owned().into());
                    }
                    match self.handle.command(row.run, Command::Terminate) {
                        // A run that is finished, or not run by this process, has nothing to end.
                        Ok(()) | Err(Error::Refused(_)) => {}
                        Err(error) => return Err(error.into()),
                    }
                    let target = Some(Target::Run(row.run, description(&row)));
                    Ok(ActionResult::Done { object: Value::Null, target, removes: true })
                }
            },
        }
    }

    /// Returns the number of runs above the requesting one.
    fn depth(&self, order: &Action<'_>) -> Result<usize, ActionError> {
        let reader = self.handle.store.reader()?;
        let (mut depth, mut at) = (0, Some(order.attempt.run));
        while let Some(run) = at.filter(|_| depth <= MAX_DEPTH) {
            let row = reader.run(run)?;
            (depth, at) = (depth + 1, row.and_then(|row| row.parent));
        }
        Ok(depth)
    }

    /// Admits the run like any other, and submits it under a name and a uid derived from the attempt.
    fn create_run(&self, order: &Action<'_>) -> Result<ActionResult, ActionError> {
        if self.depth(order)? > MAX_DEPTH {
            return Err(format!("runs may make runs {MAX_DEPTH} deep, and this one would be deeper").into());
        }
        if let Some(child) = order.request.child {
            let row = self.handle.store.reader()?.run(child)?;
            let gone = || format!("the {} it created was deleted while it was waited for", order.kind.noun);
            return self.found(&row.ok_or_else(gone)?);
        }
        let uid = order.identity.uid();
        let prefix = order.given["metadata"]["generateName"].as_str().unwrap_or_default();
        let names: Vec<String> = match (order.name.as_str(), prefix) {
            ("", "") => {
                return Err(format!("the {} has neither a name nor a generateName", order.kind.noun).into());
            }
            ("", prefix) => order.identity.names(prefix).collect(),
            (name, _) => vec![name.to_owned()],
        };
        for name in &names {
            if let Some(row) = self.row(order, name)? {
                if row.uid == uid {
                    // Only a version before the engine told parents of their runs can have left it so.
                    return self.found(&row);
                }
                continue;
            }
            let mut manifest = order.given.clone();
            // The engine knows who submitted the run that asks, and writes it down.
            submitted::stamp(order.kind, &mut manifest, "");
            manifest["kind"] = json!(order.kind.name);
            manifest["metadata"]["name"] = json!(name);
            manifest["metadata"]["namespace"] = json!(order.namespace);
            add_owner(&mut manifest, order.request);
            let catalog = self.handle.catalog()?;
            let admitted = admit(&manifest, &catalog).map_err(|problems| listed(&problems.0))?;
            let submit = Submit {
                namespace: order.namespace.clone(),
                name: name.clone(),
                manifest: admitted.manifest,
                stored: admitted.stored,
                claim: None,
            };
            match self.handle.enter(submit, uid.clone(), Some(order.attempt), None) {
                // From here on the engine tells the requesting run what becomes of it.
                Ok(_) => return Ok(ActionResult::Ordered),
                Err(Error::NameTaken { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.taken(order, &names[0])?.into())
    }

    /// Describes why a name cannot be had.
    fn taken(&self, order: &Action<'_>, name: &str) -> Result<String, ActionError> {
        let exists = exists(order.kind, name);
        // A run that is retried gets a new number, and takes the children of the one before over.
        let this = order.attempt.run;
        if !self.row(order, name)?.is_some_and(|row| row.parent == Some(this) && row.run < this) {
            return Ok(exists);
        }
        Ok(format!(
            "{exists}: it was created before this workflow was retried; delete it and retry, or set metadata.generateName \
             instead of metadata.name, so that each try has a name of its own"
        ))
    }

    fn row(&self, order: &Action<'_>, name: &str) -> Result<Option<RunRow>, ActionError> {
        let reader = self.handle.store.reader()?;
        Ok(reader.run_by_name(&order.namespace, Some(order.kind.key), name)?)
    }

    fn found(&self, row: &RunRow) -> Result<ActionResult, ActionError> {
        let object = self.handle.object(row.run)?;
        Ok(ActionResult::Done { object, target: Some(Target::Run(row.run, description(row))), removes: false })
    }

    /// Applies a change of the only mutable parts of a run: metadata, suspension and shutdown.
    fn update_run(&self, order: &Action<'_>, row: &RunRow, before: &Value, after: &Value) -> Result<(), ActionError> {
        let update = ObjectUpdate::between(order.kind, before, after)?;
        Ok(update.apply(&self.handle, order.kind, row)?)
    }

    /// Deletes a finished run with its logs.
    pub(super) fn remove(&self, target: &Target) -> Result<Answer, ActionError> {
        let Target::Run(run, name) = target else { return Ok(Answer::Object(Value::Null)) };
        Ok(match self.remove_run(*run)? {
            warnings if warnings.is_empty() => Answer::Object(Value::Null),
            warnings => Answer::Refused(format!("{name} is deleted, but {}", warnings.join("; "))),
        })
    }

    pub(super) fn remove_run(&self, run: RunId) -> Result<Vec<String>, Error> {
        let Some(row) = self.handle.store.reader()?.run(run)? else { return Ok(Vec::new()) };
        if steer::mark_if_held(&self.handle, &row)? {
            return Ok(Vec::new());
        }
        let (batch, hooks) = self.handle.forget_run(&row)?;
        let left = remove_run_if(&self.handle.store, &self.data_dir, &row, batch)?;
        self.handle.hooks.send_due(hooks);
        Ok(left.warnings)
    }
}

/// Describes a run in messages, such as `workflow 'w'`.
fn description(row: &RunRow) -> String {
    format!("{} '{}'", of_row(row).noun, row.name)
}
