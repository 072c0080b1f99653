//! The spawner's side of a task with several containers: parses the messages of its supervisor and records the state of
//! each container, so that their ends are known even if the supervisor is killed.

use octoflow_model::{pod::Part, time::Time};

use crate::{
    logs::{Stream, Writer},
    process::{
        termination::Tail,
        wire::{Ended, FromPod, MemberEnding, PodPlan, next_frame},
    },
};

/// State of the containers of one attempt.
pub(crate) struct PodWatch {
    inbox: Vec<u8>,
    members: Vec<WatchedContainer>,
    /// Index of the main container.
    main: Option<usize>,
    /// Containers whose state changed since the last `take_news`.
    news: Vec<u32>,
    /// Whether all probed containers are ready, and whether that is news.
    ready: bool,
    ready_is_news: bool,
    /// True once the supervisor sent an invalid message; everything after it is ignored.
    garbled: bool,
}

struct WatchedContainer {
    part: Part,
    /// `None` for the task's main container.
    label: Option<String>,
    ending: MemberEnding,
}

impl PodWatch {
    pub(crate) fn new(pod_plan: &PodPlan) -> Self {
        let of_main = |unmarked: bool| {
            let mut members = pod_plan.members.iter();
            members.position(|member| member.part == Part::Main && (!unmarked || member.label.is_none()))
        };
        // The one whose output is not labelled; if there is none, the first.
        let main = of_main(true).or_else(|| of_main(false));
        let members = pod_plan.members.iter().map(|member| WatchedContainer {
            part: member.part,
            label: member.label.clone(),
            ending: MemberEnding { started: None, ended: None, exit: None },
        });
        Self {
            inbox: Vec::new(),
            members: members.collect(),
            main,
            news: Vec::new(),
            ready: false,
            ready_is_news: false,
            garbled: false,
        }
    }

    /// Handles bytes from the supervisor; output goes into the log, and that of the main container into the tail too.
    pub(crate) fn receive(&mut self, bytes: &[u8], at: Time, log: &mut Writer, mut tail: Option<&mut Tail>) {
        self.inbox.extend_from_slice(bytes);
        let mut rest = &self.inbox[..];
        while !self.garbled {
            match next_frame::<FromPod>(&mut rest) {
                Ok(Some(FromPod::Ready(ready))) => (self.ready, self.ready_is_news) = (ready, true),
                Ok(Some(message)) => {
                    if let (FromPod::Output(index, _, bytes), Some(tail)) = (&message, tail.as_deref_mut())
                        && self.main == Some(*index as usize)
                    {
                        tail.push(&bytes.0);
                    }
                    self.news.extend(apply(&mut self.members, message, at, log));
                }
                Ok(None) => break,
                Err(_) => self.garbled = true,
            }
        }
        let used = self.inbox.len() - rest.len();
        self.inbox.drain(..used);
    }

    /// Takes the containers that began or ended since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<(u32, MemberEnding)> {
        let news = std::mem::take(&mut self.news);
        news.into_iter().map(|index| (index, self.members[index as usize].ending.clone())).collect()
    }

    /// Takes whether all probed containers are ready, if that has changed since the last call.
    pub(crate) fn take_readiness(&mut self) -> Option<bool> {
        std::mem::take(&mut self.ready_is_news).then_some(self.ready)
    }

    /// Marks all containers as news for a new engine.
    pub(crate) fn mark_all_as_news(&mut self) {
        let told = self.members.iter().zip(0..).filter(|(member, _)| member.ending.started.is_some());
        self.news = told.map(|(_, index)| index).collect();
        self.ready_is_news = self.ready;
    }

    /// Records that the kernel killed a process of this container for lack of memory.
    pub(crate) fn ran_out_of_memory(&mut self, member: usize) {
        let ending = self.members.get_mut(member).map(|member| &mut member.ending);
        if let Some(exit) = ending.and_then(|ending| ending.exit.as_mut()).filter(|exit| **exit != Ended::Code(0)) {
            *exit = Ended::OutOfMemory;
        }
    }

    /// Records the end of all running containers, which ended with the supervisor.
    pub(crate) fn close(&mut self, at: Time) {
        for WatchedContainer { ending, .. } in &mut self.members {
            if ending.started.is_some() && ending.exit.is_none() {
                ending.exit = Some(Ended::Signal(libc::SIGKILL));
                ending.ended = Some(at);
            }
        }
    }

    /// Returns how the task as a whole ended: like the init container that failed, else like its main container, else
    /// like the first of its main containers that failed. `None` if the supervisor never got that far.
    pub(crate) fn exit(&self) -> Option<Ended> {
        let of = |part: Part| self.members.iter().filter(move |member| member.part == part);
        let bad = |member: &&WatchedContainer| member.ending.exit.as_ref().is_some_and(|exit| *exit != Ended::Code(0));
        let chosen = of(Part::Init)
            .find(bad)
            .or_else(|| of(Part::Main).find(|member| member.label.is_none() && member.ending.exit.is_some()))
            .or_else(|| of(Part::Main).find(bad))
            .or_else(|| of(Part::Main).find(|member| member.ending.exit.is_some()));
        chosen.and_then(|member| member.ending.exit.clone())
    }

    /// Returns how the main container ended, if it did.
    pub(crate) fn end_of_main(&self) -> Option<Ended> {
        self.main.and_then(|main| self.members[main].ending.exit.clone())
    }

    pub(crate) fn endings(self) -> Vec<MemberEnding> {
        self.members.into_iter().map(|member| member.ending).collect()
    }
}

/// Applies a message. Returns the container whose state changed.
fn apply(members: &mut [WatchedContainer], message: FromPod, now: Time, log: &mut Writer) -> Option<u32> {
    let index = match &message {
        FromPod::Output(index, ..) | FromPod::Began(index, ..) | FromPod::Over(index, ..) => *index,
        FromPod::Ready(_) => return None,
    };
    let member = members.get_mut(index as usize)?;
    match message {
        FromPod::Output(_, stderr, bytes) => {
            let stream = if stderr { Stream::Stderr } else { Stream::Stdout };
            log.append_of(member.label.as_deref(), stream, now, &bytes.0);
            None
        }
        FromPod::Began(_, at) => {
            let again = member.ending.started.is_some();
            member.ending.started.get_or_insert(at);
            (!again).then_some(index)
        }
        FromPod::Over(_, at, exit) => {
            member.ending.ended = Some(at);
            member.ending.exit = Some(exit);
            Some(index)
        }
        FromPod::Ready(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use octoflow_model::ids::{AttemptId, NodeIx, RunId};

    use super::*;
    use crate::{
        logs::Logs,
        process::wire::{Bytes, Launch, Member, frame},
    };

    fn pod_plan(parts: &[(&str, Part)]) -> PodPlan {
        let launch = Launch {
            attempt: AttemptId { run: RunId(1), task: NodeIx(1), attempt: 0 },
            isolated: true,
            keep: false,
            tty: false,
            memory_limit: None,
            storage_limit: None,
            grace_ms: 0,
            called: String::new(),
            programs: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            dir: String::new(),
            files: Vec::new(),
            mounts: Vec::new(),
            progress: None,
            hosts: None,
            hostname: None,
            termination: None,
            pod_plan: None,
            host: None,
            visible: Vec::new(),
            group: None,
        };
        let member = |(name, part): &(&str, Part)| Member {
            name: (*name).to_owned(),
            part: *part,
            label: (*name != "main").then(|| (*name).to_owned()),
            after: Vec::new(),
            probe: None,
            launch: launch.clone(),
        };
        PodPlan { members: parts.iter().map(member).collect(), retries: 0, pause_ms: 0, grace_ms: 0 }
    }

    #[test]
    fn words_in_any_cut_are_understood_and_a_killed_crew_is_accounted_for() {
        let dir = tempfile::tempdir().unwrap();
        let attempt = AttemptId { run: RunId(1), task: NodeIx(1), attempt: 0 };
        let logs = Logs::new(dir.path());
        let mut log = Writer::new(logs.path(attempt), u64::MAX, Default::default(), None);
        let mut bytes = Vec::new();
        for message in [
            FromPod::Began(0, Time(1)),
            FromPod::Output(0, false, Bytes(b"hello".to_vec())),
            FromPod::Began(1, Time(2)),
            FromPod::Output(1, true, Bytes(b"aside".to_vec())),
            FromPod::Over(0, Time(3), Ended::Code(4)),
        ] {
            frame(&message, &mut bytes);
        }
        let mut watch =
            PodWatch::new(&pod_plan(&[("main", Part::Main), ("side", Part::Sidecar), ("late", Part::Sidecar)]));
        let mut tail = Tail::default();
        for byte in &bytes {
            watch.receive(std::slice::from_ref(byte), Time(9), &mut log, Some(&mut tail));
        }
        assert_eq!(tail.text().as_deref(), Some("hello"), "its siblings' words are not its own");
        watch.close(Time(10));
        assert_eq!(watch.exit(), Some(Ended::Code(4)));
        let endings = watch.endings();
        assert_eq!(endings[1].exit, Some(Ended::Signal(9)));
        assert_eq!((endings[2].started, &endings[2].exit), (None, &None));
        let frames: Vec<_> = logs.read(attempt).map(Result::unwrap).collect();
        assert_eq!(frames[1].container.as_deref(), Some("side"));
    }

    #[test]
    fn the_end_of_the_task_is_that_of_whoever_decided_it() {
        let over = |watch: &mut PodWatch, member: u32, code: i32| {
            let mut bytes = Vec::new();
            frame(&FromPod::Over(member, Time(1), Ended::Code(code)), &mut bytes);
            let mut log = Writer::new("/nowhere".into(), 0, Default::default(), None);
            watch.receive(&bytes, Time(1), &mut log, None);
        };
        let mut watch = PodWatch::new(&pod_plan(&[("before", Part::Init), ("main", Part::Main)]));
        assert_eq!(watch.exit(), None);
        over(&mut watch, 0, 2);
        assert_eq!(watch.exit(), Some(Ended::Code(2)), "main never ran");
        let mut set = PodWatch::new(&pod_plan(&[("a", Part::Main), ("b", Part::Main), ("side", Part::Sidecar)]));
        over(&mut set, 0, 0);
        over(&mut set, 2, 7);
        assert_eq!(set.exit(), Some(Ended::Code(0)), "a sidecar's end is not the task's");
        over(&mut set, 1, 3);
        assert_eq!(set.exit(), Some(Ended::Code(3)));
        let mut named = pod_plan(&[("worker", Part::Main), ("helper", Part::Main)]);
        named.members[0].label = None;
        let mut pair = PodWatch::new(&named);
        over(&mut pair, 1, 5);
        over(&mut pair, 0, 0);
        assert_eq!(pair.exit(), Some(Ended::Code(0)), "the task's main container decides, whatever its name");
    }
}
