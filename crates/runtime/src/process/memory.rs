//! Computes the memory limit of processes. Decides numbers only and touches no process.

/// Allowance for memory that programs reserve and never touch: stacks of threads, arenas of allocators.
const SLACK: u64 = 128 * 1024 * 1024;

/// Returns how many bytes of private writable memory a process with this limit may have (`RLIMIT_DATA`).
///
/// A cgroup would count the pages that are really in use, of all processes of a container together, but creating one
/// takes a delegated subtree that ordinary accounts and containers do not have. Of the limits that need no privilege
/// this one is the closest: it counts private writable memory. Address space reserved without access, as the runtimes
/// of Go and Java do by the gigabyte, is not counted until it is made writable, and neither are program text, shared
/// memory and the first stack. Writable memory that is never touched is counted, though a cgroup would not; the slack
/// is for that, so that a program which stays within its limit can run.
pub(crate) fn data_limit(memory_limit: u64) -> u64 {
    memory_limit.saturating_add(SLACK)
}
