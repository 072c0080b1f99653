//! The supervisor starts threads and observes their end. A panic, or an error that a thread could not handle, is
//! reported to the owners of the process: nothing works as promised without that thread, and a restart is the ordinary
//! way to recover. It never ends the process itself.

use std::{
    any::Any,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use crate::Error;

/// Shared handle to a supervisor.
#[derive(Clone, Default)]
pub struct Supervisor(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// First unexpected end of a thread.
    failure: OnceLock<ThreadFailure>,
    owners: Mutex<Vec<Owner>>,
    /// True while threads are ended on purpose: an error in one of them is only logged.
    closing: AtomicBool,
    /// How many of the next threads a test does not get.
    #[cfg(test)]
    refused: std::sync::atomic::AtomicUsize,
}

type Owner = Box<dyn Fn(&ThreadFailure) + Send>;

/// Unexpected end of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadFailure {
    pub thread: String,
    pub why: String,
}

impl fmt::Display for ThreadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the thread `{}` ended: {} [OF1114]. What was acknowledged is safe on disk and running tasks go on; start \
             octoflow again and it takes them up",
            self.thread, self.why
        )
    }
}

impl Supervisor {
    /// Starts a thread that must not end before shutdown. Joining it returns its result.
    pub fn spawn(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> io::Result<JoinHandle<Result<(), Error>>> {
        #[cfg(test)]
        if self.0.refused.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (own, thread) = (self.clone(), name.to_owned());
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(work));
            let ended =
                ended.unwrap_or_else(|panic| Err(Error::Broken(format!("it panicked: {}", panic_message(&*panic)))));
            if let Err(error) = &ended {
                own.failed(&thread, &error_chain(error));
            }
            ended
        })
    }

    /// Makes the next starts fail as they do when the machine has no more threads.
    #[cfg(test)]
    pub(crate) fn refuse_threads(&self, count: usize) {
        self.0.refused.store(count, Ordering::Release);
    }

    /// Reports the unexpected end of a thread that was started elsewhere.
    pub fn failed(&self, thread: &str, why: &str) {
        if self.0.closing.load(Ordering::Acquire) {
            tracing::warn!(thread, why, "a thread ended with an error while everything is closed");
            return;
        }
        let failure = ThreadFailure { thread: thread.to_owned(), why: why.to_owned() };
        tracing::error!("{failure}");
        if self.0.failure.set(failure.clone()).is_ok() {
            self.owners().iter().for_each(|owner| owner(&failure));
        }
    }

    /// Registers a callback for the first unexpected end of a thread. Called at once if that has happened already.
    pub fn on_failure(&self, owner: impl Fn(&ThreadFailure) + Send + 'static) {
        let mut owners = self.owners();
        if let Some(failure) = self.0.failure.get() {
            owner(failure);
        }
        owners.push(Box::new(owner));
    }

    pub fn failure(&self) -> Option<&ThreadFailure> {
        self.0.failure.get()
    }

    /// Announces shutdown: from now on threads end on purpose.
    pub(crate) fn close(&self) {
        self.0.closing.store(true, Ordering::Release);
    }

    fn owners(&self) -> std::sync::MutexGuard<'_, Vec<Owner>> {
        self.0.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}

/// Formats an error with its chain of sources.
pub(crate) fn error_chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn told(supervisor: &Supervisor) -> mpsc::Receiver<ThreadFailure> {
        let (tell, told) = mpsc::channel();
        supervisor.on_failure(move |failure| tell.send(failure.clone()).unwrap());
        told
    }

    #[test]
    fn the_owner_hears_of_a_panic_and_of_an_error_with_the_name_of_the_thread() {
        type Work = fn() -> Result<(), Error>;
        let ends: [(Work, &str); 2] = [(|| panic!("out of luck"), "out of luck"), (|| Err(Error::Gone), "has stopped")];
        for (work, why) in ends {
            let supervisor = Supervisor::default();
            let heard = told(&supervisor);
            let thread = supervisor.spawn("collector", work).unwrap();
            let failure = heard.recv().unwrap();
            assert_eq!(failure.thread, "collector");
            assert!(failure.why.contains(why), "{failure}");
            assert!(failure.to_string().contains("start octoflow again"), "{failure}");
            assert!(thread.join().unwrap().is_err());
            assert_eq!(told(&supervisor).recv().unwrap(), failure, "who comes later hears it too");
        }
    }

    #[test]
    fn a_thread_that_ends_as_it_should_is_nobodys_business() {
        let supervisor = Supervisor::default();
        let heard = told(&supervisor);
        supervisor.spawn("brief", || Ok(())).unwrap().join().unwrap().unwrap();
        supervisor.close();
        supervisor.spawn("closing", || Err(Error::Gone)).unwrap().join().unwrap().unwrap_err();
        assert!(supervisor.failure().is_none());
        assert!(heard.try_recv().is_err());
    }
}
