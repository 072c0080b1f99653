//! Runs the streams of HTTP/2 connections, each as a task, and ends those whose client takes nothing for too long. On a
//! connection with one stream that is `patient`'s business; here other streams of the same connection go on.

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

/// It is looked so often, in the time that a client has, whether it takes something.
const LOOKS: u32 = 4;

tokio::task_local! {
    /// The HTTP/2 stream that the task answers.
    static STREAM: Arc<Stream>;
}

#[derive(Default)]
struct Stream {
    sent: OnceLock<Arc<Unsent>>,
    begun: Notify,
}

/// What was handed over to be sent, and not yet taken by the connection.
#[derive(Default)]
pub(crate) struct Unsent {
    bytes: AtomicUsize,
    /// How many pieces were taken so far.
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

    /// Comes to an end when something waited to be sent for so long and nothing was taken.
    async fn stalled(&self, limit: Duration) {
        let mut stuck: Option<(Instant, usize)> = None;
        loop {
            sleep(limit / LOOKS).await;
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

/// Lets the task that answers an HTTP/2 request end when its client takes nothing of this. Elsewhere it does nothing.
pub(crate) fn observe(unsent: &Arc<Unsent>) {
    // Outside of HTTP/2 there is no such task.
    let _ = STREAM.try_with(|stream| {
        if stream.sent.set(unsent.clone()).is_ok() {
            stream.begun.notify_one();
        }
    });
}

/// Spawns what hyper asks for.
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
        // Dropping what answers resets its stream, and no other.
        tokio::spawn(STREAM.scope(stream, async move {
            tokio::select! {
                biased;
                _ = answering => {}
                () = stalled => tracing::debug!("a client does not read one of its streams: it is closed"),
            }
        }));
    }
}
