//! Explains why a node is not done. The reason is read off the state, never guessed from logs.

use std::fmt;

use octoflow_model::{
    NodeIx, Shutdown, Time,
    argo::{Items, NodeKind, Phase},
};

use super::{
    node::{Body, Leaf, Lock},
    program::CallSite,
    run::Run,
};
use crate::{
    engine::locks::{Holder, Locks},
    run::explain::ask,
    schedule::{Scheduler, TaskRef, WaitReason},
};

/// Reason why a node, or a call that has no node yet, is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeExplanation {
    /// Display name of the node.
    pub node: String,
    /// The node that waits for the scheduler.
    pub queued: Option<NodeIx>,
    pub phase: Option<Phase>,
    pub reason: Reason,
    pub since: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Waits for these tasks to be over.
    Dependencies(Vec<String>),
    /// Waits for the scheduler, which says why unless the run is shown without it; again, if it was preempted.
    Queued {
        why: Option<Box<WaitReason>>,
        preempted: Option<String>,
    },
    /// The run waits in a circle of runs.
    Deadlock(String),
    /// Waits for a lock: its holders; none if it is only not the first in the queue.
    Lock {
        key: String,
        holders: Vec<String>,
    },
    /// Handed to the runtime, which has not reported yet.
    Starting {
        since: Time,
    },
    Running {
        since: Time,
        deadline: Option<Time>,
    },
    /// A daemon that is up; it ends with the steps or DAG around it.
    DaemonUp {
        since: Time,
    },
    /// Ordered to stop.
    Stopping(String),
    /// Waits to be resumed, or until a time.
    Suspended {
        until: Option<Time>,
    },
    /// Waits for the time of the next attempt.
    Backoff {
        until: Time,
        attempts: usize,
    },
    /// Waits for its children.
    Children {
        open: u32,
        still_to_start: usize,
    },
    /// All its work is done and its daemons are being stopped.
    Daemons(usize),
    /// Cannot start more children: a parallelism limit is reached.
    Parallelism {
        limit: u64,
        active: u32,
        whose: String,
    },
    /// The whole run is suspended.
    RunSuspended,
    /// The run is shutting down.
    ShuttingDown(Shutdown),
    /// Waits for its exit handler or a hook.
    Handler,
}

impl Reason {
    /// Returns what the scheduler says, if it waits for that.
    pub(super) fn into_wait(self) -> Option<Box<WaitReason>> {
        match self {
            Self::Queued { why, .. } => why,
            Self::Dependencies(_)
            | Self::Deadlock(_)
            | Self::Lock { .. }
            | Self::Starting { .. }
            | Self::Running { .. }
            | Self::DaemonUp { .. }
            | Self::Stopping(_)
            | Self::Suspended { .. }
            | Self::Backoff { .. }
            | Self::Children { .. }
            | Self::Daemons(_)
            | Self::Parallelism { .. }
            | Self::RunSuspended
            | Self::ShuttingDown(_)
            | Self::Handler => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dependencies(names) => write!(f, "waits for {}", names.join(", ")),
            Self::Queued { why, preempted } => {
                match why {
                    Some(why) => why.fmt(f)?,
                    None => write!(f, "waits for its turn")?,
                }
                preempted.iter().try_for_each(|by| write!(f, " (again: {by})"))
            }
            Self::Deadlock(message) => write!(f, "{message}"),
            Self::Lock { key, holders } if holders.is_empty() => write!(f, "waits in the queue of the lock {key}"),
            Self::Lock { key, holders } => write!(f, "waits for the lock {key}, held by {}", holders.join(", ")),
            Self::Starting { since } => write!(f, "being started since {since}"),
            Self::Running { since, deadline: None } => write!(f, "running since {since}"),
            Self::Running { since, deadline: Some(deadline) } => {
                write!(f, "running since {since}, must end by {deadline}")
            }
            Self::DaemonUp { since } => {
                write!(f, "a daemon, up since {since} until the steps or DAG around it are over")
            }
            Self::Stopping(message) if message.is_empty() => write!(f, "being stopped: it is not needed any more"),
            Self::Stopping(message) => write!(f, "being stopped: {message}"),
            Self::Suspended { until: None } => write!(f, "suspended until someone resumes it"),
            Self::Suspended { until: Some(until) } => write!(f, "suspended until {until} or until someone resumes it"),
            Self::Backoff { until, attempts } => write!(f, "waits until {until} before attempt {}", attempts + 1),
            Self::Children { open, still_to_start: 0 } => write!(f, "waits for {open} of its nodes"),
            Self::Children { open, still_to_start } => {
                write!(f, "waits for {open} of its nodes, {still_to_start} more are still to start")
            }
            Self::Daemons(1) => write!(f, "waits for its daemon to end"),
            Self::Daemons(count) => write!(f, "waits for its {count} daemons to end"),
            Self::Parallelism { limit, active, whose } => {
                write!(f, "{whose} allows {limit} at a time and {active} are active")
            }
            Self::RunSuspended => write!(f, "the workflow is suspended; resume it to go on"),
            Self::ShuttingDown(how) => write!(f, "the workflow is being ended with strategy '{}'", how.word()),
            Self::Handler => write!(f, "waits for its hooks and exit handler"),
        }
    }
}

/// Explains every open node and every DAG task that waits to become one, in order of creation.
pub fn explain(run: &Run, scheduler: Option<&Scheduler>) -> Vec<NodeExplanation> {
    explain_with(run, scheduler, None)
}

/// Explains with the lock table at hand, which knows the holders of now rather than those of when the wait began.
pub fn explain_with(run: &Run, scheduler: Option<&Scheduler>, locks: Option<&Locks>) -> Vec<NodeExplanation> {
    let state = &run.state;
    let mut found = Vec::new();
    let mut asked = 0;
    if let Some(message) = state.head.deadlock.as_ref().filter(|_| state.ended.is_none()) {
        found.push(NodeExplanation {
            node: state.head.name.to_string(),
            queued: None,
            phase: Some(Phase::Pending),
            reason: Reason::Deadlock(message.to_string()),
            since: state.head.deadlock_at,
        });
    }
    if let Some(reason) = state.lock.as_deref().and_then(|lock| lock_wait(run, None, lock, locks)) {
        found.push(NodeExplanation {
            node: state.head.name.to_string(),
            queued: None,
            phase: Some(Phase::Pending),
            reason,
            since: Some(state.head.created),
        });
    }
    for (at, node) in state.nodes.iter().enumerate() {
        if node.settled {
            continue;
        }
        let at = NodeIx(at as u32);
        let since = node.started;
        let mut say = |node: String, phase: Option<Phase>, reason: Reason| {
            let queued = matches!(reason, Reason::Queued { .. }).then_some(at);
            found.push(NodeExplanation { node, queued, phase, reason, since: phase.map(|_| since) });
        };
        let name = || state.display_of(at).to_owned();
        if node.phase.fulfilled() {
            say(name(), Some(node.phase), Reason::Handler);
            continue;
        }
        if node.barred {
            if let Some(reason) = node.lock.as_deref().and_then(|lock| lock_wait(run, Some(at), lock, locks)) {
                say(name(), Some(node.phase), reason);
            }
            continue;
        }
        if let Some(reason) = reason(run, at, scheduler, &mut asked) {
            say(name(), Some(node.phase), reason);
        }
        if let Body::Dag(dag) = &node.body {
            let compiled = run.compiled_of(at);
            for (task, vertex) in compiled.graph().tasks.iter().enumerate() {
                let waited = |node: NodeIx| !state.node(node).settled && !state.node(node).daemoned;
                let open = |needed: &&u32| dag.nodes[**needed as usize].is_none_or(waited);
                let names = vertex
                    .needs
                    .iter()
                    .filter(open)
                    .map(|needed| compiled.call_name(CallSite::Task(*needed)).to_owned());
                let names: Vec<String> = names.collect();
                if dag.nodes[task].is_none() && !names.is_empty() {
                    say(compiled.call_name(CallSite::Task(task as u32)).to_owned(), None, Reason::Dependencies(names));
                }
            }
        }
    }
    found
}

/// Explains a wait for a lock.
fn lock_wait(run: &Run, node: Option<NodeIx>, lock: &Lock, locks: Option<&Locks>) -> Option<Reason> {
    let (key, holders) = lock.waits.as_ref()?;
    let now = locks.and_then(|locks| locks.blocking(Holder { run: run.id, node }));
    let (key, holders) = match now {
        Some((key, holders)) => (key, holders),
        None => (key.as_str(), holders.iter().map(String::as_str).collect()),
    };
    Some(Reason::Lock { key: key.to_owned(), holders: readable_holders(&run.state.head.namespace, &holders) })
}

/// Returns the holders of a lock by name; those of other namespaces only by number.
fn readable_holders(namespace: &str, holders: &[&str]) -> Vec<String> {
    let own = |holder: &&&str| holder.split('/').next() == Some(namespace);
    let mut named: Vec<String> = holders.iter().filter(own).map(|holder| (*holder).to_owned()).collect();
    match holders.len() - named.len() {
        0 => {}
        1 => named.push("one of another namespace".to_owned()),
        others => named.push(format!("{others} of other namespaces")),
    }
    named
}

fn reason(run: &Run, at: NodeIx, scheduler: Option<&Scheduler>, asked: &mut usize) -> Option<Reason> {
    let state = &run.state;
    let node = state.node(at);
    let stopping = state.daemons.get(&at).filter(|daemons| daemons.iter().any(|daemon| is_stopping(run, *daemon)));
    if let Some(daemons) = stopping {
        return Some(Reason::Daemons(daemons.len()));
    }
    Some(match (&node.body, node.kind) {
        (Body::Leaf(Leaf::Barred), _) => return None,
        (Body::Leaf(Leaf::Queued), _) => {
            let task = TaskRef { run: run.id, node: at };
            Reason::Queued {
                why: scheduler.and_then(|scheduler| ask(scheduler, task, asked)).map(Box::new),
                preempted: state.preempted.get(&at).map(|preempted| preempted.why.to_string()),
            }
        }
        (Body::Leaf(Leaf::Launched), _) => Reason::Starting { since: node.started },
        (Body::Leaf(Leaf::Running), _) if node.daemoned => Reason::DaemonUp { since: node.started },
        (Body::Leaf(Leaf::Running), _) => Reason::Running { since: node.started, deadline: node.wake },
        (Body::Leaf(Leaf::Preempting | Leaf::Stopping), _) => {
            Reason::Stopping(node.message.as_deref().unwrap_or_default().to_owned())
        }
        (_, NodeKind::Suspend) => Reason::Suspended { until: node.wake },
        (Body::Retry { attempts }, _) => match node.wake {
            Some(until) => Reason::Backoff { until, attempts: attempts.len() },
            None => Reason::Children { open: 1, still_to_start: 0 },
        },
        (Body::Group(group), _) => {
            let missing = group
                .calls
                .iter()
                .map(|expansion| expansion.items.as_ref().map_or(1, Items::len).saturating_sub(expansion.nodes.len()))
                .sum();
            waiting(run, at, group.open, missing)
        }
        (Body::TaskGroup(expansion), _) => {
            waiting(run, at, expansion.open, expansion.items.as_ref().map_or(0, Items::len) - expansion.nodes.len())
        }
        (Body::Dag(dag), _) => waiting(run, at, dag.open, dag.nodes.len() - dag.made as usize),
        (Body::Steps { .. }, _) => Reason::Children { open: 1, still_to_start: 0 },
        (Body::Plain, _) => return None,
    })
}

/// Whether a daemon is being stopped, or has ended while its hooks have not.
fn is_stopping(run: &Run, at: NodeIx) -> bool {
    let node = run.state.node(at);
    node.attempts().last().map_or(node, |last| run.state.node(*last)).dismissed
}

/// Explains what keeps a node from starting more children, if anything does.
fn waiting(run: &Run, at: NodeIx, open: u32, still_to_start: usize) -> Reason {
    let state = &run.state;
    if still_to_start == 0 {
        return Reason::Children { open, still_to_start };
    }
    if let Some(how) = state.head.shutdown {
        return Reason::ShuttingDown(how);
    }
    if state.head.suspended {
        return Reason::RunSuspended;
    }
    let boundary = if state.node(at).kind == NodeKind::Dag { Some(at) } else { state.node(at).boundary };
    let own = boundary.and_then(|boundary| {
        let limit: u64 = run.compiled_of(boundary).template.parallelism.as_ref()?.0.trim().parse().ok()?;
        let active = run.slots_taken(boundary);
        (active >= limit).then(|| Reason::Parallelism {
            limit,
            active: u32::try_from(active).unwrap_or(u32::MAX),
            whose: format!("template '{}'", run.compiled_of(boundary).key),
        })
    });
    let pods = run.pod_slots_taken();
    let whole = run.program.workflow.spec.parallelism.filter(|limit| pods >= *limit);
    let active = u32::try_from(pods).unwrap_or(u32::MAX);
    let whole = whole.map(|limit| Reason::Parallelism { limit, active, whose: "the workflow".to_owned() });
    own.or(whole).unwrap_or(Reason::Children { open, still_to_start })
}
