//! Turns messages of the spawner into reports. Outputs are collected and inputs staged on the pools; whatever goes
//! wrong there, also a panic, is reported as the end of that attempt, so that nothing waits for ever.

use std::{collections::VecDeque, os::fd::OwnedFd, sync::Arc, time::Instant};

use octoflow_model::{
    ids::AttemptId,
    order::{Collected, End, Exit, Fetched, Found, Report},
    task::Task,
};

use super::{
    collect,
    dispatcher::{Dispatcher, SHORTAGE_PAUSE, catch_panic, ended_at_once, lock, member_end, member_ends},
    sys,
    view::View,
    wire::{Ending, FromSpawner, MemberEnding, ToSpawner},
};
use crate::shortage::Shortage;

/// Time that collecting waits for a shortage to pass before the outputs are reported as failed.
const SHORTAGE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15 * 60);

/// An ended attempt with everything known before its outputs are collected.
struct EndedAttempt {
    attempt: AttemptId,
    task: Arc<Task>,
    ending: Ending,
    members: Vec<MemberEnding>,
    message: Option<String>,
    fetched: Vec<(String, Fetched)>,
    root: Option<OwnedFd>,
    since: Instant,
}

impl Dispatcher {
    /// Handles a message. A panic costs only the attempt it is about, not the connection.
    pub(super) fn handle_message_safely(
        self: &Arc<Self>,
        message: FromSpawner,
        descriptors: &mut VecDeque<Option<OwnedFd>>,
        generation: u64,
        reports: &mut Vec<Report>,
        answers: &mut Vec<ToSpawner>,
    ) {
        let attempt = message.attempt();
        let handled = catch_panic(|| self.handle_message(message, descriptors, generation, reports, answers));
        if let (Err(why), Some(attempt)) = (handled, attempt) {
            let why = format!("a bug of octoflow: a message about it could not be handled: {why}");
            if lock(&self.in_flight).remove(&attempt).is_some() {
                answers.push(ToSpawner::Kill(attempt));
                reports.push(Report::Lost { attempt, at: sys::now(), why });
            }
        }
    }

    fn handle_message(
        self: &Arc<Self>,
        message: FromSpawner,
        descriptors: &mut VecDeque<Option<OwnedFd>>,
        generation: u64,
        reports: &mut Vec<Report>,
        answers: &mut Vec<ToSpawner>,
    ) {
        match message {
            FromSpawner::Started(attempt, at) => reports.push(Report::Started { attempt, at }),
            FromSpawner::Ended(attempt, ending, members, message, has_root) => {
                match take_descriptor(has_root, descriptors) {
                    Ok(root) => reports.extend(self.ended(attempt, ending, members, message, root)),
                    Err(DescriptorLost) => self.ask_again(attempt, generation),
                }
            }
            FromSpawner::Member(attempt, at, member, ending) => {
                let task = self.task_of(attempt);
                let known = task.as_ref().and_then(|task| task.pod.as_ref()?.members.get(member as usize));
                if let Some(known) = known {
                    let member = Box::new(member_end(&known.container.name, ending));
                    reports.push(Report::Container { attempt, at, member });
                }
            }
            FromSpawner::Progressed(attempt, at, done, total) => {
                if lock(&self.in_flight).contains_key(&attempt) {
                    reports.push(Report::Progress { attempt, at, done, total });
                }
            }
            FromSpawner::Ready(attempt, at, ready) => {
                if lock(&self.in_flight).contains_key(&attempt) {
                    reports.push(Report::Ready { attempt, at, ready });
                }
            }
            FromSpawner::Prepared(attempt, has_root) => match take_descriptor(has_root, descriptors) {
                Ok(root) => self.stage(attempt, root, generation),
                Err(DescriptorLost) => self.ask_again(attempt, generation),
            },
            FromSpawner::Fresh(attempt) => {
                let flight = lock(&self.in_flight).get(&attempt).cloned();
                match flight {
                    // It never started and must not start any more.
                    Some(flight) if flight.stop.is_some() => {
                        self.end_at_once(attempt, Exit::Signal(libc::SIGTERM), Vec::new());
                    }
                    Some(flight) => answers.extend(self.launch(attempt, &flight.task)),
                    None => {}
                }
            }
            FromSpawner::Lost(attempt, why) => {
                if lock(&self.in_flight).remove(&attempt).is_some() {
                    reports.push(Report::Lost { attempt, at: sys::now(), why });
                }
            }
            FromSpawner::Conditions(conditions) => {
                self.monitor
                    .set_conditions(conditions.into_iter().filter_map(|condition| condition.condition()).collect());
            }
            // A pong only proves that the spawner lives.
            FromSpawner::Pong() => {}
            // The handshake is over.
            FromSpawner::Welcome(_) | FromSpawner::Refused(_) => {}
        }
    }

    fn task_of(&self, attempt: AttemptId) -> Option<Arc<Task>> {
        lock(&self.in_flight).get(&attempt).map(|flight| Arc::clone(&flight.task))
    }

    /// Asks the spawner to repeat a message after a pause. Its descriptor was dropped because this process has none
    /// left.
    fn ask_again(self: &Arc<Self>, attempt: AttemptId, generation: u64) {
        let dispatcher = Arc::clone(self);
        self.delay_queue
            .after(SHORTAGE_PAUSE, move || dispatcher.outbox.post_to(generation, &ToSpawner::Repeat(attempt)));
    }

    /// Returns the report of an end, unless outputs must be collected first; then the pool reports.
    fn ended(
        self: &Arc<Self>,
        attempt: AttemptId,
        ending: Ending,
        members: Vec<MemberEnding>,
        message: Option<String>,
        root: Option<OwnedFd>,
    ) -> Option<Report> {
        let task = lock(&self.in_flight).remove(&attempt)?.task;
        let fetched = lock(&self.fetched).remove(&attempt).unwrap_or_default();
        let over = EndedAttempt { attempt, task, ending, members, message, fetched, root, since: Instant::now() };
        if !collect::is_needed(&over.task.wanted) || over.ending.started.is_none() {
            return Some(over.report(Ok(Collected::default())));
        }
        self.collect(over);
        None
    }

    fn collect(self: &Arc<Self>, mut over: EndedAttempt) {
        let dispatcher = Arc::clone(self);
        let pool = if collect::uploads(&over.task) { &self.transfers } else { &self.pool };
        pool.run(move || {
            let view = over.root.take().map(View::new);
            let (attempt, task) = (over.attempt, &over.task);
            let collected = catch_panic(|| {
                #[cfg(test)]
                super::dispatcher::tests::fault(attempt);
                collect::collect(&dispatcher.logs, &dispatcher.artifact_client, attempt, task, view.as_ref())
            });
            over.root = view.map(View::into_root);
            if collected.as_ref().is_ok_and(met_shortage) && over.since.elapsed() < SHORTAGE_TIMEOUT {
                let again = Arc::clone(&dispatcher);
                dispatcher.delay_queue.after(SHORTAGE_PAUSE, move || again.collect(over));
                return;
            }
            let collected = collected.map(classify);
            // Its file system may be deleted as soon as the end is reported.
            over.root = None;
            (dispatcher.sink)(vec![over.report(collected)]);
        });
    }

    fn stage(self: &Arc<Self>, attempt: AttemptId, root: Option<OwnedFd>, generation: u64) {
        let Some(task) = self.task_of(attempt) else { return };
        let dispatcher = Arc::clone(self);
        let pool = if collect::downloads(&task) { &self.transfers } else { &self.pool };
        pool.run(move || {
            let view = root.map(View::new);
            let staged = catch_panic(|| {
                #[cfg(test)]
                super::dispatcher::tests::fault(attempt);
                let is_wanted = || lock(&dispatcher.in_flight).contains_key(&attempt);
                let view = view.as_ref().ok_or("its file system could not be opened")?;
                collect::stage(&dispatcher.artifact_client, &task, view, &is_wanted)
            });
            let staged = staged.unwrap_or_else(|why| Err(format!("a bug of octoflow: placing inputs failed: {why}")));
            match staged {
                Ok(fetched) => {
                    if !fetched.is_empty() {
                        lock(&dispatcher.fetched).insert(attempt, fetched);
                    }
                    dispatcher.outbox.post_to(generation, &ToSpawner::StartPrepared(attempt));
                }
                Err(why) if Shortage::of_files(&why).is_some() => {
                    let again = Arc::clone(&dispatcher);
                    let root = view.map(View::into_root);
                    dispatcher.delay_queue.after(SHORTAGE_PAUSE, move || again.stage(attempt, root, generation));
                }
                // Its spawner died meanwhile, and the next one was asked to start it anew.
                Err(_) if dispatcher.outbox.generation() != generation => {}
                Err(why) => {
                    dispatcher.outbox.post_to(generation, &ToSpawner::Abandon(attempt));
                    if lock(&dispatcher.in_flight).remove(&attempt).is_some() {
                        (dispatcher.sink)(vec![ended_at_once(attempt, Exit::Environment(why), Vec::new())]);
                    }
                }
            }
        });
    }
}

impl EndedAttempt {
    fn report(self, collected: Result<Collected, String>) -> Report {
        let Self { attempt, task, ending, members, message, fetched, .. } = self;
        let members = member_ends(&task, members);
        let Ending { at, started, exit, log_truncated, log_bytes } = ending;
        let (exit, collected) = match collected {
            Ok(collected) => (Exit::from(exit), collected),
            Err(why) => {
                let why = format!("a bug of octoflow: its outputs could not be collected: {why}");
                (Exit::Environment(why), Collected::default())
            }
        };
        let collected = Collected { message, fetched, ..collected };
        let end = End { exit, started, collected, log_truncated, log_bytes, members };
        Report::Ended { attempt, at, end: Box::new(end) }
    }
}

/// Returns whether something could not be collected for lack of space, descriptors or a disk that answers, which pass.
fn met_shortage(collected: &Collected) -> bool {
    let parameters = collected.parameters.iter().filter_map(|(_, found)| failure(found));
    let artifacts = collected.artifacts.iter().map(|(_, found)| found).chain(&collected.log).filter_map(failure);
    parameters.chain(artifacts).any(|why| Shortage::of_files(why).is_some())
}

/// Marks failures of the disk at the start of their message, so that people and rules can tell them from other
/// failures.
fn classify(mut collected: Collected) -> Collected {
    fn class<T>(found: &mut Found<T>) {
        if let Found::Failed(why) = found
            && Shortage::of_files(why).is_some_and(Shortage::is_of_the_disk)
        {
            *why = format!("disk: {why}");
        }
    }
    collected.parameters.iter_mut().for_each(|(_, found)| class(found));
    collected.artifacts.iter_mut().for_each(|(_, found)| class(found));
    collected.log.iter_mut().for_each(class);
    collected
}

fn failure<T>(found: &Found<T>) -> Option<&str> {
    match found {
        Found::Failed(why) => Some(why),
        Found::Here(_) | Found::Missing => None,
    }
}

/// A message's descriptor was lost in transit.
struct DescriptorLost;

/// Takes the descriptor that came with a message, if the message says that it has one.
fn take_descriptor(has: bool, descriptors: &mut VecDeque<Option<OwnedFd>>) -> Result<Option<OwnedFd>, DescriptorLost> {
    match has.then(|| descriptors.pop_front().flatten()) {
        None => Ok(None),
        Some(Some(root)) => Ok(Some(root)),
        Some(None) => Err(DescriptorLost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_met_a_full_or_broken_disk_are_collected_again_and_others_are_not() {
        let collected = |code| {
            let why = format!("`/out`: {}", std::io::Error::from_raw_os_error(code));
            Collected { parameters: vec![("p".to_owned(), Found::Failed(why))], ..Collected::default() }
        };
        for code in [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EMFILE] {
            assert!(met_shortage(&collected(code)), "{code}");
        }
        assert!(!met_shortage(&collected(libc::EACCES)));
        let failed = |code| classify(collected(code)).parameters.remove(0).1;
        for code in [libc::EIO, libc::ENOSPC] {
            assert!(matches!(failed(code), Found::Failed(why) if why.starts_with("disk: ")), "{code}");
        }
        assert!(matches!(failed(libc::EMFILE), Found::Failed(why) if !why.starts_with("disk: ")));
    }
}
