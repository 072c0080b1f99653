//! A task of several containers: when each starts and ends beside the others, and how.
//! It follows the order a runtime keeps: what comes before, then what runs beside, then the work.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    Time,
    order::Exit,
    pod::{MemberEnd, Part, Pod},
};

use super::{answer::TERMINATED, test_document::Located};
use crate::cli::span;

/// What a stub says of one container.
#[derive(Clone, Debug)]
pub(crate) struct ContainerStub {
    pub exit: Option<Exit>,
    pub after: Option<Duration>,
}

impl ContainerStub {
    pub(crate) fn of(located: &Located<'_>) -> Self {
        let after = located.text_of("after").and_then(|text| span::parse(&text).ok());
        Self { exit: super::answer::exit_of(located), after }
    }
}

/// The lives of all containers, in spans from when the task runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerSchedule {
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    part: Part,
    /// Nothing for one that never starts.
    from: Option<Duration>,
    /// Nothing for one that goes on until it is told to end.
    to: Option<Duration>,
    exit: Exit,
}

impl ContainerSchedule {
    /// Containers of the work that have no role of their own do what the task itself does; `exit` is nothing for a task
    /// that never ends by itself.
    pub(crate) fn of(pod: &Pod, roles: &BTreeMap<String, ContainerStub>, exit: Option<&Exit>, after: Duration) -> Self {
        let mut schedule = Self::default();
        let (mut ready, mut kept) = (Duration::ZERO, false);
        for member in &pod.members {
            let role = roles.get(&member.container.name);
            let said = |default: Option<&Exit>| role.and_then(|role| role.exit.clone()).or(default.cloned());
            let took = role.and_then(|role| role.after);
            let (from, span, exit) = match member.part {
                Part::Init => ((!kept).then_some(ready), Some(took.unwrap_or_default()), said(Some(&Exit::Code(0)))),
                Part::Sidecar => ((!kept).then_some(ready), took, said(Some(&Exit::Signal(TERMINATED)))),
                Part::Main => {
                    let begins = schedule.when_over(&member.after, ready).filter(|_| !kept);
                    let exit = said(exit);
                    let tries = if exit == Some(Exit::Code(0)) { 0 } else { pod.retries };
                    let span = took.unwrap_or(after) * (tries + 1) + pod.pause * tries;
                    (begins, exit.is_some().then_some(span), exit)
                }
            };
            let to = from.zip(span).map(|(from, span)| from + span);
            let exit = exit.unwrap_or(Exit::Signal(TERMINATED));
            if member.part == Part::Init && from.is_some() {
                ready = to.unwrap_or(ready);
                kept = exit != Exit::Code(0);
            }
            schedule.members.push(Member { name: member.container.name.clone(), part: member.part, from, to, exit });
        }
        schedule
    }

    /// When all of these have ended well; nothing when one has not.
    fn when_over(&self, needs: &[u32], ready: Duration) -> Option<Duration> {
        let mut begins = ready;
        for need in needs {
            let member = self.members.get(*need as usize)?;
            begins = begins.max(member.to.filter(|_| member.exit == Exit::Code(0))?);
        }
        Some(begins)
    }

    /// When the task is over and how; nothing when it never is by itself.
    pub(crate) fn end(&self) -> Option<(Duration, Exit)> {
        if let Some(failed) = self.part(Part::Init).find(|member| member.exit != Exit::Code(0)) {
            return Some((failed.to?, failed.exit.clone()));
        }
        let mut over = self.part(Part::Init).filter_map(|member| member.to).max().unwrap_or_default();
        for member in self.part(Part::Main).filter(|member| member.from.is_some()) {
            over = over.max(member.to?);
        }
        let main = self.part(Part::Main).find(|member| member.name == "main" && member.from.is_some());
        let failed = self.part(Part::Main).find(|member| member.from.is_some() && member.exit != Exit::Code(0));
        Some((over, main.or(failed).map_or(Exit::Code(0), |member| member.exit.clone())))
    }

    fn part(&self, part: Part) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| member.part == part)
    }

    /// What happens before the task is over: when, and what a runtime would tell then.
    pub(crate) fn news(&self, begins: Time) -> Vec<(Time, MemberEnd)> {
        let over = self.end().map(|(over, _)| begins.saturating_add(over));
        let mut news = Vec::new();
        for member in &self.members {
            for moment in [member.from, member.to].into_iter().flatten() {
                let at = begins.saturating_add(moment);
                if over.is_none_or(|over| at <= over) {
                    news.push((at, member.told(begins, at)));
                }
            }
        }
        news.sort_by_key(|(at, _)| *at);
        news
    }

    /// How each stands when the task ends, by itself or because it was told to.
    pub(crate) fn ends(&self, begins: Time, now: Time) -> Vec<MemberEnd> {
        let close = |member: &Member| {
            let mut told = member.told(begins, now);
            if told.started.is_some() && told.exit.is_none() {
                (told.ended, told.exit) = (Some(now), Some(Exit::Signal(TERMINATED)));
            }
            told
        };
        self.members.iter().map(close).collect()
    }
}

impl Member {
    fn told(&self, begins: Time, now: Time) -> MemberEnd {
        let past = |span: Option<Duration>| span.map(|span| begins.saturating_add(span)).filter(|at| *at <= now);
        let (started, ended) = (past(self.from), past(self.to));
        MemberEnd { name: self.name.clone(), started, ended, exit: ended.map(|_| self.exit.clone()) }
    }
}
