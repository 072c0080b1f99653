//! The table of routes: every path of every face with the privilege it needs. A path that is not in it is denied. A
//! route cannot be added without its privilege, nor, as a test checks, without its request and response: the OpenAPI
//! document is generated from this table.

use std::{future::Future, pin::Pin, sync::Arc};

use axum::{
    Router,
    extract::{RawPathParams, Request},
    http::Method,
    routing::{MethodFilter, on},
};

use crate::{
    answer::{Answer, fault::Fault},
    app::App,
    call::{Call, Params},
    faces::{openapi::operation::Operation, submission},
    gate::{self, area::Area},
};

/// API family, which determines the format of answers and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Face {
    Kube,
    Argo,
    Own,
    /// The submission pipeline: `/v1`.
    Submission,
}

/// Privilege that a route needs. The admin has all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Open to everyone, with or without a token.
    Nothing,
    /// Any valid token. The answer is not confidential, unless its area says otherwise.
    Token,
    ReadJob,
    WriteJob,
    ReadFeature,
    WriteFeature,
    ReadToken,
    WriteToken,
    Admin,
}

impl Need {
    /// Returns the name of the privilege.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Token => "any",
            Self::ReadJob => "read_job",
            Self::WriteJob => "write_job",
            Self::ReadFeature => "read_feature",
            Self::WriteFeature => "write_feature",
            Self::ReadToken => "read_token",
            Self::WriteToken => "write_token",
            Self::Admin => "admin",
        }
    }
}

type Reply = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;
type Handler = Arc<dyn Fn(Call) -> Reply + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Route {
    pub method: Method,
    /// Pattern in axum's notation: `/a/{name}`, `/b/{*rest}`.
    pub path: String,
    pub need: Need,
    /// Namespace that its answers and changes belong to.
    pub area: Area,
    pub face: Face,
    pub handler: Handler,
    /// Description in the OpenAPI document.
    pub operation: Operation,
}

impl Route {
    /// Sets the area, where the path does not tell it.
    pub(crate) fn within(&mut self, area: Area) -> &mut Self {
        self.area = area;
        self
    }

    /// Returns the privilege needed under the current configuration, which may open the metrics.
    pub(crate) fn need(&self, app: &App) -> Need {
        if app.metrics_open && self.path == crate::faces::own::metrics::PATH { Need::Nothing } else { self.need }
    }
}

/// Routes of one face.
pub(crate) struct Table {
    face: Face,
    pub routes: Vec<Route>,
}

impl Table {
    pub(crate) fn new(face: Face) -> Self {
        Self { face, routes: Vec::new() }
    }

    pub(crate) fn add<F>(
        &mut self,
        method: Method,
        path: impl Into<String>,
        need: Need,
        handler: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> &mut Route
    where
        F: Future<Output = Result<Answer, Fault>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |call| Box::pin(handler(call)));
        let (path, operation) = (path.into(), Operation::default());
        let area = Area::of(&path, need);
        self.routes.push_mut(Route { method, path, need, area, face: self.face, handler, operation })
    }

    pub(crate) fn get<F>(
        &mut self,
        path: impl Into<String>,
        need: Need,
        handler: impl Fn(Call) -> F + Send + Sync + 'static,
    ) -> &mut Route
    where
        F: Future<Output = Result<Answer, Fault>> + Send + 'static,
    {
        self.add(Method::GET, path, need, handler)
    }
}

/// Returns every route of the server.
pub(crate) fn all() -> Vec<Route> {
    [
        crate::faces::own::routes(),
        crate::faces::openapi::routes(),
        crate::faces::kube::routes(),
        crate::faces::argo::routes(),
        submission::routes(),
    ]
    .into_iter()
    .flat_map(|table| table.routes)
    .collect()
}

pub(crate) fn router(app: &App) -> Router {
    let mut router = Router::new();
    for route in all() {
        let filter = MethodFilter::try_from(route.method.clone()).expect("the table has ordinary methods only");
        let app = app.clone();
        let (path, face) = (route.path.clone(), route.face);
        let handler = move |params: RawPathParams, request: Request| {
            let params = Params(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
            gate::handle(app.clone(), route.clone(), params, request)
        };
        if face == Face::Submission {
            // Its first implementations served either form of some paths.
            router = router.route(&format!("{path}/"), on(filter, handler.clone()));
        }
        router = router.route(&path, on(filter, handler));
    }
    let (nowhere, otherwise) = (app.clone(), app.clone());
    router
        .fallback(move |request: Request| {
            let path = request.uri().path();
            let (face, fault) = (face_of(path), Fault::not_found(format!("there is nothing at {path}")));
            gate::refuse(nowhere.clone(), face, fault, request)
        })
        .method_not_allowed_fallback(move |request: Request| {
            let (method, path) = (request.method(), request.uri().path());
            let fault = Fault::method_not_allowed(format!("{path} does not know {method}"));
            gate::refuse(otherwise.clone(), face_of(path), fault, request)
        })
}

/// Determines the face of an unknown path, so that its error has the right format.
fn face_of(path: &str) -> Face {
    let argo = [
        "workflow",
        "archived-",
        "cluster-workflow",
        "cron-",
        "info",
        "version",
        "userinfo",
        "events",
        "stream",
        "sync",
        "event-",
        "sensors",
        "tracking",
    ];
    if ["/artifact", "/input-artifacts", "/upload-artifacts"].iter().any(|start| path.starts_with(start)) {
        return Face::Argo;
    }
    if path == submission::ROOT || path.starts_with("/v1/") {
        return Face::Submission;
    }
    match path.strip_prefix("/api/v1/") {
        Some(rest) if argo.iter().any(|start| rest.starts_with(start)) => Face::Argo,
        Some(_) => Face::Kube,
        None if path.starts_with("/apis") || path == "/api" || path.starts_with("/openapi") => Face::Kube,
        None => Face::Own,
    }
}
