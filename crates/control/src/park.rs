//! Blocks a thread on a future.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

use tokio::task::coop::unconstrained;

/// Blocks the current thread until the future is ready; must not be used on threads of an async runtime. Tokio's
/// cooperative budget is switched off: it counts the polls of a task, and without a task a channel with no budget left
/// would return `Pending` for ever.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(unconstrained(future));
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            // A wake-up before parking is not lost: the token stays.
            Poll::Pending => thread::park(),
        }
    }
}

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn hears_what_comes_before_and_after_it_sleeps() {
        let (early, told) = oneshot::channel();
        early.send(1).unwrap();
        assert_eq!(wait(told), Ok(1));
        let (late, told) = oneshot::channel();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            late.send(2).unwrap();
        });
        assert_eq!(wait(told), Ok(2));
        other.join().unwrap();
    }

    /// Tokio gives 128 units to each poll of a task.
    #[test]
    fn a_task_that_waits_more_often_than_its_budget_allows_still_hears() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let heard: usize = runtime.block_on(async {
            let one = |number| {
                let (teller, told) = oneshot::channel();
                teller.send(number).unwrap();
                wait(told).unwrap()
            };
            (0..1000).map(one).filter(|number| *number < 1000).count()
        });
        assert_eq!(heard, 1000);
    }

    #[test]
    fn hears_that_nobody_will_answer() {
        let (gone, told) = oneshot::channel::<()>();
        drop(gone);
        assert!(wait(told).is_err());
    }
}
