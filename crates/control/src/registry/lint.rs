//! Validates an object without storing it and without checking whether its name is free.

use octoflow_engine::{Problems, admit::admit};
use serde_json::{Value, json};

use super::{Fault, Kind, Registry, Storage, stored};

/// Placeholder for a name that would be generated, or that an unfinished manifest lacks.
const STAND_IN: &str = "unnamed";

impl Registry {
    /// Returns the object as it was given, or all its problems.
    pub fn lint(&self, kind: &'static Kind, namespace: &str, mut object: Value) -> Result<Value, Fault> {
        self.match_path(kind, namespace, None, &mut object)?;
        let mut named = object.clone();
        let metadata = &mut named["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let name = match (text("name"), text("generateName")) {
            ("", "") => STAND_IN.to_owned(),
            ("", prefix) => format!("{prefix}{STAND_IN}"),
            (name, _) => name.to_owned(),
        };
        metadata["name"] = json!(name);
        match kind.storage {
            Storage::View => return Err(Fault::ReadOnly { kind }),
            Storage::Run(_) => {
                if let Some(fields) = named.as_object_mut() {
                    fields.remove("status");
                }
                let catalog = self.handle().catalog()?;
                admit(&named, &catalog).map_err(|problems| Fault::problems(kind, &name, &problems))?;
            }
            Storage::Stored => {
                stored::check(kind, &named)?;
                if let Some(examine) = kind.examine {
                    let catalog = self.handle().catalog()?;
                    let (problems, _warnings) = examine(&named, &catalog);
                    if !problems.is_empty() {
                        return Err(Fault::problems(kind, &name, &Problems(problems)));
                    }
                }
            }
        }
        Ok(object)
    }
}
