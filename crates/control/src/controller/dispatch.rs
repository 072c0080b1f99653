//! The dispatcher: a thread that owns the runtime and hands it orders, in the order in which they were committed.
//! The store's writer thread only puts orders into its queue, so neither slow nor failing planning reaches the store.
//! It decides nothing: what cannot be handed over is reported as lost, and the engine's retry rules apply.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use octoflow_model::{AttemptId, Order, Report, RunId, Task};
use octoflow_runtime::port::{Condition, Health, Runtime};

use crate::{Error, clock, event_loop::Message};

enum Work {
    Orders(Vec<Order>),
    Adopt(Vec<(AttemptId, Box<Task>)>, Vec<RunId>),
    Close,
}

/// The queue in front of the runtime. Putting something into it never waits and never fails: a dispatcher that is gone
/// has told the event loop so.
#[derive(Clone)]
pub(crate) struct OrderQueue(Sender<Work>);

impl OrderQueue {
    pub(crate) fn send(&self, orders: Vec<Order>) {
        if !orders.is_empty() {
            let _ = self.0.send(Work::Orders(orders));
        }
    }

    pub(crate) fn adopt(&self, believed: Vec<(AttemptId, Box<Task>)>, leave: Vec<RunId>) {
        let _ = self.0.send(Work::Adopt(believed, leave));
    }
}

/// The handle of whoever started the dispatcher.
pub(crate) struct Dispatcher {
    queue: OrderQueue,
    health: Health,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Dispatcher {
    /// `owner` is the event loop: it gets the reports of what could not be handed over, and hears when the thread ends
    /// without having been closed.
    pub(crate) fn start(runtime: Box<dyn Runtime>, owner: Sender<Message>) -> Result<Self, Error> {
        let (queue, work) = mpsc::channel();
        let health = runtime.health();
        let thread = thread::Builder::new()
            .name("dispatch".to_owned())
            .spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| dispatch(runtime, &work, &owner)));
                if let Err(panic) = ended {
                    let why = format!("the thread that hands orders to the runtime ended: {}", panic_message(&*panic));
                    let _ = owner.send(Message::Broken(why));
                }
            })
            .map_err(Error::Thread)?;
        Ok(Self { queue: OrderQueue(queue), health, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn queue(&self) -> OrderQueue {
        self.queue.clone()
    }

    /// What keeps the runtime from working right now.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        (self.health)()
    }

    /// Hands over what is in the queue, then closes the runtime.
    pub(crate) fn close(&self) {
        let _ = self.queue.0.send(Work::Close);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that panicked has told the event loop.
        let _ = thread.map(JoinHandle::join);
    }
}

fn dispatch(mut runtime: Box<dyn Runtime>, work: &Receiver<Work>, owner: &Sender<Message>) {
    while let Ok(next) = work.recv() {
        match next {
            Work::Orders(orders) => hand_over(&mut *runtime, orders, owner),
            Work::Adopt(believed, leave) => runtime.adopt(believed, &leave),
            Work::Close => return runtime.close(),
        }
    }
}

/// A runtime fails the one task whose planning panics by itself. A panic that comes through all the same fails the
/// starts of this batch: some may have been handed over, so they are ended before they are called lost.
fn hand_over(runtime: &mut dyn Runtime, orders: Vec<Order>, owner: &Sender<Message>) {
    let starts = |order: &Order| matches!(order, Order::Start { .. }).then(|| order.attempt());
    let started: Vec<AttemptId> = orders.iter().filter_map(starts).collect();
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| runtime.send(orders))) else { return };
    let why = format!("a bug of octoflow: the order to start it could not be handed over: {}", panic_message(&*panic));
    let (at, mut reports) = (clock::now(), Vec::with_capacity(started.len()));
    for attempt in started {
        let ends = vec![Order::Kill { attempt }, Order::Forget { attempt }];
        // It panicked once already; the attempt is fenced by its number whatever becomes of this.
        let _ = catch_unwind(AssertUnwindSafe(|| runtime.send(ends)));
        reports.push(Report::Lost { attempt, at, why: why.clone() });
    }
    let _ = owner.send(Message::Reports(reports));
}

/// What a panic said.
fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without words")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use octoflow_model::NodeIx;

    use super::*;

    /// Notes what it is told; panics at the start of task 13, and in `adopt` when asked to.
    struct Fragile {
        heard: Arc<Mutex<Vec<String>>>,
        breaks: bool,
    }

    impl Runtime for Fragile {
        fn send(&mut self, orders: Vec<Order>) {
            for order in orders {
                assert!(!matches!(&order, Order::Start { attempt, .. } if attempt.task == NodeIx(13)), "unlucky");
                let word = match &order {
                    Order::Start { .. } => "start",
                    Order::Stop { .. } => "stop",
                    Order::Kill { .. } => "kill",
                    Order::Forget { .. } => "forget",
                };
                self.heard.lock().unwrap().push(format!("{word} {}", order.attempt().task));
            }
        }

        fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, _: &[RunId]) {
            assert!(!self.breaks, "cannot adopt");
            self.heard.lock().unwrap().push(format!("adopt {}", believed.len()));
        }

        fn close(self: Box<Self>) {
            self.heard.lock().unwrap().push("close".to_owned());
        }
    }

    fn attempt(task: u32) -> AttemptId {
        AttemptId { run: RunId(1), task: NodeIx(task), attempt: 0 }
    }

    fn start(task: u32) -> Order {
        Order::Start { attempt: attempt(task), task: Box::default() }
    }

    fn fragile(breaks: bool) -> (Arc<Mutex<Vec<String>>>, Dispatcher, Receiver<Message>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (owner, inbox) = mpsc::channel();
        let runtime = Box::new(Fragile { heard: heard.clone(), breaks });
        (heard, Dispatcher::start(runtime, owner).unwrap(), inbox)
    }

    #[test]
    fn orders_go_out_in_the_order_they_were_queued_and_before_the_close() {
        let (heard, dispatcher, _inbox) = fragile(false);
        let queue = dispatcher.queue();
        queue.adopt(Vec::new(), Vec::new());
        for task in 1..=3 {
            queue.send(vec![start(task), Order::Stop { attempt: attempt(task) }]);
        }
        dispatcher.close();
        let expected = ["adopt 0", "start 1", "stop 1", "start 2", "stop 2", "start 3", "stop 3", "close"];
        assert_eq!(*heard.lock().unwrap(), expected);
    }

    #[test]
    fn a_panic_in_the_runtime_loses_the_starts_of_that_batch_and_nothing_else() {
        let (heard, dispatcher, inbox) = fragile(false);
        let queue = dispatcher.queue();
        queue.send(vec![start(1), start(13)]);
        queue.send(vec![start(2)]);
        dispatcher.close();
        let Ok(Message::Reports(reports)) = inbox.recv() else { panic!("the losses are reported") };
        let lost: Vec<AttemptId> = reports.iter().map(Report::attempt).collect();
        assert_eq!(lost, [attempt(1), attempt(13)]);
        assert!(matches!(&reports[0], Report::Lost { why, .. } if why.contains("unlucky")), "{reports:?}");
        let heard = heard.lock().unwrap();
        assert!(heard.contains(&"kill 1".to_owned()), "what may run is ended: {heard:?}");
        assert!(heard.ends_with(&["start 2".to_owned(), "close".to_owned()]), "later orders go out: {heard:?}");
    }

    #[test]
    fn the_owner_hears_when_the_thread_ends() {
        let (_heard, dispatcher, inbox) = fragile(true);
        dispatcher.queue().adopt(Vec::new(), Vec::new());
        assert!(matches!(inbox.recv(), Ok(Message::Broken(why)) if why.contains("cannot adopt")));
        // Putting something into the queue of a dispatcher that is gone harms nobody.
        dispatcher.queue().send(vec![start(1)]);
        dispatcher.close();
    }
}
