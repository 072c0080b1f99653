//! The protocol between engine and spawner, and its encoding: length, kind, fields in order. A change here needs a new
//! `VERSION`, since a spawner may be older than the engine that connects to it.

use octoflow_model::{
    ids::{AttemptId, NodeIx, RunId},
    order::Exit,
    pod::Part,
    time::Time,
};

use crate::port::{Condition, ConditionKind};

/// Protocol version. Only `Hello`, `Welcome` and `Refused` must be readable by every version.
pub(crate) const VERSION: u32 = 7;

/// Placeholder for the directory of an attempt without isolation, which only the spawner knows. No text of a user that
/// can be executed contains a NUL.
pub(crate) const DIR_PLACEHOLDER: &str = "\0room";

/// Limit of a frame; anything larger is invalid. Files written before a start are sent in frames, so it is generous.
const MAX_FRAME: usize = 1 << 30;

/// Error for bytes that do not follow the protocol.
#[derive(Debug, thiserror::Error)]
#[error("the other side sent a malformed message")]
pub(crate) struct Malformed;

pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn get(from: &mut &[u8]) -> Result<Self, Malformed>;
}

/// Appends one frame to `out`.
pub(crate) fn frame(message: &impl Wire, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    message.put(out);
    let length = u32::try_from(out.len() - start - 4).expect("a frame is far below 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Takes the next complete frame off the front of `from`; `None` if it has not fully arrived.
pub(crate) fn next_frame<M: Wire>(from: &mut &[u8]) -> Result<Option<M>, Malformed> {
    let Some((length, rest)) = from.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > MAX_FRAME {
        return Err(Malformed);
    }
    let Some((mut body, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    let message = M::get(&mut body)?;
    if !body.is_empty() {
        return Err(Malformed);
    }
    *from = rest;
    Ok(Some(message))
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
                let (bytes, rest) = from.split_first_chunk().ok_or(Malformed)?;
                *from = rest;
                Ok(Self::from_le_bytes(*bytes))
            }
        }
    )*};
}
numbers!(u8, u32, u64, i32, i64);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        match u8::get(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

/// Bytes as one block rather than a list of numbers.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(self.0.len()).expect("a block is far below 4 GiB").put(out);
        out.extend_from_slice(&self.0);
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        let length = u32::get(from)? as usize;
        let (bytes, rest) = from.split_at_checked(length).ok_or(Malformed)?;
        *from = rest;
        Ok(Self(bytes.to_vec()))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(self.len()).expect("a text is far below 4 GiB").put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        Self::from_utf8(Bytes::get(from)?.0).map_err(|_| Malformed)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        u32::try_from(self.len()).expect("a list is far below four billion").put(out);
        for item in self {
            item.put(out);
        }
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        (0..u32::get(from)?).map(|_| T::get(from)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(if bool::get(from)? { Some(T::get(from)?) } else { None })
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        T::put(self, out);
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        T::get(from).map(Self::new)
    }
}

impl Wire for Time {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        i64::get(from).map(Self)
    }
}

impl Wire for AttemptId {
    fn put(&self, out: &mut Vec<u8>) {
        self.run.0.put(out);
        self.task.0.put(out);
        self.attempt.put(out);
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self { run: RunId(u64::get(from)?), task: NodeIx(u32::get(from)?), attempt: u32::get(from)? })
    }
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct $name { $($(#[$field_doc])* pub(crate) $field: $kind),* }

        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(Self { $($field: Wire::get(from)?),* })
            }
        }
    )*};
}

records! {
    /// First message of an engine.
    Hello {
        version: u32,
        /// True if the engine wants the default isolation.
        isolate: bool,
        log_limit: u64,
    }
    /// The spawner's answer to a `Hello` that it understands.
    Welcome {
        version: u32,
        /// True if tasks really are isolated.
        isolated: bool,
        /// Why not, if the engine wanted it.
        notice: Option<String>,
    }
    Refused {
        version: u32,
        why: String,
    }
    /// Everything about one attempt that the spawner must know.
    Launch {
        attempt: AttemptId,
        isolated: bool,
        /// True if the file system must stay as the task left it until the attempt is forgotten, because outputs are
        /// read from it.
        keep: bool,
        tty: bool,
        /// Memory limit of its processes in bytes.
        memory_limit: Option<u64>,
        /// Limit of its private file system in bytes.
        storage_limit: Option<u64>,
        grace_ms: u64,
        /// Name of the program as the user wrote it, for messages.
        called: String,
        programs: Vec<String>,
        args: Vec<String>,
        env: Vec<String>,
        dir: String,
        files: Vec<FileToWrite>,
        mounts: Vec<Bind>,
        /// File in which it may report its progress.
        progress: Option<String>,
        /// Its hosts file. Separate from other mounts, because a workspace that has it serves every task with the same
        /// hosts.
        hosts: Option<Bind>,
        /// Name of the machine as it sees it, if it is isolated.
        hostname: Option<String>,
        /// Where its termination message is found, if it is wanted.
        termination: Option<TerminationSource>,
        /// Its containers, if there are several; the program is then the supervisor.
        pod_plan: Option<Box<PodPlan>>,
        /// The mounts that are host paths named in a manifest.
        host: Option<Box<HostMounts>>,
        /// Folders of the machine that are visible at their paths although their surroundings are hidden.
        visible: Vec<String>,
        /// Descriptor through which its cgroup is joined. Set by the spawner only.
        group: Option<i32>,
    }
    /// Mounts of host paths.
    HostMounts {
        /// Mount points.
        points: Vec<String>,
        /// Paths that may be mounted; `None` if everything may but the data directory.
        below: Option<Vec<String>>,
    }
    /// Where a task's termination message is found.
    TerminationSource {
        path: Option<String>,
        /// True if the end of its output is used when it failed without a message.
        tail: bool,
    }
    /// The containers of one attempt and their order. The supervisor reads it from standard input.
    PodPlan {
        members: Vec<Member>,
        retries: u32,
        pause_ms: u64,
        grace_ms: u64,
    }
    Member {
        name: String,
        part: Part,
        /// Label of its output in the log; the main container has none.
        label: Option<String>,
        /// Members that must have succeeded before it starts.
        after: Vec<u32>,
        /// How to see that it is ready.
        probe: Option<Box<WireProbe>>,
        launch: Launch,
    }
    /// A check that is repeated while a container runs.
    WireProbe {
        check: WireCheck,
        delay_ms: u64,
        period_ms: u64,
        timeout_ms: u64,
        /// Consecutive successes that make it ready, and failures that end that.
        successes: u32,
        failures: u32,
    }
    /// End of one container; all fields are `None` if it was never started.
    MemberEnding {
        started: Option<Time>,
        ended: Option<Time>,
        exit: Option<Ended>,
    }
    /// A file to write before the start.
    FileToWrite { path: String, mode: u32, contents: Bytes }
    /// A directory to mount at a path.
    Bind {
        path: String,
        /// Absolute path of the machine; `None` for a scratch directory of the attempt.
        source: Option<String>,
        /// Name of the scratch directory.
        scratch: String,
        /// True if a missing source is created.
        make: bool,
        sub_path: Option<String>,
        read_only: bool,
    }
    /// A condition that keeps the spawner from starting tasks.
    WireCondition { kind: u8, since: Time, why: String }
    /// End of an attempt, before its outputs were collected.
    Ending {
        at: Time,
        started: Option<Time>,
        exit: Ended,
        log_truncated: bool,
        /// Length of its log.
        log_bytes: u64,
    }
}

/// `Exit` as a separate type, so that the model may change without changing the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Code(i32),
    Signal(i32),
    OutOfMemory,
    NotStarted(String),
    Environment(String),
    /// Killed by the spawner because of disk usage; says why.
    Evicted(String),
}

impl From<Ended> for Exit {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Code(code) => Self::Code(code),
            Ended::Signal(signal) => Self::Signal(signal),
            Ended::OutOfMemory => Self::OutOfMemory,
            Ended::NotStarted(why) => Self::NotStarted(why),
            Ended::Environment(why) => Self::Environment(why),
            Ended::Evicted(why) => Self::Evicted(why),
        }
    }
}

impl From<Exit> for Ended {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
            Exit::OutOfMemory => Self::OutOfMemory,
            Exit::NotStarted(why) => Self::NotStarted(why),
            Exit::Environment(why) => Self::Environment(why),
            Exit::Evicted(why) => Self::Evicted(why),
        }
    }
}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $tag:literal = $variant:ident ( $($field:ident: $kind:ty),* )),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$variant_doc])* $variant($($kind),*)),* }

        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant($($field),*) => {
                        out.push($tag);
                        $($field.put(out);)*
                    })*
                }
            }
            fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
                match u8::get(from)? {
                    $($tag => Ok(Self::$variant($(<$kind>::get(from)?),*)),)*
                    _ => Err(Malformed),
                }
            }
        }
    )*};
}

choices! {
    /// Messages of an engine.
    ToSpawner {
        1 = Hello(hello: Hello),
        2 = Start(launch: Box<Launch>),
        /// Prepare everything and send the root, so that inputs can be staged; `Go` follows.
        3 = Prepare(launch: Box<Launch>),
        4 = StartPrepared(attempt: AttemptId),
        /// A prepared attempt will not be started after all.
        5 = Abandon(attempt: AttemptId),
        6 = Stop(attempt: AttemptId),
        7 = Kill(attempt: AttemptId),
        8 = Forget(attempt: AttemptId),
        /// Attempts that the engine believes to be alive, answered one by one, and the runs whose attempts are left as
        /// they are.
        9 = Adopt(believed: Vec<AttemptId>, leave: Vec<u64>),
        /// Asks for a `Pong`.
        10 = Ping(),
        /// Repeat the last report of the attempt, whose descriptor was lost in transit.
        11 = Repeat(attempt: AttemptId),
        /// Bytes of the data directory's file system that tasks leave free; `None` means the default. Sent once, after
        /// the handshake, whose messages must stay as they are.
        12 = SetSpaceFloor(floor: Option<u64>),
    }
    /// Messages of a spawner.
    FromSpawner {
        1 = Welcome(welcome: Welcome),
        2 = Refused(refused: Refused),
        3 = Started(attempt: AttemptId, at: Time),
        /// With a descriptor of the task's root attached if the flag is set.
        4 = Ended(attempt: AttemptId, ending: Ending, members: Vec<MemberEnding>, message: Option<String>, root: bool),
        /// With a descriptor of the task's root attached if the flag is set.
        5 = Prepared(attempt: AttemptId, root: bool),
        /// Answer to `Adopt`: it certainly never started.
        6 = Fresh(attempt: AttemptId),
        /// Answer to `Adopt`: it may have started and its end is unknown.
        7 = Lost(attempt: AttemptId, why: String),
        /// Progress of an attempt.
        8 = Progressed(attempt: AttemptId, at: Time, done: u32, total: u32),
        /// State of one of its containers, by index.
        9 = Member(attempt: AttemptId, at: Time, member: u32, ending: MemberEnding),
        10 = Pong(),
        /// All conditions that keep it from starting tasks right now; empty if there are none.
        11 = Conditions(conditions: Vec<WireCondition>),
        /// Whether all probed containers of the attempt are ready.
        12 = Ready(attempt: AttemptId, at: Time, ready: bool),
    }
    /// One check of a container.
    WireCheck {
        /// Candidates for the program, and its arguments.
        1 = Exec(programs: Vec<String>, args: Vec<String>),
        /// Address with port, and the request.
        2 = Http(address: String, request: String),
        /// Address with port.
        3 = Tcp(address: String),
    }
    /// Messages of a supervisor about its containers, by index.
    FromPod {
        1 = Output(member: u32, stderr: bool, bytes: Bytes),
        2 = Began(member: u32, at: Time),
        3 = Over(member: u32, at: Time, exit: Ended),
        /// Whether all probed containers are ready.
        4 = Ready(ready: bool),
    }
}

impl FromSpawner {
    /// Returns the attempt that the message is about.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Started(attempt, ..)
            | Self::Ended(attempt, ..)
            | Self::Prepared(attempt, ..)
            | Self::Fresh(attempt)
            | Self::Lost(attempt, ..)
            | Self::Progressed(attempt, ..)
            | Self::Member(attempt, ..)
            | Self::Ready(attempt, ..) => Some(*attempt),
            Self::Welcome(_) | Self::Refused(_) | Self::Pong() | Self::Conditions(_) => None,
        }
    }
}

/// Kinds of condition by their number in the protocol.
const CONDITION_KINDS: [(u8, ConditionKind); 3] =
    [(1, ConditionKind::LedgerUnwritable), (2, ConditionKind::StartsDelayed), (3, ConditionKind::DiskPressure)];

impl WireCondition {
    pub(crate) fn new(kind: ConditionKind, since: Time, why: String) -> Self {
        let number = CONDITION_KINDS.iter().find(|(_, known)| *known == kind);
        Self { kind: number.expect("a spawner has only hindrances of the table").0, since, why }
    }

    /// Returns the condition; `None` if a newer spawner reports one that this program does not know.
    pub(crate) fn condition(self) -> Option<Condition> {
        let (_, kind) = CONDITION_KINDS.iter().find(|(number, _)| *number == self.kind)?;
        Some(Condition { kind: *kind, since: self.since, message: self.why })
    }
}

impl Wire for Part {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Init => 1,
            Self::Main => 2,
            Self::Sidecar => 3,
        });
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match u8::get(from)? {
            1 => Self::Init,
            2 => Self::Main,
            3 => Self::Sidecar,
            _ => return Err(Malformed),
        })
    }
}

impl Wire for Ended {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Code(code) => {
                out.push(1);
                code.put(out);
            }
            Self::Signal(signal) => {
                out.push(2);
                signal.put(out);
            }
            Self::NotStarted(why) => {
                out.push(3);
                why.put(out);
            }
            Self::Environment(why) => {
                out.push(4);
                why.put(out);
            }
            Self::Evicted(why) => {
                out.push(5);
                why.put(out);
            }
            Self::OutOfMemory => out.push(6),
        }
    }
    fn get(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match u8::get(from)? {
            1 => Self::Code(Wire::get(from)?),
            2 => Self::Signal(Wire::get(from)?),
            3 => Self::NotStarted(Wire::get(from)?),
            4 => Self::Environment(Wire::get(from)?),
            5 => Self::Evicted(Wire::get(from)?),
            6 => Self::OutOfMemory,
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> AttemptId {
        AttemptId { run: RunId(7), task: NodeIx(8), attempt: 9 }
    }

    #[test]
    fn frames_survive_the_wire_in_any_cut() {
        let ending = Ending {
            at: Time(5),
            started: None,
            exit: Ended::NotStarted("no".to_owned()),
            log_truncated: true,
            log_bytes: 7,
        };
        let messages =
            [FromSpawner::Started(attempt(), Time(-3)), FromSpawner::Ended(attempt(), ending, Vec::new(), None, true)];
        let mut bytes = Vec::new();
        for message in &messages {
            frame(message, &mut bytes);
        }
        for cut in 0..bytes.len() {
            let mut head = &bytes[..cut];
            let mut seen = Vec::new();
            while let Some(message) = next_frame::<FromSpawner>(&mut head).unwrap() {
                seen.push(message);
            }
            assert!(messages.starts_with(&seen) && seen.len() < messages.len());
        }
        let mut all = &bytes[..];
        assert_eq!(next_frame(&mut all).unwrap().as_ref(), Some(&messages[0]));
        assert_eq!(next_frame(&mut all).unwrap().as_ref(), Some(&messages[1]));
        assert!(all.is_empty());
    }

    #[test]
    fn garbage_is_refused_and_never_believed() {
        assert!(next_frame::<ToSpawner>(&mut &[1, 0, 0, 0, 99][..]).is_err());
        assert!(next_frame::<ToSpawner>(&mut &[255, 255, 255, 255, 1][..]).is_err());
        let mut long = Vec::new();
        frame(&ToSpawner::StartPrepared(attempt()), &mut long);
        long[0] += 1;
        long.push(0);
        assert!(next_frame::<ToSpawner>(&mut &long[..]).is_err(), "bytes after the last field");
    }
}
