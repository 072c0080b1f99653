//! The runtime of HTTP requests: a bounded thread pool that sends, waits and reports, behind the same port as
//! processes. One thread always exists, so that a request is taken even when no more can be started. Every connection
//! goes through the egress guard, that of a plugin call through the one for plugins; it never interprets a response.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Order, Report},
    request::{Answer, HttpRequest, ProbeRequest, Request},
    task::Task,
};
use ureq::Agent;

use crate::{
    clock::now,
    egress::{self, Policy},
    port::{Runtime, Sink},
    threads::{ThreadOwner, said},
};

mod exchange;
mod places;
mod probe;

pub use exchange::MAX_BODY;
use places::{LANE_PLACES, Places, TASK_PLACES, Taken, Work};

/// Limit of threads, without those whose request was stopped: one for each place, and some for reports.
const MAX_THREADS: usize = TASK_PLACES + LANE_PLACES + 2;
/// Limit of threads that still wait for a request that was stopped. Beyond it a stopped request keeps its place until
/// its timeout.
const MAX_GIVEN_UP: usize = 1024;

/// How long a thread without work is kept.
const IDLE: Duration = Duration::from_secs(10);

/// Sends requests for plugins on the thread of the caller, behind the egress guard.
pub struct Caller(Agent);

impl Caller {
    pub fn new(policy: &Policy) -> Self {
        Self(egress::agent(policy))
    }

    /// Sends a request and waits for its response, which is [`Answer::Http`], or [`Answer::Refused`] with the reason
    /// why there is none.
    pub fn call(&self, request: HttpRequest) -> Answer {
        exchange::exchange(&self.0, request)
    }
}

pub struct HttpRuntime {
    pool: Arc<Pool>,
}

struct Pool {
    state: Mutex<State>,
    work: Condvar,
    policy: Policy,
    agent: Agent,
    /// Sends the calls of plugins.
    plugin_agent: Agent,
    sink: Sink,
    /// Hears of threads that panicked.
    owner: ThreadOwner,
}

/// How long a thread of the pool stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tenure {
    /// As long as the pool.
    Permanent,
    /// Until there is no work.
    Temporary,
}

#[derive(Default)]
struct State {
    places: Places,
    /// Probes that wait for their next round.
    later: BTreeMap<(Instant, AttemptId), Box<ProbeRequest>>,
    calls: HashMap<AttemptId, Stage>,
    /// Threads that wait for work; `threads` counts all.
    idle: usize,
    threads: usize,
    /// The number of the next exchange.
    next_ticket: u64,
    /// Exchanges that were stopped and whose threads still wait; their places were released.
    given_up: HashSet<u64>,
    closed: bool,
}

/// Progress of a request until it is forgotten.
#[derive(Clone, PartialEq)]
enum Stage {
    Queued,
    InProgress {
        ticket: u64,
        taken: Taken,
    },
    /// A probe that has not succeeded yet, and why, as it was reported.
    Probing(String),
    /// The report that was sent, kept because an engine that lost it asks again.
    Reported(Box<Report>),
}

impl HttpRuntime {
    /// Fails if not even one thread can be started. `plugins` is the policy for calls of plugins, which are those with a
    /// lane.
    pub fn new(policy: &Policy, plugins: &Policy, sink: Sink, owner: &ThreadOwner) -> io::Result<Self> {
        let pool = Arc::new(Pool {
            state: Mutex::default(),
            work: Condvar::new(),
            policy: policy.clone(),
            agent: egress::agent(policy),
            plugin_agent: egress::agent(plugins),
            sink,
            owner: owner.clone(),
        });
        pool.spawn(&mut pool.lock(), Tenure::Permanent)?;
        Ok(Self { pool })
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

impl State {
    /// Queues the probes whose next round is due.
    fn queue_due_probes(&mut self, now: Instant) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, attempt), request) = entry.remove_entry();
            self.places.push(Work::Probe(attempt, request));
        }
    }

    /// Takes the result of a round: the end of the probe, or a further round later. A reason is reported once.
    fn take_round(
        &mut self,
        attempt: AttemptId,
        request: Box<ProbeRequest>,
        result: Result<(), String>,
    ) -> Vec<Report> {
        // It may have been stopped meanwhile.
        let Some(Stage::Probing(told)) = self.calls.get_mut(&attempt) else { return Vec::new() };
        match result {
            Ok(()) => {
                let report = Report::Answered { attempt, at: now(), answer: Box::new(Answer::Probed) };
                self.calls.insert(attempt, Stage::Reported(Box::new(report.clone())));
                vec![report]
            }
            Err(why) => {
                let is_new = *told != why;
                told.clone_from(&why);
                self.later.insert((Instant::now() + request.every, attempt), request);
                if is_new { vec![Report::Waiting { attempt, at: now(), why }] } else { Vec::new() }
            }
        }
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
            Some(Request::Probe(request)) => {
                state.calls.insert(attempt, Stage::Probing(String::new()));
                self.push(state, Work::Probe(attempt, Box::new(request)));
            }
            Some(
                Request::Object(_)
                | Request::Listing(_)
                | Request::Make(_)
                | Request::Remove(_)
                | Request::Submit(_)
                | Request::Builtin(_),
            )
            | None => {
                let answer = Box::new(Answer::Refused("this place only sends requests over the network".to_owned()));
                self.report(state, Report::Answered { attempt, at: now(), answer });
            }
        }
    }

    /// Reports the end at once; a response that still arrives is ignored.
    fn stop(self: &Arc<Self>, state: &mut State, attempt: AttemptId) {
        match state.calls.get(&attempt) {
            None | Some(Stage::Reported(_)) => return,
            Some(Stage::InProgress { ticket, taken }) => {
                // Its thread may wait for long yet; another one may take its place.
                if state.given_up.len() < MAX_GIVEN_UP {
                    let (ticket, taken) = (*ticket, taken.clone());
                    state.given_up.insert(ticket);
                    state.places.release(taken);
                }
            }
            Some(Stage::Queued | Stage::Probing(_)) => {}
        }
        self.report(state, Report::Answered { attempt, at: now(), answer: Box::new(Answer::Stopped) });
    }

    /// Sends a report from a pool thread, and remembers it.
    fn report(self: &Arc<Self>, state: &mut State, report: Report) {
        state.calls.insert(report.attempt(), Stage::Reported(Box::new(report.clone())));
        self.push(state, Work::Report(report));
    }

    fn push(self: &Arc<Self>, state: &mut State, work: Work) {
        state.places.push(work);
        let runnable = state.places.runnable();
        // If no further thread can be started, the work waits for one that exists.
        if state.idle >= runnable
            || state.threads >= MAX_THREADS + state.given_up.len()
            || self.spawn(state, Tenure::Temporary).is_err()
        {
            self.work.notify_one();
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut State, tenure: Tenure) -> io::Result<()> {
        let pool = Arc::clone(self);
        self.owner.spawn("call", move || pool.run(tenure))?;
        state.threads += 1;
        Ok(())
    }

    fn run(self: Arc<Self>, tenure: Tenure) {
        let mut state = self.lock();
        loop {
            if state.closed {
                return;
            }
            state.queue_due_probes(Instant::now());
            let Some((work, taken)) = state.places.next() else {
                state.idle += 1;
                let next = state.later.keys().next().map(|(at, _)| at.saturating_duration_since(Instant::now()));
                let wait = next.map_or(IDLE, |next| next.min(IDLE));
                let timed_out;
                if tenure == Tenure::Permanent && next.is_none() {
                    state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                    timed_out = false;
                } else {
                    let (woken, waited) = self.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
                    (state, timed_out) = (woken, waited.timed_out());
                }
                state.idle -= 1;
                // Somebody must be there when a probe is due.
                let needless = state.places.runnable() == 0 && (state.later.is_empty() || state.idle > 0);
                if tenure == Tenure::Temporary && timed_out && needless {
                    state.threads -= 1;
                    // Whoever stays learns when the next probe is due.
                    self.work.notify_one();
                    return;
                }
                continue;
            };
            state = match work {
                Work::Report(report) => {
                    drop(state);
                    (self.sink)(vec![report]);
                    self.lock()
                }
                Work::Probe(attempt, request) => self.probe(state, attempt, request),
                Work::Send(attempt, request) => {
                    let (ticket, of) = (state.next_ticket, taken.clone());
                    state.next_ticket += 1;
                    state = self.exchange(state, attempt, request, Stage::InProgress { ticket, taken: of });
                    // The place of a request that was stopped is somebody else's already.
                    if state.given_up.remove(&ticket) {
                        continue;
                    }
                    state
                }
            };
            state.places.release(taken);
        }
    }

    fn probe<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        attempt: AttemptId,
        request: Box<ProbeRequest>,
    ) -> MutexGuard<'a, State> {
        if !matches!(state.calls.get(&attempt), Some(Stage::Probing(_))) {
            return state;
        }
        drop(state);
        let round = || probe::round(&self.policy, &request);
        let failed = catch_unwind(AssertUnwindSafe(round))
            .unwrap_or_else(|panic| Err(format!("a bug of octoflow: the probe panicked: {}", said(&*panic))));
        state = self.lock();
        let reports = state.take_round(attempt, request, failed);
        drop(state);
        if !reports.is_empty() {
            (self.sink)(reports);
        }
        self.lock()
    }

    fn exchange<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        attempt: AttemptId,
        request: Box<HttpRequest>,
        stage: Stage,
    ) -> MutexGuard<'a, State> {
        // It may have been stopped while it was queued.
        if state.calls.get(&attempt) != Some(&Stage::Queued) {
            return state;
        }
        state.calls.insert(attempt, stage.clone());
        drop(state);
        (self.sink)(vec![Report::Started { attempt, at: now() }]);
        let agent = if request.lane.is_some() { &self.plugin_agent } else { &self.agent };
        let answer = Box::new(exchange_catching_panics(|| exchange::exchange(agent, *request)));
        state = self.lock();
        // It was stopped meanwhile.
        if state.calls.get(&attempt) != Some(&stage) {
            return state;
        }
        let report = Report::Answered { attempt, at: now(), answer };
        state.calls.insert(attempt, Stage::Reported(Box::new(report.clone())));
        drop(state);
        (self.sink)(vec![report]);
        self.lock()
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
