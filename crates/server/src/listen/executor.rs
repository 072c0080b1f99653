//! Executor for the streams of HTTP/2 connections: runs each as a task, and ends those whose client reads nothing for
//! too long while other streams of the connection continue. For connections with one stream `patient` does this.

use std::{
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::rt::Executor;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

/// Number of checks within the timeout.
const CHECKS: u32 = 4;

tokio::task_local! {
    /// HTTP/2 stream that the current task answers.
    static STREAM: Arc<Stream>;
}

#[derive(Default)]
struct Stream {
    sent: OnceLock<Arc<Unsent>>,
    begun: Notify,
}

/// Bytes handed over to the connection and not yet taken by it.
#[derive(Default)]
pub(crate) struct Unsent {
    bytes: AtomicUsize,
    /// Number of pieces taken so far.
    taken: AtomicUsize,
}

impl Unsent {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    pub(crate) fn hand_over(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn take(&self, bytes: usize) {
        self.taken.fetch_add(1, Ordering::AcqRel);
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Completes when bytes were unsent for the whole timeout and none were taken.
    async fn stalled(&self, limit: Duration) {
        let mut stuck: Option<(Instant, usize)> = None;
        loop {
            sleep(limit / CHECKS).await;
            let taken = self.taken.load(Ordering::Acquire);
            stuck = match stuck {
                _ if self.bytes() == 0 => None,
                Some((since, before)) if before == taken => {
                    if since.elapsed() >= limit {
                        return;
                    }
                    stuck
                }
                _ => Some((Instant::now(), taken)),
            };
        }
    }
}

/// Registers the unsent counter of the current HTTP/2 stream, so that it ends when its client reads nothing. A no-op
/// elsewhere.
pub(crate) fn observe(unsent: &Arc<Unsent>) {
    // Outside of HTTP/2 there is no such task.
    let _ = STREAM.try_with(|stream| {
        if stream.sent.set(unsent.clone()).is_ok() {
            stream.begun.notify_one();
        }
    });
}

/// Spawns the tasks of hyper.
#[derive(Clone)]
pub(crate) struct StreamExecutor {
    pub stalled_after: Duration,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, answering: F) {
        let (stream, limit) = (Arc::<Stream>::default(), self.stalled_after);
        let own = stream.clone();
        let stalled = async move {
            own.begun.notified().await;
            match own.sent.get() {
                Some(unsent) => unsent.stalled(limit).await,
                None => std::future::pending().await,
            }
        };
        // Dropping the task's future resets its stream, and no other.
        tokio::spawn(STREAM.scope(stream, async move {
            tokio::select! {
                biased;
                _ = answering => {}
                () = stalled => tracing::debug!("a client does not read one of its streams: it is closed"),
            }
        }));
    }
}
