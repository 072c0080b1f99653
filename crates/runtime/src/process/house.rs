//! The engine's memory of what is on its way: which attempts the spawner was told about and what is wanted of them.
//! It turns orders into messages and messages into reports, and finds a new spawner when the old one dies.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsString,
    fs,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::Child,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use octoflow_model::{
    ids::{AttemptId, RunId},
    order::{Collected, End, Exit, Fetched, Order, Report},
    pod::MemberEnd,
    task::Task,
};

use super::{
    collect,
    hosts::Hosts,
    link::{Outbox, connect},
    plan::{self, Ground, Planned, Unplanned},
    pool::{FOR_FILES, FOR_TRANSFERS, Pool},
    sys,
    view::{self, View},
    wire::{Ending, FromSpawner, Hello, MemberEnding, ToSpawner, next_frame},
};
use crate::{artifacts::Carrier, egress::Policy, logs::Logs, port::Sink};

pub(crate) struct House {
    ground: Ground,
    hosts: Hosts,
    logs: Logs,
    carrier: Carrier,
    sink: Sink,
    outbox: Arc<Outbox>,
    pool: Pool,
    transfers: Pool,
    /// Attempts that were started and whose end has not come back.
    flights: Mutex<HashMap<AttemptId, Arc<Task>>>,
    /// What was fetched for attempts that have not ended.
    fetched: Mutex<HashMap<AttemptId, Vec<(String, Fetched)>>>,
    isolated: AtomicBool,
    hello: Hello,
    command: Vec<OsString>,
    closing: AtomicBool,
    /// Why there is no spawner any more.
    broken: Mutex<Option<String>>,
    /// Runs whose attempts are not ours to end.
    left: Mutex<Vec<u64>>,
    /// Without isolation: what we put where on the machine itself, and for whom.
    placed: Mutex<HashMap<PathBuf, AttemptId>>,
}

impl House {
    pub(crate) fn new(
        ground: Ground,
        sink: Sink,
        outbox: Arc<Outbox>,
        isolated: bool,
        hello: Hello,
        command: Vec<OsString>,
        policy: Policy,
    ) -> Arc<Self> {
        let carrier = Carrier::new(&ground.data, policy);
        carrier.store().clear_leftovers();
        Arc::new(Self {
            hosts: Hosts::new(&ground.data),
            logs: Logs::new(&ground.data),
            carrier,
            ground,
            sink,
            outbox,
            pool: Pool::new(FOR_FILES),
            transfers: Pool::new(FOR_TRANSFERS),
            flights: Mutex::default(),
            fetched: Mutex::default(),
            isolated: AtomicBool::new(isolated),
            hello,
            command,
            closing: AtomicBool::new(false),
            broken: Mutex::default(),
            left: Mutex::default(),
            placed: Mutex::default(),
        })
    }

    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.flights).is_empty()
    }

    pub(crate) fn send(self: &Arc<Self>, orders: Vec<Order>) {
        let mut messages = Vec::with_capacity(orders.len());
        for order in orders {
            match order {
                Order::Start { attempt, task } => {
                    let task = Arc::from(task);
                    if lock(&self.flights).insert(attempt, Arc::clone(&task)).is_none() {
                        messages.extend(self.launch(attempt, &task));
                    }
                }
                Order::Stop { attempt } => messages.push(ToSpawner::Stop(attempt)),
                Order::Kill { attempt } => messages.push(ToSpawner::Kill(attempt)),
                Order::Forget { attempt } => {
                    lock(&self.fetched).remove(&attempt);
                    self.clear_places(attempt);
                    self.hosts.release(attempt);
                    messages.push(ToSpawner::Forget(attempt));
                }
            }
        }
        self.outbox.post(&messages);
    }

    pub(crate) fn adopt(self: &Arc<Self>, believed: Vec<(AttemptId, Box<Task>)>, leave: &[RunId]) {
        let ids = believed.iter().map(|(attempt, _)| *attempt).collect();
        let leave: Vec<u64> = leave.iter().map(|run| run.0).collect();
        self.hosts.adopt(&believed, leave.is_empty());
        lock(&self.left).clone_from(&leave);
        lock(&self.flights).extend(believed.into_iter().map(|(attempt, task)| (attempt, Arc::from(task))));
        self.outbox.post(&[ToSpawner::Adopt(ids, leave)]);
    }

    /// The message that starts an attempt. One that cannot even be planned ends here.
    fn launch(self: &Arc<Self>, attempt: AttemptId, task: &Arc<Task>) -> Option<ToSpawner> {
        let broken = lock(&self.broken).clone();
        let planned = match broken {
            Some(why) => Err(Exit::Surroundings(why).into()),
            None => self.plan(attempt, task),
        };
        let planned = planned.and_then(|planned| {
            self.claim_places(attempt, &planned.occupied).map_err(Exit::Surroundings)?;
            Ok(planned)
        });
        match planned {
            Ok(planned) if planned.stage => Some(ToSpawner::Prepare(planned.launch)),
            Ok(planned) => Some(ToSpawner::Start(planned.launch)),
            Err(Unplanned { exit, member }) => {
                lock(&self.flights).remove(&attempt);
                let mut members: Vec<MemberEnding> = Vec::new();
                if let (Some(member), Some(pod)) = (member, &task.pod) {
                    members.resize(pod.members.len(), MemberEnding { started: None, ended: None, exit: None });
                    members[member].exit = Some(exit.clone().into());
                }
                let members = named(task, members);
                // From a thread of ours: the caller must not find itself inside its own sink.
                let house = Arc::clone(self);
                self.pool.run(move || (house.sink)(vec![ended_at_once(attempt, exit, members)]));
                None
            }
        }
    }

    fn plan(&self, attempt: AttemptId, task: &Task) -> Result<Planned, Unplanned> {
        let hosts = self.hosts.claim(attempt, task).map_err(Exit::Surroundings)?;
        plan::plan(attempt, task, hosts.as_deref(), self.isolated.load(Ordering::Relaxed), &self.ground)
    }

    /// Ends the conversation. `abruptly` also stops listening, as a crash would.
    pub(crate) fn close(&self, abruptly: bool) {
        self.closing.store(true, Ordering::Release);
        self.outbox.close(abruptly);
    }

    /// Hears the spawner until the end; answers with the spawner's process when it is our child.
    pub(crate) fn listen(self: &Arc<Self>, socket: Arc<UnixStream>, child: Option<Child>) -> JoinHandle<Option<Child>> {
        let house = Arc::clone(self);
        thread::spawn(move || house.listen_for_ever(socket, child))
    }

    fn listen_for_ever(self: Arc<Self>, mut socket: Arc<UnixStream>, mut child: Option<Child>) -> Option<Child> {
        loop {
            self.hear_until_closed(&socket);
            if self.closing.load(Ordering::Acquire) {
                return child;
            }
            // The spawner died. Its process is collected, and a new one answers for what it left.
            if let Some(mut dead) = child.take() {
                let _ = dead.wait();
            }
            match connect(&self.ground.data, &self.command, &self.hello) {
                Ok(connected) => {
                    socket = Arc::new(connected.socket);
                    child = connected.child;
                    self.isolated.store(connected.welcome.isolated, Ordering::Relaxed);
                    self.outbox.replace(Some(Arc::clone(&socket)));
                    let ids = lock(&self.flights).keys().copied().collect();
                    let leave = lock(&self.left).clone();
                    self.outbox.post(&[ToSpawner::Adopt(ids, leave)]);
                }
                Err(error) => {
                    let why = format!("the spawner died and could not be started again: {error}");
                    *lock(&self.broken) = Some(why.clone());
                    self.outbox.replace(None);
                    let at = sys::now();
                    let lost: Vec<Report> = std::mem::take(&mut *lock(&self.flights))
                        .into_keys()
                        .map(|attempt| Report::Lost { attempt, at, why: why.clone() })
                        .collect();
                    (self.sink)(lost);
                    return None;
                }
            }
        }
    }

    fn hear_until_closed(self: &Arc<Self>, socket: &UnixStream) {
        let mut buffer = vec![0; 64 * 1024];
        let mut inbox: Vec<u8> = Vec::new();
        let mut riders: VecDeque<OwnedFd> = VecDeque::new();
        let generation = self.outbox.generation();
        loop {
            match sys::receive_with(socket.as_fd(), &mut buffer, &mut riders) {
                Ok(0) => return,
                Ok(count) => inbox.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            }
            let mut rest = &inbox[..];
            let mut reports = Vec::new();
            let mut answers = Vec::new();
            loop {
                match next_frame(&mut rest) {
                    Ok(Some(message)) => self.hear(message, &mut riders, generation, &mut reports, &mut answers),
                    Ok(None) => break,
                    // It cannot be understood any more; a fresh connection starts clean.
                    Err(_) => return,
                }
            }
            let used = inbox.len() - rest.len();
            inbox.drain(..used);
            if !reports.is_empty() {
                (self.sink)(reports);
            }
            if !answers.is_empty() {
                self.outbox.post(&answers);
            }
        }
    }

    fn hear(
        self: &Arc<Self>,
        message: FromSpawner,
        riders: &mut VecDeque<OwnedFd>,
        generation: u64,
        reports: &mut Vec<Report>,
        answers: &mut Vec<ToSpawner>,
    ) {
        match message {
            FromSpawner::Started(attempt, at) => reports.push(Report::Started { attempt, at }),
            FromSpawner::Ended(attempt, ending, members, message, has_root) => {
                let root = if has_root { riders.pop_front() } else { None };
                reports.extend(self.ended(attempt, ending, members, message, root));
            }
            FromSpawner::Member(attempt, at, member, ending) => {
                let task = lock(&self.flights).get(&attempt).cloned();
                let known = task.as_ref().and_then(|task| task.pod.as_ref()?.members.get(member as usize));
                if let Some(known) = known {
                    let member = Box::new(standing(&known.container.name, ending));
                    reports.push(Report::Container { attempt, at, member });
                }
            }
            FromSpawner::Progressed(attempt, at, done, total) => {
                if lock(&self.flights).contains_key(&attempt) {
                    reports.push(Report::Progress { attempt, at, done, total });
                }
            }
            FromSpawner::Prepared(attempt) => {
                let root = riders.pop_front();
                self.stage(attempt, root, generation);
            }
            FromSpawner::Fresh(attempt) => {
                let task = lock(&self.flights).get(&attempt).cloned();
                answers.extend(task.and_then(|task| self.launch(attempt, &task)));
            }
            FromSpawner::Lost(attempt, why) => {
                if lock(&self.flights).remove(&attempt).is_some() {
                    reports.push(Report::Lost { attempt, at: sys::now(), why });
                }
            }
            // Greetings were exchanged before.
            FromSpawner::Welcome(_) | FromSpawner::Refused(_) => {}
        }
    }

    /// The report of an end, unless something must be collected first; then the pool reports.
    fn ended(
        self: &Arc<Self>,
        attempt: AttemptId,
        ending: Ending,
        members: Vec<MemberEnding>,
        message: Option<String>,
        root: Option<OwnedFd>,
    ) -> Option<Report> {
        let task = lock(&self.flights).remove(&attempt)?;
        let members = named(&task, members);
        let Ending { at, started, exit, log_truncated } = ending;
        let exit = Exit::from(exit);
        let fetched = lock(&self.fetched).remove(&attempt).unwrap_or_default();
        if !collect::is_needed(&task.wanted) || started.is_none() {
            let collected = Collected { message, fetched, ..Collected::default() };
            let end = End { exit, started, collected, log_truncated, members };
            return Some(Report::Ended { attempt, at, end: Box::new(end) });
        }
        let house = Arc::clone(self);
        let pool = if collect::goes_away(&task) { &self.transfers } else { &self.pool };
        pool.run(move || {
            let view = root.map(View::new);
            let collected = collect::collect(&house.logs, &house.carrier, attempt, &task, view.as_ref());
            let collected = Collected { message, fetched, ..collected };
            drop(view);
            let end = End { exit, started, collected, log_truncated, members };
            (house.sink)(vec![Report::Ended { attempt, at, end: Box::new(end) }]);
        });
        None
    }

    fn stage(self: &Arc<Self>, attempt: AttemptId, root: Option<OwnedFd>, generation: u64) {
        let Some(task) = lock(&self.flights).get(&attempt).cloned() else { return };
        let house = Arc::clone(self);
        let pool = if collect::comes_from_away(&task) { &self.transfers } else { &self.pool };
        pool.run(move || {
            let staged = root.ok_or_else(|| "its file system could not be opened".to_owned()).and_then(|root| {
                let alive = || lock(&house.flights).contains_key(&attempt);
                collect::stage(&house.carrier, &task, &View::new(root), &alive)
            });
            if let Ok(fetched) = &staged
                && !fetched.is_empty()
            {
                lock(&house.fetched).insert(attempt, fetched.clone());
            }
            match staged {
                Ok(_) => house.outbox.post_to(generation, &ToSpawner::Go(attempt)),
                Err(why) => {
                    house.outbox.post_to(generation, &ToSpawner::Abandon(attempt));
                    if lock(&house.flights).remove(&attempt).is_some() {
                        (house.sink)(vec![ended_at_once(attempt, Exit::Surroundings(why), Vec::new())]);
                    }
                }
            }
        });
    }

    /// Without isolation inputs lie at their real paths, which must not be anybody else's.
    fn claim_places(&self, attempt: AttemptId, paths: &[PathBuf]) -> Result<(), String> {
        let mut placed = lock(&self.placed);
        for path in paths {
            if fs::symlink_metadata(path).is_ok() && !placed.contains_key(path) {
                return Err(format!(
                    "`{}` exists on this machine and would be overwritten: run with isolation, or change the path",
                    path.display()
                ));
            }
            placed.insert(path.clone(), attempt);
        }
        Ok(())
    }

    fn clear_places(&self, attempt: AttemptId) {
        let mut placed = lock(&self.placed);
        if placed.is_empty() {
            return;
        }
        placed.retain(|path, owner| {
            if *owner == attempt {
                remove(path);
            }
            *owner != attempt
        });
    }
}

/// The ends of a task's containers, in the order they stand in it.
fn named(task: &Task, endings: Vec<MemberEnding>) -> Vec<MemberEnd> {
    let members = task.pod.iter().flat_map(|pod| &pod.members);
    let both = members.zip(endings);
    both.map(|(member, ending)| standing(&member.container.name, ending)).collect()
}

fn standing(name: &str, MemberEnding { started, ended, exit }: MemberEnding) -> MemberEnd {
    MemberEnd { name: name.to_owned(), started, ended, exit: exit.map(Exit::from) }
}

/// What cannot be removed stays; it was ours and harms nobody but the next task of this path, which is told.
fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = view::remove_dir(path);
    }
}

fn ended_at_once(attempt: AttemptId, exit: Exit, members: Vec<MemberEnd>) -> Report {
    let end = End { exit, started: None, collected: Collected::default(), log_truncated: false, members };
    Report::Ended { attempt, at: sys::now(), end: Box::new(end) }
}

/// Our critical sections only move values; a panic inside one leaves them whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
