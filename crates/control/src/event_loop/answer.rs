//! What each message asks of the event loop, and how it is answered: whatever shows a decision is told once that decision
//! is durable.

use std::sync::{Arc, PoisonError};

use octoflow_engine::{Command, Input, Run, plugins::PluginTable};
use octoflow_model::{Revision, RunId, Time};

use super::{
    EventLoop, Watcher,
    message::{Detail, Entered, Explained, Message, Reply, Shown},
};
use crate::{
    Error,
    hooks::HookSignal,
    node,
    objects::{keyed::KeyedObject, scheduling::SchedulingChange},
};

impl EventLoop {
    /// Takes one message; whether it closes the loop.
    pub(super) fn take(&mut self, message: Message) -> Result<bool, Error> {
        let now = self.clock.now();
        match message {
            Message::Reports(reports) => self.reports.extend(reports),
            Message::Packed(packed) => self.finish(*packed),
            Message::Submit { run, submission, program, terms, watcher, show, reply } => {
                match self.submit(run, submission, program, terms, watcher, now) {
                    Ok(()) if show => self.showing.push((run, reply)),
                    answer => self.answer(reply, answer.map(|()| move |_| Entered { run, shown: None })),
                }
            }
            Message::Command { run, command: Command::Mark { .. }, reply } if self.archive.has(run) => {
                self.archive.wait(run, reply);
            }
            Message::Command { run, command, reply } => {
                if let Some(refusal) = self.archive.refusal(run, &command) {
                    let refused: Result<fn(Revision), Error> = Err(refusal.into());
                    self.answer(reply, refused);
                    return Ok(false);
                }
                let answer = self.input(Input::Command { run, command }, now).map_err(Error::from);
                self.answer(reply, answer.map(|()| |_| ()));
            }
            Message::Restore { run, past, watcher, reply } => {
                self.watch(run, watcher, past.len() as u64);
                let answer = self.restore_run(run, past, now);
                self.answer(reply, answer.map(|()| |_| ()));
            }
            Message::RestoreAll { runs, unreadable, reply } => {
                let answer = self.restore_all(runs, unreadable, now);
                self.answer(reply, answer.map(|()| |_| ()));
            }
            Message::Keyed { object, reply } => {
                let KeyedObject { kind, namespace, name, data } = *object;
                self.input(Input::Object { kind, namespace, name, data: Some(data) }, now).ok();
                let _ = reply.send(Ok(()));
            }
            Message::Unkeyed { kind, namespace, name, reply } => {
                self.input(Input::Object { kind, namespace, name, data: None }, now).ok();
                let _ = reply.send(Ok(()));
            }
            Message::Plugins { table, reply } => {
                self.take_plugins(table, now)?;
                let _ = reply.send(Ok(()));
            }
            Message::Scheduling { change, reply } => self.take_scheduling(*change, reply, now),
            Message::Look(look) => {
                let tell = look(Some(self.driver.engine.scheduler()));
                self.waiting.push(Box::new(move |kept| tell(kept.map(drop))));
            }
            Message::Forget { run, name, reply } => {
                self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
                self.archive.forget(run);
                self.leaving.push((run, reply));
            }
            Message::Watch { run, watcher } => self.take_watch(run, watcher),
            Message::Object { run, detail, reply } => {
                // Told once it is on disk: what is shown must not be taken back by a crash.
                let shown = self.driver.engine.run(run).map(|run| match detail {
                    Detail::Summary => Shown::Here(run.summary()),
                    Detail::Whole if run.size() > self.limits.large_run => Shown::Elsewhere(run.size()),
                    Detail::Whole => Shown::Here(run.object()),
                });
                let shown = shown.or_else(|| self.archive.look(run, detail));
                self.answer(reply, Ok(|_| shown));
            }
            Message::Size { run, reply } => {
                let size = self.driver.engine.run(run).map(|run| run.size()).or_else(|| self.archive.size(run));
                self.answer(reply, Ok(move |_| size));
            }
            // All of these show decisions too, so they are told once those are on disk.
            Message::Tasks { run, reply } => {
                let attempts = self.small_run(run).map(|run| run.attempts());
                self.answer(reply, Ok(|_| attempts));
            }
            Message::LogSizes { run, reply } => {
                let sizes = self.small_run(run).map(|run| run.log_sizes());
                self.answer(reply, Ok(|_| sizes));
            }
            Message::Explain { run, reply } => {
                let engine = &self.driver.engine;
                let told = engine.run(run).map(|open| {
                    let scheduler = engine.scheduler().freeze();
                    let small = Some(open).filter(|open| open.size() <= self.limits.large_run);
                    let reasons = small.map(|run| run.explain(Some(&scheduler), Some(engine.locks())));
                    Box::new(Explained { reasons, scheduler })
                });
                self.answer(reply, Ok(|_| told));
            }
            Message::Metrics { reply } => {
                let engine = &self.driver.engine;
                let text = engine.meters().render(&engine.live_meters(now));
                self.answer(reply, Ok(|_| text));
            }
            Message::Gauges { reply } => {
                // Levels of this process and no fact of a run; they are wanted most while nothing can be written.
                let _ = reply.send(Ok(self.gauges()));
            }
            // Of an outage that is over.
            Message::Reopened(_) => {}
            Message::Failed(error) => return Err(error.into()),
            Message::Broken(why) => return Err(Error::Broken(why)),
            Message::Close => return Ok(true),
        }
        Ok(false)
    }

    /// These are the plugins from now on. What was decided with those before is durable before anybody acts on the new ones.
    fn take_plugins(&mut self, table: Arc<PluginTable>, now: Time) -> Result<(), Error> {
        self.commit()?;
        self.input(Input::Plugins(table.clone()), now).ok();
        let outlet = self.outlet.clone();
        self.after_commits(move |_| outlet.hooks(HookSignal::Table(table)));
        Ok(())
    }

    fn take_scheduling(&mut self, change: SchedulingChange, reply: Reply<()>, now: Time) {
        let kept = change.is_kept();
        self.keep_node(&change);
        let change = match change {
            SchedulingChange::Joined(spec) => {
                let marked = self.storage.reader().map_err(Error::from).and_then(|reader| node::stored(&reader, &spec));
                match marked {
                    Ok(marked) => SchedulingChange::Joined(Box::new(marked)),
                    Err(error) => return drop(reply.send(Err(error))),
                }
            }
            other @ (SchedulingChange::Queue { .. }
            | SchedulingChange::Class { .. }
            | SchedulingChange::Node(_)
            | SchedulingChange::Left { .. }
            | SchedulingChange::Drain { .. }
            | SchedulingChange::Evict { .. }) => other,
        };
        self.input(change.into_input(), now).ok();
        if kept {
            let _ = reply.send(Ok(()));
        } else {
            self.answer(reply, Ok(|_| ()));
        }
    }

    /// Remembers which nodes there are, for the engine that is made anew after an outage.
    pub(super) fn keep_node(&mut self, change: &SchedulingChange) {
        let (name, spec) = match change {
            SchedulingChange::Joined(spec) => (&*spec.name, Some(&**spec)),
            SchedulingChange::Left { node } => (node.as_str(), None),
            SchedulingChange::Queue { .. }
            | SchedulingChange::Class { .. }
            | SchedulingChange::Node(_)
            | SchedulingChange::Drain { .. }
            | SchedulingChange::Evict { .. } => return,
        };
        self.limits.nodes.retain(|node| &*node.name != name);
        self.limits.nodes.extend(spec.cloned());
    }

    fn take_watch(&mut self, run: RunId, watcher: Watcher) {
        if self.driver.engine.run(run).is_some() {
            self.watch(run, watcher, self.driver.decided(run));
        } else if self.archive.has(run) {
            // Everything has been told; the watch closes when the run's record is there.
            self.watch(run, watcher, u64::MAX);
        } else {
            // The run is over: the watch closes once its end is certainly on disk.
            self.after_commits(move |_| drop(watcher));
        }
    }

    /// An open run that is small enough to be looked at from end to end while everybody waits. Others are read from the
    /// store by whoever asks, once what was decided so far is there.
    fn small_run(&self, run: RunId) -> Option<&Run> {
        self.driver.engine.run(run).filter(|run| run.size() <= self.limits.large_run)
    }

    /// Tells the outcome once what was decided so far is on disk.
    pub(super) fn answer<T: Send + 'static>(
        &mut self,
        reply: Reply<T>,
        outcome: Result<impl FnOnce(Revision) -> T + Send + 'static, Error>,
    ) {
        // Nobody has to listen any more.
        self.waiting.push(Box::new(move |kept| drop(reply.send(kept.and_then(|revision| Ok(outcome?(revision)))))));
    }
}
