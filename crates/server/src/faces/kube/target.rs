//! Target of a path: kind, optional namespace, optional name. Invalid names are refused here, before any lookup.

use octoflow_control::registry::Kind;

use crate::{answer::fault::Fault, call::Call};

#[derive(Clone, Debug)]
pub(super) struct Target {
    pub kind: &'static Kind,
    /// `None` for all namespaces, or for a kind without namespaces.
    pub namespace: Option<String>,
    name: Option<String>,
}

impl Target {
    pub(super) fn of(call: &Call, kind: &'static Kind) -> Result<Self, Fault> {
        let part = |name: &str| call.optional_param(name).map(segment).transpose();
        let (namespace, name) = match kind.name {
            "Namespace" => (None, part("namespace")?),
            _ => (part("namespace")?, part("name")?),
        };
        Ok(Self { kind, namespace, name })
    }

    /// Returns the namespace as the registry expects it.
    pub(super) fn space(&self) -> String {
        self.namespace.clone().unwrap_or_default()
    }

    /// Returns the name; empty for routes without one.
    pub(super) fn name(&self) -> String {
        self.name.clone().unwrap_or_default()
    }
}

/// Checks one segment of a path. Names are part of file names, too.
fn segment(text: &str) -> Result<String, Fault> {
    let bad = text.is_empty()
        || text.len() > 253
        || matches!(text, "." | "..")
        || text.contains(['/', '\\', '%'])
        || text.chars().any(char::is_control);
    if bad {
        let shown: String = text.chars().take(80).collect();
        return Err(Fault::bad_request(format!(
            "{shown:?} is no name: it may be 253 letters long and have none of / \\ % and no control characters"
        )));
    }
    Ok(text.to_owned())
}
