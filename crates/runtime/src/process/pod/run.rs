//! The supervisor's event loop: starts containers in order, forwards their output and ends, and determines when
//! everything is over. Waits for nothing but the next event, and starts nothing once it was told to end.

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    process::ExitCode,
    time::{Duration, Instant},
};

use octoflow_model::pod::Part;

use super::probe::Prober;
use crate::process::{
    clone::Stack,
    spawner::{
        MARK,
        launch::{self, Spawned},
    },
    sys::{self, Epoll, How, NO_EVENT},
    wire::{Bytes, Ended, FromPod, Member, PodPlan, frame},
};

const SIGNALS: u64 = 0;
/// Token of the answers of readiness checks.
const PROBES: u64 = u64::MAX;
/// Offset of stream tokens, which encode a member's index and one of its streams.
const STREAMS: u64 = 1;
const EVENTS_PER_TURN: usize = 64;
const BUFFER: usize = 64 * 1024;
/// Buffers read from a stream per event, so that one loud container cannot starve the others.
const BUFFERS_PER_EVENT: usize = 8;
/// Buffers drained after the end: more than a pipe holds.
const BUFFERS_AT_END: usize = 32;

/// Delay before a retry of a start that failed for lack of descriptors or processes.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(200);
/// Limit of a shortage: one that lasts is this pod's own doing, and nobody outside would know why it hangs.
const SHORTAGE_TIMEOUT: Duration = Duration::from_secs(300);

/// State of a container. Transitions: `Waiting → Running → {Over, Pausing}`, `Pausing → Running`; `Waiting` and
/// `Pausing` become `Never` or `Over` when nothing may start any more.
enum State {
    Waiting,
    Running(Running),
    /// Failed like this and is retried at that time.
    Pausing(Instant, Ended),
    Over(Ended),
    /// Will not be started.
    Never,
}

struct Running {
    pid: i32,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

struct Supervisor {
    pod_plan: PodPlan,
    states: Vec<State>,
    /// Starts so far, by member.
    tries: Vec<u32>,
    prober: Prober,
    attempt_variable: String,
    null: File,
    stack: Stack,
    epoll: Epoll,
    signals: OwnedFd,
    /// True once the supervisor was told to end.
    ending: bool,
    /// True once the sidecars were told to end.
    dismissed: bool,
    /// Time at which running containers are killed.
    kill_at: Option<Instant>,
    /// Since when a resource that a container needs is short; `short_until` is the time of the next attempt.
    short_since: Option<Instant>,
    short_until: Option<Instant>,
    buffer: Vec<u8>,
    outgoing: Vec<u8>,
    out: File,
}

pub(super) fn run(pod_plan: PodPlan) -> io::Result<ExitCode> {
    // The descriptors of the cgroups are for the supervisor, not for containers.
    sys::pid::set_inherited_cloexec();
    sys::reset_dispositions();
    let signals = sys::signals_as_descriptor()?;
    let epoll = Epoll::new()?;
    epoll.add(&signals, SIGNALS)?;
    let prober = Prober::new(&pod_plan.members)?;
    epoll.add(prober.answers(), PROBES)?;
    let value = env::var(MARK).unwrap_or_default();
    let count = pod_plan.members.len();
    let mut supervisor = Supervisor {
        states: (0..count).map(|_| State::Waiting).collect(),
        tries: vec![0; count],
        prober,
        pod_plan,
        attempt_variable: format!("{MARK}={value}"),
        null: File::options().read(true).write(true).open("/dev/null")?,
        stack: Stack::new()?,
        epoll,
        signals,
        ending: false,
        dismissed: false,
        kill_at: None,
        short_since: None,
        short_until: None,
        buffer: vec![0; BUFFER],
        outgoing: Vec::new(),
        out: io::stdout().as_fd().try_clone_to_owned()?.into(),
    };
    let mut events = [NO_EVENT; EVENTS_PER_TURN];
    loop {
        supervisor.advance();
        supervisor.advance_probes();
        supervisor.flush()?;
        if supervisor.is_done() {
            return Ok(supervisor.exit_code());
        }
        supervisor.wait_for_events(&mut events)?;
    }
}

impl Supervisor {
    /// Starts the containers that may start now and gives up those that never may.
    fn advance(&mut self) {
        let mut before = true;
        for at in self.of(Part::Init) {
            if before && !self.ending && matches!(self.states[at], State::Waiting) {
                self.start(at);
            }
            before &= self.ended_well(at);
        }
        let gives_up = self.ending || self.of(Part::Init).any(|at| self.ended_badly(at));
        if gives_up {
            self.give_up();
        } else if before {
            for at in self.of(Part::Sidecar) {
                if matches!(self.states[at], State::Waiting) {
                    self.start(at);
                }
            }
            self.advance_main();
        }
        if self.of(Part::Main).all(|at| self.is_final(at)) {
            self.dismiss();
        }
    }

    fn advance_main(&mut self) {
        // A container that cannot be started may decide others, so repeat until nothing changes.
        loop {
            let mut changed = false;
            for at in self.of(Part::Main) {
                let due = match &self.states[at] {
                    State::Waiting => {
                        let after = self.pod_plan.members[at].after.iter().map(|other| *other as usize);
                        if after.clone().any(|other| self.ended_badly(other)) {
                            self.states[at] = State::Never;
                            changed = true;
                            continue;
                        }
                        after.clone().all(|other| self.ended_well(other))
                    }
                    State::Pausing(until, _) => *until <= Instant::now(),
                    State::Running(_) | State::Over(_) | State::Never => false,
                };
                changed |= due && self.start(at);
            }
            if !changed {
                return;
            }
        }
    }

    /// Starts a container. Returns false if a shortage delays it.
    fn start(&mut self, at: usize) -> bool {
        if self.short_until.is_some_and(|until| until > Instant::now()) {
            return false;
        }
        self.short_until = None;
        let Member { launch, .. } = &self.pod_plan.members[at];
        self.tries[at] += 1;
        if launch.isolated {
            // A problem shows when the directory is entered.
            let _ = fs::create_dir_all(&launch.dir);
        }
        match launch::start(launch, None, &self.attempt_variable, &self.null, &mut self.stack) {
            Ok(Spawned { pid, at: time, stdout, stderr, reserve: _ }) => {
                // Without events the output is still read at the end, only late.
                let _ = self.epoll.add(&stdout, token(at, false));
                if let Some(stderr) = &stderr {
                    let _ = self.epoll.add(stderr, token(at, true));
                }
                self.states[at] = State::Running(Running { pid, stdout: Some(stdout), stderr });
                self.short_since = None;
                self.prober.started(at);
                self.queue(&FromPod::Began(index(at), time));
                // Sent at once: a container that is killed with us a moment later has at least begun. A broken
                // connection shows in the next turn.
                let _ = self.flush();
            }
            Err(why) if launch::shortage(&why).is_some() && self.short_for() < SHORTAGE_TIMEOUT => {
                self.tries[at] -= 1;
                self.short_until = Some(Instant::now() + SHORTAGE_PAUSE);
                return false;
            }
            Err(why) => self.over(at, why),
        }
        true
    }

    /// Runs the readiness checks that are due, and says when all containers are ready.
    fn advance_probes(&mut self) {
        if !self.ending {
            let Self { prober, pod_plan, attempt_variable, null, stack, .. } = self;
            prober.advance(&pod_plan.members, attempt_variable, null, stack);
        }
        if let Some(ready) = self.prober.news() {
            self.queue(&FromPod::Ready(ready));
        }
    }

    fn short_for(&mut self) -> Duration {
        self.short_since.get_or_insert_with(Instant::now).elapsed()
    }

    fn over(&mut self, at: usize, exit: Ended) {
        self.queue(&FromPod::Over(index(at), sys::now(), exit.clone()));
        self.states[at] = State::Over(exit);
    }

    /// Gives up every container that is not running.
    fn give_up(&mut self) {
        for at in 0..self.states.len() {
            match &self.states[at] {
                State::Waiting => self.states[at] = State::Never,
                State::Pausing(_, exit) => {
                    let exit = exit.clone();
                    self.over(at, exit);
                }
                State::Running(_) | State::Over(_) | State::Never => {}
            }
        }
    }

    /// Ends the sidecars, because the main containers are over.
    fn dismiss(&mut self) {
        if std::mem::replace(&mut self.dismissed, true) {
            return;
        }
        self.signal(Part::Sidecar, libc::SIGTERM);
        let latest = Instant::now() + Duration::from_millis(self.pod_plan.grace_ms);
        self.kill_at = Some(self.kill_at.map_or(latest, |earlier| earlier.min(latest)));
    }

    fn wait_for_events(&mut self, events: &mut [libc::epoll_event]) -> io::Result<()> {
        let pauses = self.states.iter().filter_map(|state| match state {
            State::Pausing(until, _) => Some(*until),
            _ => None,
        });
        let probes = if self.ending { None } else { self.prober.due() };
        let next = pauses.chain(self.kill_at).chain(self.short_until).chain(probes).min();
        let timeout = next.map(|until| until.saturating_duration_since(Instant::now()));
        let (mut signal, mut answered) = (false, false);
        let mut streams = Vec::new();
        for event in self.epoll.wait(events, timeout)? {
            match event.u64 {
                SIGNALS => signal = true,
                PROBES => answered = true,
                token => streams.push(token - STREAMS),
            }
        }
        for stream in streams {
            let at = usize::try_from(stream / 2).expect("a place is an index");
            self.read(at, stream % 2 == 1, BUFFERS_PER_EVENT);
        }
        if answered {
            self.prober.receive();
        }
        if signal {
            self.handle_signals();
        }
        if self.kill_at.is_some_and(|at| at <= Instant::now()) {
            self.kill_at = None;
            for part in [Part::Init, Part::Main, Part::Sidecar] {
                self.signal(part, libc::SIGKILL);
            }
        }
        Ok(())
    }

    fn handle_signals(&mut self) {
        while let Some(signal) = sys::next_signal(&self.signals) {
            if signal == libc::SIGTERM && !self.ending {
                self.ending = true;
                self.signal(Part::Init, libc::SIGTERM);
                self.signal(Part::Main, libc::SIGTERM);
                self.kill_at = Some(Instant::now() + Duration::from_millis(self.pod_plan.grace_ms));
            }
        }
        while let Some(dead) = sys::peek_dead() {
            let owner =
                self.states.iter().position(|state| matches!(state, State::Running(one) if one.pid == dead.pid));
            if owner.is_some() {
                // Until it is reaped its pid cannot belong to another process.
                sys::signal_group(dead.pid, libc::SIGKILL);
            }
            sys::reap(dead.pid);
            match owner {
                Some(at) => self.died(at, dead.how),
                None => self.prober.reaped(dead.pid, dead.how),
            }
        }
    }

    fn died(&mut self, at: usize, how: How) {
        self.prober.ended(at);
        for stderr in [false, true] {
            self.read(at, stderr, BUFFERS_AT_END);
        }
        if let State::Running(running) = &self.states[at] {
            // A pipe that another process still holds open does not matter any more.
            running.stdout.iter().chain(&running.stderr).for_each(|pipe| self.epoll.remove(pipe));
        }
        let exit = match how {
            How::Exited(code) => Ended::Code(code),
            How::Signalled(signal) => Ended::Signal(signal),
        };
        let may_retry = self.pod_plan.members[at].part == Part::Main && self.tries[at] <= self.pod_plan.retries;
        if exit != Ended::Code(0) && may_retry && !self.ending {
            self.states[at] = State::Pausing(Instant::now() + Duration::from_millis(self.pod_plan.pause_ms), exit);
        } else {
            self.over(at, exit);
        }
    }

    /// Forwards the output of a stream.
    fn read(&mut self, at: usize, stderr: bool, most: usize) {
        for _ in 0..most {
            let State::Running(running) = &mut self.states[at] else { return };
            let pipe = if stderr { &mut running.stderr } else { &mut running.stdout };
            let Some(end) = pipe else { return };
            match sys::read(end, &mut self.buffer) {
                Ok(count) if count > 0 => {
                    let bytes = Bytes(self.buffer[..count].to_vec());
                    self.queue(&FromPod::Output(index(at), stderr, bytes));
                    // A container that writes faster than the spawner reads must wait (backpressure), and so must the
                    // supervisor.
                    if self.flush().is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A terminal without any process returns EIO. Closing our end would hang up on a process that reopens
                // it, so it stays open until the end, when the rest is read.
                Err(_) => {
                    self.epoll.remove(end);
                    return;
                }
                Ok(_) => {
                    self.epoll.remove(end);
                    *pipe = None;
                }
            }
        }
    }

    fn signal(&self, part: Part, signal: i32) {
        for (member, state) in self.pod_plan.members.iter().zip(&self.states) {
            if let (true, State::Running(running)) = (member.part == part, state) {
                sys::signal_group(running.pid, signal);
            }
        }
    }

    fn of(&self, part: Part) -> impl Iterator<Item = usize> + use<> {
        let places = self.pod_plan.members.iter().enumerate().filter(|(_, member)| member.part == part);
        places.map(|(at, _)| at).collect::<Vec<_>>().into_iter()
    }

    fn is_final(&self, at: usize) -> bool {
        matches!(self.states[at], State::Over(_) | State::Never)
    }

    fn ended_well(&self, at: usize) -> bool {
        matches!(self.states[at], State::Over(Ended::Code(0)))
    }

    fn ended_badly(&self, at: usize) -> bool {
        self.is_final(at) && !self.ended_well(at)
    }

    fn is_done(&self) -> bool {
        (0..self.states.len()).all(|at| self.is_final(at))
    }

    /// Returns the exit code for people who look at the process; the spawner got more details.
    fn exit_code(&self) -> ExitCode {
        let bad = self.of(Part::Init).chain(self.of(Part::Main)).find_map(|at| match &self.states[at] {
            State::Over(Ended::Code(0)) | State::Never => None,
            State::Over(Ended::Code(code)) => Some(u8::try_from(*code).unwrap_or(1)),
            State::Over(Ended::Signal(signal)) => Some(u8::try_from(128 + signal).unwrap_or(1)),
            _ => Some(1),
        });
        ExitCode::from(bad.unwrap_or(0))
    }

    fn queue(&mut self, message: &FromPod) {
        frame(message, &mut self.outgoing);
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.outgoing);
        self.outgoing.clear();
        written
    }
}

fn token(at: usize, stderr: bool) -> u64 {
    STREAMS + at as u64 * 2 + u64::from(stderr)
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a pod has few containers")
}
