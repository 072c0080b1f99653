//! Starts the threads of a runtime that must not end, and notifies their owner when one does. Never ends the process
//! and repairs nothing: that is the owner's decision.

use std::{
    any::Any,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Callback for the end of threads, with the thread's name and the reason. Shared by clones.
#[derive(Clone)]
pub struct ThreadOwner {
    on_end: Arc<OnEnd>,
    /// True while a test does not get threads.
    #[cfg(test)]
    refuses: Arc<std::sync::atomic::AtomicBool>,
}

/// Called with the name of a thread and the reason of its end.
type OnEnd = dyn Fn(&str, &str) + Send + Sync;

impl ThreadOwner {
    pub fn new(on_end: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        Self {
            on_end: Arc::new(on_end),
            #[cfg(test)]
            refuses: Arc::default(),
        }
    }

    /// Makes starts fail as they do when the machine has no more threads.
    #[cfg(test)]
    pub(crate) fn refuse_threads(&self, refuses: bool) {
        self.refuses.store(refuses, std::sync::atomic::Ordering::Release);
    }

    /// Starts a thread. Joining it returns `None` after a panic, of which the owner was notified before.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<Option<T>>> {
        #[cfg(test)]
        if self.refuses.load(std::sync::atomic::Ordering::Acquire) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let owner = self.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(work));
            ended.map_err(|panic| (owner.on_end)(name, &format!("it panicked: {}", said(&*panic)))).ok()
        })
    }
}

/// Ignores the end of threads: the panic itself was printed.
impl Default for ThreadOwner {
    fn default() -> Self {
        Self::new(|_, _| {})
    }
}

impl fmt::Debug for ThreadOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadOwner")
    }
}

/// Returns the message of a panic.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it did not say why")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_owner_hears_of_a_panic_and_not_of_an_end_that_was_wanted() {
        let (tell, told) = mpsc::channel();
        let owner = ThreadOwner::new(move |name, why| tell.send(format!("{name}: {why}")).unwrap());
        assert_eq!(owner.spawn("quiet", || 7).unwrap().join().unwrap(), Some(7));
        assert!(told.try_recv().is_err());
        assert_eq!(owner.spawn("loud", || panic!("out of luck")).unwrap().join().unwrap(), None::<()>);
        assert_eq!(told.recv().unwrap(), "loud: it panicked: out of luck");
    }
}
