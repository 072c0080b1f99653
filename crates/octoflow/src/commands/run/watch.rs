//! The event loop of `run`: handles facts, signals, requests from other processes and the time limit, one at a time,
//! until every run is over.

use std::{
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use octoflow_control::ConditionKind;
use octoflow_engine::Command;
use octoflow_engine::follow::FollowedRun;
use octoflow_model::{Fact, RunId, Time};

use super::{
    Context, LocalController,
    controller::{Facts, is_outage},
    interrupt::{Interrupts, Step},
    progress::Progress,
    submit::Submitted,
    tail::Tail,
};
use crate::{
    cli::Run,
    commands::logs::{self, LogOptions},
    config::system::{self, Signal},
    output::{clock, remote_progress::RemoteProgress},
    source::{
        LogQuery, below,
        remote::{Message, Request, RequestListener},
    },
};

/// Interval between two pictures of a tree.
const DRAW_INTERVAL: Duration = Duration::from_millis(300);
/// Interval for checking whether storage is available again.
const OUTAGE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reason why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnding {
    Natural,
    TimedOut,
    Interrupted,
    /// The process was asked to exit while tasks were running.
    LeftRunning,
}

pub(crate) struct Watched {
    pub runs: Vec<WatchedRun>,
    pub ending: RunEnding,
}

pub(crate) struct WatchedRun {
    pub id: RunId,
    pub namespace: String,
    pub kind: String,
    pub name: String,
    pub followed: FollowedRun,
    /// Facts from before this time are not news.
    news_from: Time,
}

enum LoopEvent {
    Facts(usize, Vec<Fact>),
    Over(usize),
    /// A run that one of ours created is over.
    ChildOver(RunId),
    Signal(Signal),
    Asked(Message, Sender<Result<(), String>>),
    /// A thread ended unexpectedly; the text says which and why.
    Broken(String),
}

pub(crate) fn watch(
    args: &Run,
    runs: Vec<Submitted>,
    controller: &LocalController,
    context: &Context,
) -> Result<Watched> {
    let (tell, told) = mpsc::channel();
    let broken = tell.clone();
    controller.on_failure(move |why| drop(broken.send(LoopEvent::Broken(why))));
    listen_to_signals(controller, tell.clone())?;
    let listener = listen_to_others(controller, context, tell.clone());
    let now = clock::now();
    let mut seen = Vec::new();
    for (at, run) in runs.into_iter().enumerate() {
        let news_from = if run.resumed { now } else { Time(i64::MIN) };
        let followed = FollowedRun::new(&run.name);
        forward(controller, at, run.facts, tell.clone())?;
        let Submitted { id, namespace, kind, name, .. } = run;
        seen.push(WatchedRun { id, namespace, kind, name, followed, news_from });
    }
    let mut below = if args.log { print_below(args, &seen, controller, context)? } else { Vec::new() };
    let mut progress = Progress::new(args, context.output, seen.len());
    if progress.is_live() {
        let drawn = draw_below(&seen, controller, context)?;
        if !drawn.is_empty() {
            progress.be_quiet();
            below.extend(drawn);
        }
    }
    let tail = Tail::new(args, context);
    let deadline = args.timeout.map(|span| Instant::now() + span);
    let mut watch = Watch {
        controller,
        open: seen.len(),
        runs: seen,
        progress,
        tail,
        interrupts: Interrupts::default(),
        deadline,
        timed_out: false,
        children: Vec::new(),
        tell: tell.clone(),
        conditions: ConditionReporter::default(),
        paused: false,
        pending: None,
    };
    drop(tell);
    let outcome = watch.until_over(&told);
    // Pending requests are dropped first; dropping the listener waits for them.
    drop(told);
    drop(listener);
    let left = outcome?;
    // Logs and trees are complete before the end is reported.
    for thread in below.into_iter().filter(|_| !left) {
        thread.join().expect("printing lines does not panic")?;
    }
    let followed: Vec<&FollowedRun> = watch.runs.iter().map(|run| &run.followed).collect();
    watch.progress.finish(&followed);
    let ending = if left {
        RunEnding::LeftRunning
    } else if watch.interrupts.any() {
        RunEnding::Interrupted
    } else if watch.timed_out {
        RunEnding::TimedOut
    } else {
        RunEnding::Natural
    };
    Ok(Watched { runs: watch.runs, ending })
}

/// Prints the logs of the runs that ours make, while they run: they are not among our own tasks.
fn print_below(
    args: &Run,
    runs: &[WatchedRun],
    controller: &LocalController,
    context: &Context,
) -> Result<Vec<JoinHandle<Result<()>>>> {
    let mut threads = Vec::new();
    for run in runs {
        let Some(row) = controller.row(run.id)?.filter(below::may_have) else { continue };
        let query = LogQuery { follow: true, ..LogQuery::default() };
        let owner = (runs.len() > 1).then(|| run.name.clone());
        let options =
            LogOptions { query, owner, to_stderr: args.output.is_some(), raw: args.raw, ..LogOptions::default() };
        let (source, output) = (context.directory_elsewhere(), context.output);
        threads.push(thread::spawn(move || logs::print_whole(&*source()?, &source, &row, &options, &output)));
    }
    Ok(threads)
}

/// Draws the trees of runs that consist of others, with those below them. Their own facts tell too little of these.
fn draw_below(
    runs: &[WatchedRun],
    controller: &LocalController,
    context: &Context,
) -> Result<Vec<JoinHandle<Result<()>>>> {
    let mut threads = Vec::new();
    // Two trees cannot be drawn in one place.
    let [run] = runs else { return Ok(threads) };
    if let Some(row) = controller.row(run.id)?.filter(below::may_have) {
        let (source, mut progress) = (context.directory_elsewhere(), RemoteProgress::new(context.output, false));
        threads.push(thread::spawn(move || {
            let source = source()?;
            loop {
                // Checked before reading, so that the last picture shows the end.
                let now = source.look_up(&row.namespace, Some(&row.kind), &row.name)?;
                let over = now.is_none_or(|now| now.archived);
                progress.tell(&below::with_nodes_below(&*source, &row, source.object(&row)?)?);
                if over {
                    return Ok(());
                }
                thread::sleep(DRAW_INTERVAL);
            }
        }));
    }
    Ok(threads)
}

struct Watch<'a> {
    controller: &'a LocalController,
    runs: Vec<WatchedRun>,
    /// Number of open runs.
    open: usize,
    progress: Progress,
    tail: Option<Tail>,
    interrupts: Interrupts,
    deadline: Option<Instant>,
    timed_out: bool,
    /// Open runs that ours created; the process waits for them too.
    children: Vec<RunId>,
    tell: Sender<LoopEvent>,
    conditions: ConditionReporter,
    /// True while storage is unavailable and the user was informed.
    paused: bool,
    /// Command to send to every run once storage is available.
    pending: Option<Command>,
}

/// Conditions that keep tasks from running, reported once while they last: without a message a run would seem to hang.
#[derive(Default)]
struct ConditionReporter {
    look_at: Option<Instant>,
    told: Vec<ConditionKind>,
}

/// Interval for checking conditions.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Shorter conditions are not reported.
const MIN_DURATION: Duration = Duration::from_secs(2);

impl ConditionReporter {
    /// Returns new conditions, and the time of the next check.
    fn look(&mut self, controller: &LocalController) -> (Vec<String>, Instant) {
        let now = Instant::now();
        let at = *self.look_at.get_or_insert(now + CHECK_INTERVAL);
        if at > now {
            return (Vec::new(), at);
        }
        self.look_at = Some(now + CHECK_INTERVAL);
        let conditions = controller.conditions();
        self.told.retain(|kind| conditions.iter().any(|condition| condition.kind == *kind));
        let mut news = Vec::new();
        for condition in conditions {
            let lasts = clock::now().since(condition.since) >= MIN_DURATION;
            if lasts && !self.told.contains(&condition.kind) {
                self.told.push(condition.kind);
                news.push(format!("steps wait ({}): {}", condition.kind.name(), condition.message));
            }
        }
        (news, now + CHECK_INTERVAL)
    }
}

impl Watch<'_> {
    /// Runs until every run is over. Returns whether it was left before.
    fn until_over(&mut self, told: &Receiver<LoopEvent>) -> Result<bool> {
        while self.open > 0 {
            let next = self.tick()?;
            match told.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(event) => {
                    if self.take(event)? {
                        return Ok(true);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread that waits for signals never ends"),
            }
        }
        Ok(false)
    }

    /// Does what is due; returns the time of the next call.
    fn tick(&mut self) -> Result<Instant> {
        let runs = &self.runs;
        let mut next = self.progress.tick(|| runs.iter().map(|run| &run.followed).collect());
        if let Some(tail) = &mut self.tail {
            next = next.min(tail.tick()?);
        }
        let (news, look_at) = self.conditions.look(self.controller);
        news.iter().for_each(|words| self.progress.talk(words));
        next = next.min(look_at);
        match (self.controller.outage(), self.paused) {
            (Some(why), false) => {
                self.paused = true;
                self.progress.talk(&format!("paused: {why}"));
            }
            (None, true) => {
                self.paused = false;
                self.progress.talk("the data directory can be written again, going on");
            }
            _ => {}
        }
        if let Some(command) = self.pending.take() {
            self.command_all(&command)?;
        }
        next = next.min(Instant::now() + OUTAGE_CHECK_INTERVAL);
        if let Some(deadline) = self.deadline {
            if deadline <= Instant::now() {
                self.deadline = None;
                self.timed_out = true;
                self.progress.talk("the time limit is reached, stopping");
                self.command_all(&Command::Stop)?;
            } else {
                next = next.min(deadline);
            }
        }
        Ok(next)
    }

    /// Handles one event. Returns whether to exit.
    fn take(&mut self, event: LoopEvent) -> Result<bool> {
        match event {
            LoopEvent::Facts(at, facts) => self.facts(at, &facts)?,
            LoopEvent::Over(at) => {
                self.open -= 1;
                let run = &self.runs[at];
                if run.followed.ended.is_none() {
                    bail!(
                        "the engine stopped working on {0}; what is done is kept, take it up again with: octoflow run --resume {0}",
                        run.name
                    );
                }
                self.outlived_by(run.id, &run.name.clone())?;
            }
            LoopEvent::ChildOver(run) => {
                self.open -= 1;
                self.children.retain(|child| *child != run);
                self.outlived_by(run, "it")?;
            }
            LoopEvent::Signal(signal) => {
                let (step, words) = self.interrupts.signal(signal);
                self.progress.talk(words);
                match step {
                    Step::Stop => self.command_all(&Command::Stop)?,
                    Step::Terminate => self.command_all(&Command::Terminate)?,
                    Step::Leave => return Ok(true),
                }
            }
            LoopEvent::Broken(why) => bail!("{why}"),
            LoopEvent::Asked(message, reply) => {
                // The asking process may be gone already.
                let _ = reply.send(self.answer(&message));
            }
        }
        Ok(false)
    }

    fn facts(&mut self, at: usize, facts: &[Fact]) -> Result<()> {
        let run = &mut self.runs[at];
        for fact in facts {
            if let Some((when, event)) = run.followed.take(fact)
                && when >= run.news_from
            {
                self.progress.event(&run.followed, when, &event);
            }
            if let Some(tail) = &mut self.tail {
                tail.fact(run.id, &run.followed, fact)?;
            }
        }
        Ok(())
    }

    /// Waits for open runs that a finished run created.
    fn outlived_by(&mut self, run: RunId, name: &str) -> Result<()> {
        for (child, title) in self.controller.open_children(run)? {
            self.progress.talk(&format!("waiting for workflow {title}, which {name} made"));
            let (facts, tell) = (self.controller.watch(child), self.tell.clone());
            self.controller.spawn("child", move || {
                facts.iter().for_each(drop);
                let _ = tell.send(LoopEvent::ChildOver(child));
            })?;
            self.children.push(child);
            self.open += 1;
        }
        Ok(())
    }

    /// Sends a command to every open run. One that ends at this moment may refuse, which is fine.
    fn command_all(&mut self, command: &Command) -> Result<()> {
        let runs = self.runs.iter().filter(|run| run.followed.ended.is_none()).map(|run| run.id);
        for run in runs.chain(self.children.iter().copied()) {
            match self.controller.command(run, command.clone()) {
                // It is sent again later; a user who does not want to wait interrupts once more.
                Err(error) if is_outage(&error) => {
                    self.pending = Some(command.clone());
                    return Ok(());
                }
                Err(error) if crate::exit::of(&error) != crate::exit::Exit::Conflict => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn answer(&self, message: &Message) -> Result<(), String> {
        let meant = |run: &&WatchedRun| {
            run.name == message.run
                && run.namespace == message.namespace
                && message.kind.as_deref().is_none_or(|kind| kind == run.kind)
        };
        let ours = self.runs.iter().find(meant);
        // A run that ours created belongs to this process too.
        let made = || self.controller.open_run(&message.namespace, message.kind.as_deref(), &message.run);
        let Some(run) = ours.map(|run| run.id).or_else(made) else {
            return Err(format!("the process that holds the data directory is not running `{}`", message.run));
        };
        let command = match &message.request {
            Request::Stop { selector: None, .. } => Command::Stop,
            Request::Stop { selector: Some(selector), message } => {
                Command::StopNodes { selector: selector.clone(), message: message.clone().unwrap_or_default() }
            }
            Request::Terminate => Command::Terminate,
            Request::Suspend => Command::Suspend,
            Request::Resume { selector, supplied } => {
                Command::Resume { selector: selector.clone(), supplied: supplied.clone() }
            }
        };
        self.controller.command(run, command).map_err(|error| format!("{error:#}"))
    }
}

fn listen_to_signals(controller: &LocalController, tell: Sender<LoopEvent>) -> Result<()> {
    let signals = system::signals().context("cannot listen to signals")?;
    controller.spawn("signals", move || {
        for signal in signals {
            if tell.send(LoopEvent::Signal(signal)).is_err() {
                return;
            }
        }
    })
}

/// Without the socket only commands of other processes do not work, so that is a warning.
fn listen_to_others(
    controller: &LocalController,
    context: &Context,
    tell: Sender<LoopEvent>,
) -> Option<RequestListener> {
    let started = RequestListener::start(&context.data_dir, controller.supervisor(), move |message| {
        let (reply, answer) = mpsc::channel();
        let ended = || "the run has just ended".to_owned();
        tell.send(LoopEvent::Asked(message, reply)).map_err(|_| ended())?;
        answer.recv().unwrap_or_else(|_| Err(ended()))
    });
    match started {
        Ok(listener) => Some(listener),
        Err(error) => {
            context.output.warn(&format!("stop, suspend and resume will not reach this run: {error}"));
            None
        }
    }
}

fn forward(controller: &LocalController, at: usize, facts: Facts, tell: Sender<LoopEvent>) -> Result<()> {
    controller.spawn("watch", move || {
        for batch in facts {
            if tell.send(LoopEvent::Facts(at, batch)).is_err() {
                return;
            }
        }
        let _ = tell.send(LoopEvent::Over(at));
    })
}
