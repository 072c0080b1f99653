//! Readiness of the containers of a pod: runs their probes, counts consecutive results, and says when all are ready. A
//! probe connects to the pod's own address only, which the engine gave it; nothing of a manifest names another.

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::{AsFd, OwnedFd},
    thread,
    time::{Duration, Instant},
};

use crate::process::{
    clone::Stack,
    spawner::launch,
    sys::{self, How},
    wire::{Member, WireCheck, WireProbe},
};

/// Length of a message of a checking thread: member, number of the check, result.
const MESSAGE: usize = 9;
/// Bytes read of an answer: the status line is at its beginning.
const STATUS_LINE: usize = 64;

pub(super) struct Prober {
    probes: Vec<Option<State>>,
    /// Through which checking threads answer.
    answers: OwnedFd,
    sender: OwnedFd,
    /// What was said last.
    told: bool,
}

struct State {
    plan: WireProbe,
    /// Time of the next check; `None` while the container does not run.
    next: Option<Instant>,
    flight: Option<Flight>,
    /// Number of the last check.
    number: u32,
    successes: u32,
    failures: u32,
    ready: bool,
}

/// A check under way, and until when it may take.
enum Flight {
    /// A process; its pipes stay open, so that it may write.
    Process {
        pid: i32,
        until: Instant,
        _pipes: (OwnedFd, Option<OwnedFd>),
    },
    Connection {
        until: Instant,
    },
}

impl Prober {
    pub(super) fn new(members: &[Member]) -> io::Result<Self> {
        let (answers, sender) = sys::pipe()?;
        let state = |member: &Member| {
            member.probe.as_deref().map(|plan| State {
                plan: plan.clone(),
                next: None,
                flight: None,
                number: 0,
                successes: 0,
                failures: 0,
                ready: false,
            })
        };
        Ok(Self { probes: members.iter().map(state).collect(), answers, sender, told: false })
    }

    /// Returns the descriptor that is readable when a check is over.
    pub(super) fn answers(&self) -> &OwnedFd {
        &self.answers
    }

    /// Records that a container runs.
    pub(super) fn started(&mut self, at: usize) {
        if let Some(state) = &mut self.probes[at] {
            state.next = Some(Instant::now() + Duration::from_millis(state.plan.delay_ms));
            (state.successes, state.failures, state.ready) = (0, 0, false);
        }
    }

    /// Records that a container has ended. A check under way is dropped.
    pub(super) fn ended(&mut self, at: usize) {
        if let Some(state) = &mut self.probes[at] {
            state.drop_flight();
            (state.next, state.ready) = (None, false);
        }
    }

    /// Starts the checks that are due and gives up those that take too long.
    pub(super) fn advance(&mut self, members: &[Member], mark: &str, null: &File, stack: &mut Stack) {
        let now = Instant::now();
        for (at, state) in self.probes.iter_mut().enumerate() {
            let Some(state) = state else { continue };
            if state.flight.as_ref().is_some_and(|flight| flight.until() <= now) {
                state.drop_flight();
                state.count(false);
            }
            if state.flight.is_none() && state.next.is_some_and(|next| next <= now) {
                state.next = Some(now + Duration::from_millis(state.plan.period_ms));
                state.number += 1;
                state.begin(at, &members[at], &self.sender, mark, null, stack);
            }
        }
    }

    /// Returns when something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        let of = |state: &State| state.flight.as_ref().map(Flight::until).or(state.next);
        self.probes.iter().flatten().filter_map(of).min()
    }

    /// Takes the end of a process that may be a check.
    pub(super) fn reaped(&mut self, pid: i32, how: How) {
        for state in self.probes.iter_mut().flatten() {
            if matches!(&state.flight, Some(Flight::Process { pid: own, .. }) if *own == pid) {
                state.flight = None;
                state.count(matches!(how, How::Exited(0)));
            }
        }
    }

    /// Takes the answers of checking threads.
    pub(super) fn receive(&mut self) {
        let mut message = [0; MESSAGE];
        // Messages are shorter than a pipe writes at once, so none is ever cut.
        while let Ok(MESSAGE) = sys::read(&self.answers, &mut message) {
            let [m0, m1, m2, m3, n0, n1, n2, n3, good] = message;
            let (at, number) = (u32::from_le_bytes([m0, m1, m2, m3]), u32::from_le_bytes([n0, n1, n2, n3]));
            if let Some(Some(state)) = self.probes.get_mut(at as usize)
                && state.number == number
                && matches!(state.flight, Some(Flight::Connection { .. }))
            {
                state.flight = None;
                state.count(good == 1);
            }
        }
    }

    /// Returns whether all probed containers are ready, if that has changed.
    pub(super) fn news(&mut self) -> Option<bool> {
        let mut probes = self.probes.iter().flatten().peekable();
        let ready = probes.peek().is_some() && probes.all(|state| state.ready);
        (std::mem::replace(&mut self.told, ready) != ready).then_some(ready)
    }
}

impl State {
    fn begin(&mut self, at: usize, member: &Member, sender: &OwnedFd, mark: &str, null: &File, stack: &mut Stack) {
        let timeout = Duration::from_millis(self.plan.timeout_ms);
        let until = Instant::now() + timeout;
        match &self.plan.check {
            WireCheck::Exec(programs, args) => {
                let mut launch = member.launch.clone();
                (launch.programs, launch.args, launch.tty) = (programs.clone(), args.clone(), false);
                match launch::start(&launch, None, mark, null, stack) {
                    Ok(spawned) => {
                        let pipes = (spawned.stdout, spawned.stderr);
                        self.flight = Some(Flight::Process { pid: spawned.pid, until, _pipes: pipes });
                    }
                    Err(_) => self.count(false),
                }
            }
            WireCheck::Tcp(address) => {
                let address = address.clone();
                self.connect(at, sender, until, move || connect(&address, timeout).is_ok());
            }
            WireCheck::Http(address, request) => {
                let (address, request) = (address.clone(), request.clone());
                self.connect(at, sender, until, move || answers_well(&address, &request, timeout).unwrap_or(false));
            }
        }
    }

    /// Checks on a thread of its own: connecting waits. The thread starts no process, so its end ends none.
    fn connect(&mut self, at: usize, sender: &OwnedFd, until: Instant, check: impl FnOnce() -> bool + Send + 'static) {
        let number = self.number;
        let started = sender.as_fd().try_clone_to_owned().and_then(|sender| {
            thread::Builder::new().name("probe".to_owned()).spawn(move || {
                let mut message = Vec::with_capacity(MESSAGE);
                message.extend(u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes());
                message.extend(number.to_le_bytes());
                message.push(u8::from(check()));
                // Nobody listens any more once the pod is over.
                let _ = File::from(sender).write_all(&message);
            })
        });
        match started {
            Ok(_) => self.flight = Some(Flight::Connection { until }),
            Err(_) => self.count(false),
        }
    }

    fn count(&mut self, good: bool) {
        if good {
            (self.successes, self.failures) = (self.successes.saturating_add(1), 0);
            self.ready |= self.successes >= self.plan.successes;
        } else {
            (self.successes, self.failures) = (0, self.failures.saturating_add(1));
            self.ready &= self.failures < self.plan.failures;
        }
    }

    fn drop_flight(&mut self) {
        if let Some(Flight::Process { pid, .. }) = self.flight.take() {
            sys::signal_group(pid, libc::SIGKILL);
        }
    }
}

impl Flight {
    fn until(&self) -> Instant {
        match self {
            Self::Process { until, .. } | Self::Connection { until } => *until,
        }
    }
}

fn connect(address: &str, timeout: Duration) -> io::Result<TcpStream> {
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    TcpStream::connect_timeout(&address, timeout)
}

/// Sends a request and reports whether it is answered with a code from 200 to 399.
fn answers_well(address: &str, request: &str, timeout: Duration) -> io::Result<bool> {
    let until = Instant::now() + timeout;
    let mut stream = connect(address, timeout)?;
    let left = || Some(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
    stream.set_write_timeout(left())?;
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::with_capacity(STATUS_LINE);
    while line.len() < STATUS_LINE && !line.contains(&b'\n') && Instant::now() < until {
        stream.set_read_timeout(left())?;
        let mut bytes = [0; STATUS_LINE];
        match stream.read(&mut bytes)? {
            0 => break,
            count => line.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(status_code(&line).is_some_and(|code| (200..400).contains(&code)))
}

fn status_code(line: &[u8]) -> Option<u16> {
    let text = String::from_utf8_lossy(line);
    let (version, rest) = text.split_once(' ')?;
    version.starts_with("HTTP/1.").then(|| rest.get(..3)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(successes: u32, failures: u32) -> State {
        let check = WireCheck::Tcp(String::new());
        let plan = WireProbe { check, delay_ms: 0, period_ms: 1, timeout_ms: 1, successes, failures };
        State { plan, next: None, flight: None, number: 0, successes: 0, failures: 0, ready: false }
    }

    #[test]
    fn a_container_is_ready_after_successes_in_a_row_until_failures_in_a_row() {
        let mut state = state(2, 3);
        let mut seen = Vec::new();
        for good in [true, false, true, true, false, false, true, false, false, false] {
            state.count(good);
            seen.push(state.ready);
        }
        assert_eq!(seen, [false, false, false, true, true, true, true, true, true, false]);
    }

    #[test]
    fn status_lines_are_read_and_nonsense_is_not_ready() {
        assert_eq!(status_code(b"HTTP/1.1 204 No Content\r\n"), Some(204));
        assert_eq!(status_code(b"HTTP/1.0 500 x"), Some(500));
        for nonsense in [&b""[..], b"SSH-2.0-x", b"HTTP/1.1", b"HTTP/1.1 2", b"HTTP/1.1 abc"] {
            assert_eq!(status_code(nonsense), None);
        }
    }
}
