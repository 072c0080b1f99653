//! Server-side apply: merges the fields that a manager applies, unless other managers own them with different values.

use serde_json::Value;

use super::{
    Cause, Created, Fault, Kind, Registry, WriteOptions,
    managed::{self, FieldConflict, ManagedFields, Operation},
    stored,
    write::FieldManager,
};
use crate::clock;

/// Number of tries when an object is created or deleted concurrently.
const TRIES: usize = 8;

#[derive(Clone, Debug, Default)]
pub struct ApplyOptions {
    /// Field manager; must not be empty.
    pub manager: String,
    /// Take fields from their current managers.
    pub force: bool,
    /// Validate everything, store nothing.
    pub dry_run: bool,
    /// Who submits a run that is made, and who writes; see [`WriteOptions`].
    pub submitted_by: Option<String>,
    pub written_by: String,
}

/// Result of an apply.
#[derive(Debug)]
pub struct Applied {
    pub object: Value,
    /// True if the object was created.
    pub created: bool,
    /// What its author should know although it was created.
    pub warnings: Vec<String>,
}

impl Registry {
    pub fn apply(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        mut wanted: Value,
        options: &ApplyOptions,
    ) -> Result<Applied, Fault> {
        if kind.is_view() {
            return Err(Fault::ReadOnly { kind });
        }
        if options.manager.is_empty() {
            return Err(Fault::BadRequest("fieldManager is required for apply patch".to_owned()));
        }
        if !wanted["metadata"]["managedFields"].is_null() {
            return Err(Fault::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        self.match_path(kind, namespace, Some(name), &mut wanted)?;
        stored::prepare(kind, &mut wanted);
        if let Some(fields) = wanted.as_object_mut() {
            // The status cannot be applied.
            fields.remove("status");
        }
        for _ in 0..TRIES {
            match self.apply_to(kind, namespace, name, &wanted, options) {
                Err(Fault::NotFound { .. }) => {}
                done => return done.map(|object| Applied { object, created: false, warnings: Vec::new() }),
            }
            let now = clock::now().to_string();
            let managed = ManagedFields::created(&wanted, &options.manager, Operation::Apply, &now);
            let (dry_run, manager) = (options.dry_run, options.manager.clone());
            let (submitted_by, written_by) = (options.submitted_by.clone(), options.written_by.clone());
            let write = WriteOptions { dry_run, manager, submitted_by, written_by, ..WriteOptions::default() };
            match self.create_by(kind, namespace, wanted.clone(), &write, FieldManager::Known(managed)) {
                Err(Fault::Exists { .. }) => {}
                done => {
                    let Created { object, warnings } = done?;
                    return Ok(Applied { object, created: true, warnings });
                }
            }
        }
        Err(Fault::stale(kind, name))
    }

    fn apply_to(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        wanted: &Value,
        options: &ApplyOptions,
    ) -> Result<Value, Fault> {
        let now = clock::now().to_string();
        self.change(kind, namespace, name, options.dry_run, None, |before| {
            let applied = managed::apply(before, wanted, &options.manager, options.force, &now);
            let mut after = applied.map_err(|clashes| Fault::Owned {
                kind,
                name: name.to_owned(),
                causes: clashes.iter().map(FieldConflict::cause).collect(),
            })?;
            for field in ["resourceVersion", "uid"] {
                if let Some(given) = wanted["metadata"][field].as_str() {
                    after["metadata"][field] = given.into();
                }
            }
            Ok(after)
        })
    }
}

impl FieldConflict {
    fn cause(&self) -> Cause {
        Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with \"{}\" using {}", self.manager, self.version),
            field: managed::shown(&self.path),
        }
    }
}
