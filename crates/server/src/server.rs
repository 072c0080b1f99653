//! The life cycle of a server: opens the controller, resumes unfinished runs while only the probes are answered, serves
//! requests until a signal comes, and closes the controller so that the next server can adopt running tasks.

use std::{fs, net::SocketAddr, path::Path, sync::Mutex, time::Instant};

use octoflow_control::{Controller, ThreadFailure, new_uid, registry::Registry};
use tokio::{
    net::TcpListener,
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Config, Error, ServerFile, Tls,
    app::{App, Inner},
    gate::{
        access::{Access, AdminSource, DefaultPassword, acceptable, advice, digest, first},
        audit::Audit,
        hosts::Hosts,
        meter::Meter,
        rules,
    },
    listen::{self, Endpoint, local::LocalSocket, streams::Streams, tls},
    route, space,
};

/// Number of open files needed besides connections: the database, logs, tasks.
const FILES_OF_OUR_OWN: u64 = 256;

/// Information for the user once requests are served.
#[derive(Debug)]
pub struct Started<'a> {
    pub address: SocketAddr,
    pub url: &'a str,
    /// SHA-256 fingerprint of the certificate, in hex.
    pub fingerprint: Option<&'a str>,
    /// Messages for people, e.g. about missing capabilities of the machine.
    pub notices: &'a [String],
}

/// Serves until SIGINT or SIGTERM; a second signal ends the process at once. `ready` is called when requests are
/// served.
pub fn serve(config: Config, ready: impl FnOnce(Started<'_>)) -> Result<(), Error> {
    let runtime = Builder::new_multi_thread().enable_all().thread_name("http").build().map_err(Error::Threads)?;
    let served = runtime.block_on(run(config, ready));
    // Requests that still wait for a client are dropped; everything acknowledged is on disk.
    runtime.shutdown_background();
    served
}

async fn run(config: Config, ready: impl FnOnce(Started<'_>)) -> Result<(), Error> {
    let (listen, data_dir) = (config.listen, config.controller.data_dir.clone());
    let files = space::open_files();
    let opening = config.admin_token_file.as_deref().map_or(Ok(AdminSource::Stored), |path| {
        let guarded = config.insecure || listen.ip().to_canonical().is_loopback();
        of_file(path, guarded)
    })?;
    let listener = TcpListener::bind(listen).await.map_err(|source| Error::Listen { address: listen, source })?;
    let address = listener.local_addr().map_err(|source| Error::Listen { address: listen, source })?;
    let default = if config.allow_default_password { DefaultPassword::Everybody } else { DefaultPassword::Owner };
    let (controller, tls, insecure) = (config.controller, config.tls, config.insecure);
    let Opened { registry, access, tls, audit, local, mut notices } =
        blocking(move || open(controller, &opening, default, tls.as_ref(), address, insecure)).await?;
    if access.credentials.default_admits_everybody() {
        notices.push(format!(
            "--allow-default-password: the admin's token is `admin`, so everybody who reaches {address} is admin: every \
             user and every process of this machine, tasks included; choose a password with `octoflow token set-admin -`"
        ));
    } else if access.credentials.has_default() {
        notices.push(format!(
            "nobody has chosen the admin's password: commands of this user and of root need no token, others and kubectl \
             use the one in {}",
            first::path(&data_dir).display()
        ));
    }
    let wanted = config.limits.connections as u64 + FILES_OF_OUR_OWN;
    if let Some(files) = files.filter(|files| *files < wanted) {
        notices.push(format!(
            "this process may open {files} files, which is too few for {} connections; raise the limit (ulimit -n)",
            config.limits.connections
        ));
    }
    let closing = CancellationToken::new();
    let hosts = Hosts::new(config.public_names, tls.as_ref().map(|tls| tls.names.clone()));
    let app = App::new(Inner {
        registry: registry.clone(),
        access,
        hosts,
        longest_body: config.longest_body,
        limits: config.limits,
        closing: closing.clone(),
        started: Instant::now(),
        streams: Streams::new(config.limits.streams, config.limits.streams_per_token),
        meter: Meter::new(new_uid()?.chars().skip(28).collect()),
        audit,
        metrics_open: config.metrics_open,
        ready: Mutex::new(None),
    });
    let (acceptor, fingerprint, made) =
        tls.map_or((None, None, None), |tls| (Some(tls.acceptor), Some(tls.fingerprint), tls.made));
    let url = format!("{}://{address}", if acceptor.is_some() { "https" } else { "http" });
    let signals = wait_for_signals(closing.clone(), &ServerFile::path(&data_dir)).map_err(Error::Threads)?;
    let router = route::router(&app);
    tracing::info!(%address, tls = acceptor.is_some(), "listening");
    // Requests that come meanwhile learn that the server is alive and not ready.
    let socket = Some(local.path().to_owned());
    let endpoint = Endpoint { listener, local: Some(local), tls: acceptor, router, app: app.clone() };
    let accepting = tokio::spawn(listen::accept(endpoint, closing.clone()));
    let (taking, retention) = (registry.clone(), config.retention);
    let taken = blocking(move || {
        let left = taking.restore_all()?;
        taking.start_maintenance(retention)?;
        Ok(left)
    });
    let mut lit = None;
    let (tell, mut told) = mpsc::unbounded_channel();
    registry.controller().supervisor().on_failure(move |failure| drop(tell.send(failure.clone())));
    if let Some(log) = &config.log_thread {
        log.supervised_by(registry.controller().supervisor());
    }
    let started = tokio::select! {
        taken = taken => taken.and_then(|left| {
            notices.extend(left);
            let certificate = fingerprint.clone().map(|print| (print, made));
            lit = Some(ServerFile::write(&data_dir, url.clone(), address.to_string(), certificate, socket)?);
            ready(Started { address, url: &url, fingerprint: fingerprint.as_deref(), notices: &notices });
            Ok(())
        }),
        // Runs that were not resumed yet are unchanged.
        () = closing.cancelled() => Ok(()),
        Some(failure) = told.recv() => return Err(end(registry, failure)),
    };
    if started.is_err() {
        closing.cancel();
    }
    let accepted = tokio::select! {
        accepted = accepting => accepted,
        Some(failure) = told.recv() => return Err(end(registry, failure)),
    };
    tracing::info!("closing");
    drop(app);
    let closed = blocking(move || Ok(registry.close()?)).await;
    drop(lit);
    signals.abort();
    if let Err(error) = accepted
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
    started.and(closed)
}

/// Ends without closing anything, because that would wait for threads which may be gone: the process ends as in a
/// crash, tasks continue, and the next start resumes everything.
fn end(registry: Registry, failure: ThreadFailure) -> Error {
    std::mem::forget(registry);
    Error::Thread(failure)
}

/// Runs blocking work (disk, engine) away from the threads that serve requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Everything that is opened before the first request is served.
struct Opened {
    registry: Registry,
    access: Access,
    tls: Option<tls::Ready>,
    audit: Audit,
    local: LocalSocket,
    notices: Vec<String>,
}

fn open(
    controller: octoflow_control::Config,
    opening: &AdminSource,
    default: DefaultPassword,
    tls: Option<&Tls>,
    address: SocketAddr,
    insecure: bool,
) -> Result<Opened, Error> {
    let data_dir = controller.data_dir.clone();
    let (controller, notices) = Controller::open_for_restore(controller)?;
    let registry = Registry::new(controller)?;
    let prepared = prepare(&registry, opening, address, insecure, default).and_then(|access| {
        let tls = tls.map(|tls| tls::ready(tls, &data_dir, address.ip())).transpose()?;
        let path = data_dir.join("audit");
        let audit = Audit::open(&data_dir, registry.controller().supervisor()).map_err(|source| Error::File {
            doing: "open",
            path,
            source,
        })?;
        rules::check(address, access.credentials.has_default(), tls.is_some(), insecure)?;
        access.credentials.prepare_first_token(&data_dir)?;
        Ok((access, tls, audit, LocalSocket::bind(&data_dir)?))
    });
    match prepared {
        Ok((access, tls, audit, local)) => Ok(Opened { registry, access, tls, audit, local, notices }),
        Err(error) => {
            // No run was resumed, so nothing is lost.
            let _ = registry.close();
            Err(error)
        }
    }
}

fn prepare(
    registry: &Registry,
    opening: &AdminSource,
    address: SocketAddr,
    insecure: bool,
    default: DefaultPassword,
) -> Result<Access, Error> {
    let access = Access::open(registry.clone(), opening, default)?;
    // The password is checked first: a default password is the worse mistake.
    rules::check(address, access.credentials.has_default(), true, insecure)?;
    Ok(access)
}

/// Reads the admin's token from the first line of a file. A short one is for those who are on this machine already, or who
/// said that they want it so.
fn of_file(path: &Path, guarded: bool) -> Result<AdminSource, Error> {
    let source = |source| Error::File { doing: "read", path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(source)?;
    let token = text.lines().next().unwrap_or_default().trim();
    acceptable(token).map_err(|why| {
        let why = format!("its first line is to be the admin's token: {why}");
        Error::Unusable { path: path.to_owned(), why }
    })?;
    if let Some(advice) = advice(token) {
        if !guarded {
            let why = format!("{advice}, which counts where others reach the server");
            return Err(Error::Unusable { path: path.to_owned(), why });
        }
        tracing::warn!(file = %path.display(), "{advice}");
    }
    Ok(AdminSource::File(digest(token.as_bytes())))
}

fn wait_for_signals(closing: CancellationToken, file: &Path) -> std::io::Result<tokio::task::JoinHandle<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let file = file.to_owned();
    async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    Ok(tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        closing.cancel();
        either(&mut interrupt, &mut terminate).await;
        tracing::warn!("ending at once");
        let _ = fs::remove_file(file);
        end_now();
    }))
}

/// Ends the process at once. Everything acknowledged is on disk and tasks can be adopted, as after a crash.
#[expect(clippy::exit, reason = "whoever asks twice does not want to wait for anything to be unwound")]
fn end_now() -> ! {
    std::process::exit(130)
}
