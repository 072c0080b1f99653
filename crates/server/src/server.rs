//! One server from start to end: the house is opened, everything unfinished is taken up, requests are answered until a
//! signal comes, and the house is closed so that running tasks can be adopted by the next one.

use std::{net::SocketAddr, time::Instant};

use octoflow_control::{House, registry::Registry};
use tokio::{
    net::TcpListener,
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Config, Error,
    access::Access,
    app::{App, Inner},
    listen, route,
};

/// Runs until SIGINT or SIGTERM. `ready` hears the address and the notices for people once requests are answered.
pub fn serve(config: Config, ready: impl FnOnce(SocketAddr, &[String])) -> Result<(), Error> {
    let runtime = Builder::new_multi_thread().enable_all().thread_name("http").build().map_err(Error::Threads)?;
    runtime.block_on(async {
        let address = config.listen;
        let listener = TcpListener::bind(address).await.map_err(|source| Error::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| Error::Listen { address, source })?;
        let data_dir = config.house.data_dir.clone();
        let (house, mut notices) = House::open(config.house)?;
        let registry = Registry::new(house)?;
        notices.extend(registry.take_up_all()?);
        let closing = CancellationToken::new();
        let app = App::new(Inner {
            registry: registry.clone(),
            access: Access::new("admin"),
            longest_body: config.longest_body,
            data_dir,
            closing: closing.clone(),
            started: Instant::now(),
        });
        let router = route::router(&app);
        let signals = wait_for_signal(closing.clone()).map_err(Error::Threads)?;
        ready(address, &notices);
        listen::accept(listener, router, closing).await;
        signals.abort();
        drop(app);
        tokio::task::spawn_blocking(move || registry.close()).await.unwrap_or(Ok(())).map_err(Error::from)
    })
}

fn wait_for_signal(closing: CancellationToken) -> std::io::Result<tokio::task::JoinHandle<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        closing.cancel();
    }))
}
