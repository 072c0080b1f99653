//! The area of a route: which namespaces it concerns, and whether a caller confined to some namespaces may use it.
//! Every route has an area; the default is the whole server, which no confined caller may touch. Checked before
//! handlers run, so none can forget it.

use octoflow_control::registry::Fault as RegistryFault;

use crate::{
    answer::{fault::Fault, query::Query},
    app::App,
    call::Params,
    gate::access::{Caller, Scope},
    route::{Need, Route},
};

/// Namespaces that a route's answers and changes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// The namespace in the path, `{namespace}`.
    Path,
    /// The namespace in a query parameter; all namespaces without it.
    Query(&'static str),
    /// The namespace of the workflow in the path, `{uid}`.
    Uid,
    /// None in particular, such as discovery; or the handler filters by what the caller may see.
    Shared,
    /// All namespaces, or the server itself.
    Server,
}

impl Area {
    /// Derives the area from the pattern of a path.
    pub(crate) fn of(path: &str, need: Need) -> Self {
        if path.contains("{namespace}") {
            Self::Path
        } else if path.contains("{uid}") {
            Self::Uid
        } else if matches!(need, Need::Nothing | Need::Token) {
            Self::Shared
        } else {
            Self::Server
        }
    }
}

/// Checks whether this caller may send this request, as far as namespaces are concerned.
pub(crate) async fn check(
    app: &App,
    route: &Route,
    need: Need,
    params: &Params,
    query: &str,
    caller: &Caller,
) -> Result<(), Fault> {
    let scope = &caller.scope;
    if scope.is_all() || need == Need::Nothing {
        return Ok(());
    }
    if need == Need::Admin {
        return Err(Fault::forbidden(format!(
            "the token of `{}` is for {scope} only; this needs an admin",
            caller.name
        )));
    }
    let named = |name: &str| params.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    match route.area {
        Area::Shared => Ok(()),
        Area::Path => inside(scope, named("namespace"), caller),
        Area::Query(name) => inside(scope, Query::parse(query).get(name), caller),
        Area::Server => inside(scope, None, caller),
        Area::Uid => of_uid(app, scope, named("uid").unwrap_or_default()).await,
    }
}

fn inside(scope: &Scope, namespace: Option<&str>, caller: &Caller) -> Result<(), Fault> {
    let about = match namespace {
        Some(namespace) if scope.contains(namespace) => return Ok(()),
        Some(namespace) => format!("this is about the namespace {namespace}"),
        None => "this is about all namespaces or about the server; name one namespace".to_owned(),
    };
    Err(Fault::forbidden(format!("the token of `{}` is for {scope} only, and {about}", caller.name)))
}

/// A workflow of another namespace is reported as not found.
async fn of_uid(app: &App, scope: &Scope, uid: &str) -> Result<(), Fault> {
    let kind = crate::faces::argo::kind("Workflow");
    let missing = || Fault::from(RegistryFault::NotFound { kind, name: uid.to_owned() });
    let (registry, wanted) = (app.registry.clone(), uid.to_owned());
    let found = tokio::task::spawn_blocking(move || registry.find_run_by_uid(kind, &wanted)).await;
    let found = found.map_err(|error| Fault::internal(format!("a workflow could not be looked up: {error}")))?;
    match found {
        Ok(found) if scope.contains(&found.row.namespace) => Ok(()),
        Ok(_) => Err(missing()),
        Err(fault) => Err(fault.into()),
    }
}
