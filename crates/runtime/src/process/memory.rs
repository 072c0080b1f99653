//! How a limit of memory is kept for processes. It decides numbers only and touches no process.

/// What programs reserve and never touch: stacks of threads, arenas of allocators.
const SLACK: u64 = 128 * 1024 * 1024;

/// How many bytes of private writable memory a process with this limit may have (`RLIMIT_DATA`).
///
/// A control group would count the pages that are really in use, of all processes of a container together, but making
/// one takes a delegated subtree that ordinary accounts and containers do not have. Of the limits that need no rights
/// this one is the closest: it counts what a process may write to and shares with nobody. Address space reserved
/// without access, as the runtimes of Go and Java do by the gigabyte, is not counted until it is made writable, and
/// neither are program text, shared memory and the first stack. What is writable and never touched is counted, though
/// a control group would not; the slack is for that, so that a program which stays within its limit can run.
pub(crate) fn data_limit(memory_limit: u64) -> u64 {
    memory_limit.saturating_add(SLACK)
}
