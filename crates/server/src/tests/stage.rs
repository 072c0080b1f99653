//! Test harness: a controller in which every task succeeds at once, and requests to it without a network.

use std::{
    net::IpAddr,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, Method},
};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use octoflow_control::{Capacity, Config, Controller, NodeConfig, Place, registry::Registry};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{
    Limits,
    answer::Answer,
    app::{App, Inner},
    gate::{
        access::{Access, AdminSource, DefaultPassword},
        audit::Audit,
        hosts::Hosts,
        meter::Meter,
    },
    listen::{Peer, streams::Streams},
    route,
};

pub(super) struct Stage {
    pub dir: TempDir,
    pub app: App,
    pub router: Router,
}

/// Result of opening a controller: itself, and notices.
type Opened = Result<(Controller, Vec<String>), octoflow_control::Error>;

/// Host under which the server is addressed.
pub(super) const HOST: &str = "127.0.0.1:2746";

/// Complete response.
pub(super) struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(super) async fn of(answer: Answer) -> Self {
        let (head, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Self { status: head.status.as_u16(), headers: head.headers, text }
    }
}

pub(super) fn controller(dir: &TempDir) -> Config {
    let capacity = Capacity { slots: 4, cpu_milli: 4000, memory_bytes: 1 << 30 };
    Config {
        data_dir: dir.path().to_owned(),
        capacity,
        node: NodeConfig::default(),
        place: Place::Nowhere,
        secrets_key: None,
    }
}

impl Stage {
    pub(super) fn new() -> Self {
        Self::with(Limits::default(), AdminSource::Stored)
    }

    pub(super) fn with(limits: Limits, opening: AdminSource) -> Self {
        Self::again(tempfile::tempdir().unwrap(), limits, opening)
    }

    /// A server started in this directory. The tests use the admin's default password.
    pub(super) fn again(dir: TempDir, limits: Limits, opening: AdminSource) -> Self {
        Self::started(dir, Controller::open, limits, opening, DefaultPassword::Everybody)
    }

    /// An ordinary server on loopback: a first token, and the default password for its owner only.
    pub(super) fn ordinary(dir: TempDir) -> Self {
        let stage =
            Self::started(dir, Controller::open, Limits::default(), AdminSource::Stored, DefaultPassword::Owner);
        stage.app.access.credentials.prepare_first_token(stage.dir.path()).unwrap();
        stage
    }

    /// A server that has not resumed unfinished runs yet.
    pub(super) fn starting(dir: TempDir) -> Self {
        let everybody = DefaultPassword::Everybody;
        Self::started(dir, Controller::open_for_restore, Limits::default(), AdminSource::Stored, everybody)
    }

    fn started(
        dir: TempDir,
        open: fn(Config) -> Opened,
        limits: Limits,
        opening: AdminSource,
        default: DefaultPassword,
    ) -> Self {
        let (controller, _) = open(controller(&dir)).unwrap();
        let registry = Registry::new(controller).unwrap();
        let app = App::new(Inner {
            registry: registry.clone(),
            access: Access::open(registry.clone(), &opening, default).unwrap(),
            hosts: Hosts::default(),
            longest_body: 1 << 20,
            limits,
            closing: CancellationToken::new(),
            started: Instant::now(),
            streams: Streams::new(limits.streams, limits.streams_per_token),
            meter: Meter::new("test".to_owned()),
            audit: Audit::open(dir.path(), registry.controller().supervisor()).unwrap(),
            metrics_open: false,
            ready: Mutex::new(None),
        });
        let router = route::router(&app);
        Self { dir, app, router }
    }

    /// Ends this server; the directory stays.
    pub(super) fn close(self) -> TempDir {
        self.app.registry.close().unwrap();
        self.dir
    }

    /// Returns the head of an answer; its body may be endless.
    pub(super) async fn answer(&self, request: Request) -> Answer {
        TowerToHyperService::new(self.router.clone()).call(request).await.unwrap()
    }

    pub(super) async fn send(&self, request: Request) -> Reply {
        Reply::of(self.answer(request).await).await
    }

    pub(super) async fn get(&self, path: &str, token: &str) -> Reply {
        self.send(request(Method::GET, path, Some(token), None)).await
    }

    pub(super) async fn ask(&self, method: Method, path: &str, token: &str, body: &Value) -> Reply {
        self.send(request(method, path, Some(token), Some(body))).await
    }
}

/// Makes a request from a unique address, so that tests do not rate limit each other.
pub(super) fn request(method: Method, path: &str, token: Option<&str>, body: Option<&Value>) -> Request {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let [_, b, c, d] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    request_from(IpAddr::from([10, b, c, d]), method, path, token, body)
}

pub(super) fn request_from(
    peer: IpAddr,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<&Value>,
) -> Request {
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let mut request = Request::builder().method(method).uri(path).header("host", HOST).extension(Peer(peer));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(body).unwrap()
}
