//! The runtime of HTTP requests: a bounded thread pool that sends, waits and reports, behind the same port as
//! processes. Every connection goes through the egress guard; it never interprets a response.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Order, Report},
    request::{Answer, HttpRequest, Request},
    task::Task,
};
use ureq::Agent;

use crate::{
    clock::now,
    egress::{self, Policy},
    port::{Runtime, Sink},
    threads::said,
};

mod exchange;

pub use exchange::MAX_BODY;

/// Limit of concurrent requests; more are queued. A waiting thread costs some kilobytes.
const MAX_CONCURRENT: usize = 64;

pub struct HttpRuntime {
    pool: Arc<Pool>,
}

struct Pool {
    state: Mutex<State>,
    work: Condvar,
    agent: Agent,
    sink: Sink,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    calls: HashMap<AttemptId, Stage>,
    /// Threads that wait for work; `threads` counts all that may take some.
    idle: usize,
    threads: usize,
    closed: bool,
}

enum Work {
    Send(AttemptId, Box<HttpRequest>),
    /// Reports are queued and never sent from inside an order: the caller must not re-enter its own sink.
    Report(Report),
}

/// Progress of a request until it is forgotten.
#[derive(Clone, PartialEq)]
enum Stage {
    Queued,
    InProgress,
    /// The report that was sent, kept because an engine that lost it asks again.
    Reported(Box<Report>),
}

impl HttpRuntime {
    pub fn new(policy: &Policy, sink: Sink) -> Self {
        let agent = egress::agent(policy);
        Self { pool: Arc::new(Pool { state: Mutex::default(), work: Condvar::new(), agent, sink }) }
    }
}

impl Runtime for HttpRuntime {
    fn send(&mut self, orders: Vec<Order>) {
        let mut state = self.pool.lock();
        for order in orders {
            match order {
                Order::Start { attempt, task } => self.pool.start(&mut state, attempt, *task),
                Order::Stop { attempt } | Order::Kill { attempt } => self.pool.stop(&mut state, attempt),
                Order::Forget { attempt } => {
                    state.calls.remove(&attempt);
                }
            }
        }
    }

    /// Takes over requests after a restart. Their progress was not recorded: idempotent ones are repeated, all others
    /// are reported lost.
    fn adopt(&mut self, believed: Vec<(AttemptId, Box<Task>)>, _: &[RunId]) {
        let mut state = self.pool.lock();
        for (attempt, task) in believed {
            match state.calls.get(&attempt) {
                Some(Stage::Reported(report)) => {
                    let report = Report::clone(report);
                    self.pool.push(&mut state, Work::Report(report));
                    continue;
                }
                Some(_) => continue,
                None => {}
            }
            match task.call.as_deref() {
                Some(Request::Http(request)) if !request.repeatable() => {
                    let method = &request.method;
                    let why =
                        format!("the engine went down while a {method} was under way, and it may have been received");
                    self.pool.report(&mut state, Report::Lost { attempt, at: now(), why });
                }
                _ => self.pool.start(&mut state, attempt, *task),
            }
        }
    }

    fn close(self: Box<Self>) {
        self.pool.lock().closed = true;
        self.pool.work.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, state: &mut State, attempt: AttemptId, task: Task) {
        if state.calls.contains_key(&attempt) {
            return;
        }
        match task.call.map(|call| *call) {
            Some(Request::Http(request)) => {
                state.calls.insert(attempt, Stage::Queued);
                self.push(state, Work::Send(attempt, Box::new(request)));
            }
            Some(Request::Object(_) | Request::Listing(_)) | None => {
                let answer = Box::new(Answer::Refused("this place only sends HTTP requests".to_owned()));
                self.report(state, Report::Answered { attempt, at: now(), answer });
            }
        }
    }

    /// Reports the end at once; a response that still arrives is ignored.
    fn stop(self: &Arc<Self>, state: &mut State, attempt: AttemptId) {
        match state.calls.get(&attempt) {
            None | Some(Stage::Reported(_)) => return,
            // Its thread may wait for long yet; another one may take its place.
            Some(Stage::InProgress) => state.threads -= 1,
            Some(Stage::Queued) => {}
        }
        self.report(state, Report::Answered { attempt, at: now(), answer: Box::new(Answer::Stopped) });
    }

    /// Sends a report from a pool thread, and remembers it.
    fn report(self: &Arc<Self>, state: &mut State, report: Report) {
        state.calls.insert(report.attempt(), Stage::Reported(Box::new(report.clone())));
        self.push(state, Work::Report(report));
    }

    fn push(self: &Arc<Self>, state: &mut State, work: Work) {
        state.queue.push_back(work);
        if state.idle >= state.queue.len() || state.threads >= MAX_CONCURRENT {
            self.work.notify_one();
            return;
        }
        let pool = Arc::clone(self);
        // If no thread can be started, the work waits for an existing one; that fails only if there is none at all.
        if thread::Builder::new().name("call".to_owned()).spawn(move || pool.run()).is_ok() {
            state.threads += 1;
        }
    }

    fn run(self: Arc<Self>) {
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            let Some(work) = state.queue.pop_front() else {
                state.idle += 1;
                let (woken, waited) =
                    self.work.wait_timeout(state, Duration::from_secs(10)).unwrap_or_else(PoisonError::into_inner);
                state = woken;
                state.idle -= 1;
                if waited.timed_out() && state.queue.is_empty() {
                    state.threads -= 1;
                    return;
                }
                continue;
            };
            match work {
                Work::Report(report) => {
                    drop(state);
                    (self.sink)(vec![report]);
                    state = self.lock();
                }
                Work::Send(attempt, request) => {
                    // It may have been stopped while it was queued.
                    if state.calls.get(&attempt) != Some(&Stage::Queued) {
                        continue;
                    }
                    state.calls.insert(attempt, Stage::InProgress);
                    drop(state);
                    (self.sink)(vec![Report::Started { attempt, at: now() }]);
                    let answer = Box::new(exchange_catching_panics(|| exchange::exchange(&self.agent, *request)));
                    state = self.lock();
                    if state.calls.get(&attempt) != Some(&Stage::InProgress) {
                        return;
                    }
                    let report = Report::Answered { attempt, at: now(), answer };
                    state.calls.insert(attempt, Stage::Reported(Box::new(report.clone())));
                    drop(state);
                    (self.sink)(vec![report]);
                    state = self.lock();
                }
            }
        }
    }
}

/// Runs an exchange and turns a panic, which is a bug, into a refusal: it costs this call, not the thread and its place
/// in the pool.
fn exchange_catching_panics(exchange: impl FnOnce() -> Answer) -> Answer {
    catch_unwind(AssertUnwindSafe(exchange))
        .unwrap_or_else(|panic| Answer::Refused(format!("a bug of octoflow: the request panicked: {}", said(&*panic))))
}

#[cfg(test)]
mod tests;
