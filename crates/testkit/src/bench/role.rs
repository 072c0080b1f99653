//! The roles this program can play in a process of its own: yardsticks, controllers, and the one that measures others.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    controller, flows, hello,
    measure::{Outcome, watch},
    restart, sched, spawn, submits,
};

/// The hidden first argument: what follows is a role and its words.
pub const ROLE_ARGUMENT: &str = "__role";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Spawns `true` so often, so many at a time, and reads its output to the end.
    Spawn { count: u32, in_flight: u32 },
    /// One after the other: a spawn, then a small write that is on disk before the next. Says how long it took.
    Hops { count: u32, dir: PathBuf },
    /// A controller whose tasks run nowhere, with so many groups of so many steps.
    Null { groups: u32, steps: u32, dir: PathBuf },
    /// A flow whose jobs run nowhere; tells how long it took to be checked.
    Flow { layers: u32, width: u32, dir: PathBuf },
    /// Stores the templates of such a flow.
    Templates { layers: u32, width: u32, dir: PathBuf },
    /// One-step workflows, each handed in by itself.
    Alone { count: u32, dir: PathBuf },
    /// A flow of processes, each job after the one before.
    FlowChain { count: u32, dir: PathBuf, octoflow: PathBuf },
    /// A controller with a chain of so many processes. Says how long it took from submission to end.
    Chain { count: u32, isolated: bool, dir: PathBuf, octoflow: PathBuf },
    /// A controller with so many processes, so many at a time: of one of these kinds.
    Crowd { of: Crowd, count: u32, in_flight: u32, dir: PathBuf, octoflow: PathBuf },
    /// So many submissions to a registry whose tasks run nowhere. Says how long it took.
    Submits { count: u32, threads: u32, dir: PathBuf },
    /// So many records in a store, many to a commit. Says how long it took.
    Records { count: u32, dir: PathBuf },
    /// So many runs that wait for somebody, left behind in a data directory.
    Suspended { count: u32, dir: PathBuf },
    /// A scheduler with so many waiting tasks. Says what an event and a naive pass cost.
    Sched { waiting: u32 },
    /// A scheduler with so many running tasks, some of which a task or a gang takes the place of. Says how long that took.
    Victims { running: u32, gang: bool },
    /// So many tasks that wait for room, left behind in a data directory.
    Waiters { count: u32, dir: PathBuf },
    /// Says how long it takes until the first of them has run.
    Back { dir: PathBuf },
    /// A controller whose tasks run nowhere and are in a queue below others, or in none.
    Queued { groups: u32, steps: u32, queues: bool, dir: PathBuf },
    /// A server that only says hello, until it is killed. Says where it listens, as the real one does.
    Hello,
}

/// What the processes of a crowd are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crowd {
    /// Steps of a workflow.
    Steps,
    /// Replicas of a TaskSet.
    Replicas,
    /// Pods of a Volcano Job.
    Pods,
}

impl Crowd {
    const ALL: [(Self, &'static str); 3] = [(Self::Steps, "steps"), (Self::Replicas, "replicas"), (Self::Pods, "pods")];

    pub(super) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(of, _)| *of == self).map_or("", |(_, word)| word)
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(of, _)| *of)
    }
}

impl Role {
    pub(super) fn words(&self) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        match self {
            Self::Spawn { count, in_flight } => vec!["spawn".to_owned(), count.to_string(), in_flight.to_string()],
            Self::Hops { count, dir } => vec!["hops".to_owned(), count.to_string(), path(dir)],
            Self::Null { groups, steps, dir } => {
                vec!["null".to_owned(), groups.to_string(), steps.to_string(), path(dir)]
            }
            Self::Chain { count, isolated, dir, octoflow } => {
                vec!["chain".to_owned(), count.to_string(), isolated.to_string(), path(dir), path(octoflow)]
            }
            Self::Crowd { of, count, in_flight, dir, octoflow } => {
                let numbers = [of.word().to_owned(), count.to_string(), in_flight.to_string()];
                ["crowd".to_owned()].into_iter().chain(numbers).chain([path(dir), path(octoflow)]).collect()
            }
            Self::Submits { count, threads, dir } => {
                vec!["submits".to_owned(), count.to_string(), threads.to_string(), path(dir)]
            }
            Self::Records { count, dir } => vec!["records".to_owned(), count.to_string(), path(dir)],
            Self::Suspended { count, dir } => vec!["suspended".to_owned(), count.to_string(), path(dir)],
            Self::Sched { waiting } => vec!["sched".to_owned(), waiting.to_string()],
            Self::Victims { running, gang } => vec!["victims".to_owned(), running.to_string(), gang.to_string()],
            Self::Waiters { count, dir } => vec!["waiters".to_owned(), count.to_string(), path(dir)],
            Self::Back { dir } => vec!["back".to_owned(), path(dir)],
            Self::Queued { groups, steps, queues, dir } => {
                let numbers = [groups.to_string(), steps.to_string(), queues.to_string()];
                ["queued".to_owned()].into_iter().chain(numbers).chain([path(dir)]).collect()
            }
            Self::Flow { layers, width, dir } => {
                vec!["flow".to_owned(), layers.to_string(), width.to_string(), path(dir)]
            }
            Self::Templates { layers, width, dir } => {
                vec!["templates".to_owned(), layers.to_string(), width.to_string(), path(dir)]
            }
            Self::Alone { count, dir } => vec!["alone".to_owned(), count.to_string(), path(dir)],
            Self::FlowChain { count, dir, octoflow } => {
                vec!["flow-chain".to_owned(), count.to_string(), path(dir), path(octoflow)]
            }
            Self::Hello => vec!["hello".to_owned()],
        }
    }

    fn read(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match words.as_slice() {
            ["spawn", count, in_flight] => {
                Self::Spawn { count: count.parse().ok()?, in_flight: in_flight.parse().ok()? }
            }
            ["hops", count, dir] => Self::Hops { count: count.parse().ok()?, dir: dir.into() },
            ["null", groups, steps, dir] => {
                Self::Null { groups: groups.parse().ok()?, steps: steps.parse().ok()?, dir: dir.into() }
            }
            ["chain", count, isolated, dir, octoflow] => Self::Chain {
                count: count.parse().ok()?,
                isolated: isolated.parse().ok()?,
                dir: dir.into(),
                octoflow: octoflow.into(),
            },
            ["crowd", of, count, in_flight, dir, octoflow] => Self::Crowd {
                of: Crowd::of(of)?,
                count: count.parse().ok()?,
                in_flight: in_flight.parse().ok()?,
                dir: dir.into(),
                octoflow: octoflow.into(),
            },
            ["submits", count, threads, dir] => {
                Self::Submits { count: count.parse().ok()?, threads: threads.parse().ok()?, dir: dir.into() }
            }
            ["records", count, dir] => Self::Records { count: count.parse().ok()?, dir: dir.into() },
            ["suspended", count, dir] => Self::Suspended { count: count.parse().ok()?, dir: dir.into() },
            ["sched", waiting] => Self::Sched { waiting: waiting.parse().ok()? },
            ["victims", running, gang] => Self::Victims { running: running.parse().ok()?, gang: gang.parse().ok()? },
            ["waiters", count, dir] => Self::Waiters { count: count.parse().ok()?, dir: dir.into() },
            ["back", dir] => Self::Back { dir: dir.into() },
            ["queued", groups, steps, queues, dir] => Self::Queued {
                groups: groups.parse().ok()?,
                steps: steps.parse().ok()?,
                queues: queues.parse().ok()?,
                dir: dir.into(),
            },
            ["flow", layers, width, dir] => {
                Self::Flow { layers: layers.parse().ok()?, width: width.parse().ok()?, dir: dir.into() }
            }
            ["templates", layers, width, dir] => {
                Self::Templates { layers: layers.parse().ok()?, width: width.parse().ok()?, dir: dir.into() }
            }
            ["alone", count, dir] => Self::Alone { count: count.parse().ok()?, dir: dir.into() },
            ["flow-chain", count, dir, octoflow] => {
                Self::FlowChain { count: count.parse().ok()?, dir: dir.into(), octoflow: octoflow.into() }
            }
            ["hello"] => Self::Hello,
            _ => return None,
        })
    }
}

/// Plays the role the words name; what comes back is for standard output.
pub fn play(words: &[String]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    if let [role, program, arguments @ ..] = words
        && role == "measure"
    {
        return watch(program, arguments);
    }
    let role = Role::read(words).ok_or_else(|| format!("this is not a role: {}", words.join(" ")))?;
    match role {
        Role::Spawn { count, in_flight } => spawn::crowd(count, in_flight).map(|()| String::new()),
        Role::Hops { count, dir } => spawn::hops(count, &dir).map(told),
        Role::Null { groups, steps, dir } => controller::null(groups, steps, &dir).map(|()| String::new()),
        Role::Chain { count, isolated, dir, octoflow } => controller::chain(count, isolated, &dir, &octoflow).map(told),
        Role::Crowd { of, count, in_flight, dir, octoflow } => {
            controller::crowd(of, count, in_flight, &dir, &octoflow).map(|()| String::new())
        }
        Role::Submits { count, threads, dir } => submits::submits(count, threads, &dir).map(told),
        Role::Records { count, dir } => submits::records(count, &dir).map(told),
        Role::Suspended { count, dir } => restart::leave(count, &dir).map(|()| String::new()),
        Role::Sched { waiting } => sched::events(waiting),
        Role::Victims { running, gang } => sched::victims(running, gang).map(told),
        Role::Waiters { count, dir } => sched::leave(count, &dir).map(|()| String::new()),
        Role::Back { dir } => sched::back(&dir).map(told),
        Role::Queued { groups, steps, queues, dir } => sched::null(groups, steps, queues, &dir).map(|()| String::new()),
        Role::Flow { layers, width, dir } => flows::flow(layers, width, &dir).map(told),
        Role::Templates { layers, width, dir } => flows::store(layers, width, &dir).map(|()| String::new()),
        Role::Alone { count, dir } => flows::alone(count, &dir).map(|()| String::new()),
        Role::FlowChain { count, dir, octoflow } => flows::chain(count, &dir, &octoflow).map(told),
        Role::Hello => hello::serve().map(|()| String::new()),
    }
}

fn told(span: Duration) -> String {
    span.as_micros().to_string()
}

/// What a role that tells its own time said.
pub(super) fn heard(said: &str) -> Outcome<Duration> {
    Ok(Duration::from_micros(said.trim().parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_survives_its_words() {
        let roles = [
            Role::Spawn { count: 10, in_flight: 4 },
            Role::Hops { count: 3, dir: "/d".into() },
            Role::Null { groups: 1, steps: 2, dir: "/d".into() },
            Role::Flow { layers: 4, width: 2, dir: "/d".into() },
            Role::Templates { layers: 4, width: 2, dir: "/d".into() },
            Role::Alone { count: 4, dir: "/d".into() },
            Role::FlowChain { count: 4, dir: "/d".into(), octoflow: "/o".into() },
            Role::Chain { count: 5, isolated: true, dir: "/d".into(), octoflow: "/o".into() },
            Role::Crowd { of: Crowd::Pods, count: 5, in_flight: 2, dir: "/d".into(), octoflow: "/o".into() },
            Role::Submits { count: 5, threads: 2, dir: "/d".into() },
            Role::Records { count: 5, dir: "/d".into() },
            Role::Suspended { count: 5, dir: "/d".into() },
            Role::Sched { waiting: 10 },
            Role::Victims { running: 10, gang: true },
            Role::Waiters { count: 5, dir: "/d".into() },
            Role::Back { dir: "/d".into() },
            Role::Queued { groups: 1, steps: 2, queues: true, dir: "/d".into() },
            Role::Hello,
        ];
        for role in roles {
            assert_eq!(Role::read(&role.words()), Some(role));
        }
        assert!(play(&["dance".to_owned()]).is_err());
    }
}
