//! What part of the server a route is about, and whether a caller whose token is for some namespaces may go there.
//! Every route has an area; one that says nothing is about the whole server, which no such caller may touch. Handlers
//! are not asked, so none can forget.

use octoflow_control::registry::Fault as RegistryFault;

use crate::{
    access::{Caller, Scope},
    app::App,
    call::Params,
    fault::Fault,
    query::Query,
    route::{Need, Route},
};

/// Whose a route's answers and changes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// Of the namespace that stands in the path as `{namespace}`.
    Path,
    /// Of the namespace that a query parameter names; without it, of all.
    Query(&'static str),
    /// Of the namespace of the workflow that stands in the path as `{uid}`.
    Uid,
    /// Nobody's in particular, such as discovery; or the handler answers by what the caller may see.
    Shared,
    /// Of all namespaces, or of the server itself.
    Server,
}

impl Area {
    /// What the pattern of a path tells.
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

/// Whether this caller may send this request, as far as namespaces go.
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

/// A workflow of another namespace is as little there as one that does not exist.
async fn of_uid(app: &App, scope: &Scope, uid: &str) -> Result<(), Fault> {
    let kind = crate::argo::kind("Workflow");
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
