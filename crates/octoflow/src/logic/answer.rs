//! What a task does when it runs: how it ends, when, and what it leaves.
//! Values may hold references to what the task was given; they are put in here.

use std::{collections::BTreeMap, time::Duration};

use octoflow_model::{
    AttemptId, Report, Task, Time,
    order::{Collected, End, Exit, Found},
    request,
    task::StoredArtifact,
};

use super::{
    reply::{self, Reply},
    schedule::{ContainerSchedule, ContainerStub},
    test_document::Located,
};
use crate::{cli::span, load::names};

/// The path scripts are laid down at.
const SCRIPT: &str = "/argo/staging/script";
/// The polite signal.
pub(super) const TERMINATED: i32 = 15;

#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Exit(Exit),
    Lost(String),
    /// Only when it is told to.
    Never,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub ending: Ending,
    pub pending: Duration,
    pub after: Duration,
    /// How long it runs until its readiness probes hold.
    pub ready: Duration,
    /// How it ends when it is told to, and after how long.
    pub stopped: (Duration, Exit),
    result: Option<String>,
    parameters: BTreeMap<String, String>,
    artifacts: BTreeMap<String, String>,
    missing: Vec<String>,
    /// What its containers do, when it has several.
    roles: BTreeMap<String, ContainerStub>,
    /// What is answered to a task that asks.
    reply: Option<Reply>,
    /// What it tells of its progress, and when.
    pub progress: Vec<(Duration, (u32, u32))>,
}

/// What is known of a task when it starts.
pub(crate) struct Given<'a> {
    pub task: &'a Task,
    pub run: &'a str,
    pub node: &'a str,
    pub display: &'a str,
    pub template: &'a str,
    /// It serves others and never ends by itself.
    pub daemon: bool,
    pub attempt: usize,
    pub call: usize,
    pub parameters: BTreeMap<String, String>,
    pub artifacts: BTreeMap<String, String>,
}

/// Texts of artifacts by digest.
#[derive(Debug, Default)]
pub(crate) struct ArtifactTexts {
    texts: BTreeMap<String, String>,
}

impl ArtifactTexts {
    pub(crate) fn text(&self, digest: &str) -> Option<&str> {
        self.texts.get(digest).map(String::as_str)
    }

    fn keep(&mut self, text: &str) -> String {
        // Equal texts have equal digests, as in the real store; nothing else is asked of a digest.
        if let Some((digest, _)) = self.texts.iter().find(|(_, known)| *known == text) {
            return digest.clone();
        }
        let digest = format!("sha256:{:064x}", self.texts.len() + 1);
        self.texts.insert(digest.clone(), text.to_owned());
        digest
    }
}

impl Answer {
    /// Ends well at once.
    pub(crate) fn plain() -> Self {
        Self {
            ending: Ending::Exit(Exit::Code(0)),
            pending: Duration::ZERO,
            after: Duration::ZERO,
            ready: Duration::ZERO,
            stopped: (Duration::ZERO, Exit::Signal(TERMINATED)),
            result: None,
            parameters: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            missing: Vec::new(),
            roles: BTreeMap::new(),
            reply: None,
            progress: Vec::new(),
        }
    }

    /// What a stub says, `own` before `shared`. Wrong references are told with their place.
    pub(crate) fn of<'a>(
        own: &Located<'a>,
        shared: &Located<'a>,
        given: &Given<'_>,
    ) -> Result<Self, (Located<'a>, String)> {
        let get = |key: &str| own.get(key).or_else(|| shared.get(key));
        let time = |key: &str| get(key).and_then(|located| span::parse(&located.text()).ok()).unwrap_or_default();
        let fill = |located: Located<'a>| put_in(&located.text(), given).map_err(|why| (located, why));
        let fill_all = |key: &str| -> Result<BTreeMap<String, String>, (Located<'a>, String)> {
            // Values of both add up, so that an attempt need only say what differs.
            let spots = shared.entries_of(key).chain(own.entries_of(key));
            spots.map(|(name, located)| Ok((name.to_owned(), fill(located)?))).collect()
        };
        let log = match get("log") {
            Some(log) if log.value.is_array() => Some(log.items().map(fill).collect::<Result<Vec<_>, _>>()?.join("\n")),
            Some(log) => Some(fill(log)?),
            None => None,
        };
        let stopped = get("stopped").map(|stopped| {
            let after = stopped.text_of("after").and_then(|text| span::parse(&text).ok()).unwrap_or_default();
            (after, exit_of(&stopped).unwrap_or(Exit::Signal(TERMINATED)))
        });
        Ok(Self {
            ending: ending(own).or_else(|| ending(shared)).unwrap_or(Ending::Exit(Exit::Code(0))),
            pending: time("pending"),
            after: time("after"),
            ready: time("ready"),
            stopped: stopped.unwrap_or((Duration::ZERO, Exit::Signal(TERMINATED))),
            result: get("result").map(fill).transpose()?.or(log),
            parameters: fill_all("parameters")?,
            artifacts: fill_all("artifacts")?,
            missing: get("missing").map(|located| located.texts()).unwrap_or_default(),
            reply: match reply::of(own, &fill)? {
                Some(reply) => Some(reply),
                None => reply::of(shared, &fill)?,
            },
            roles: shared
                .entries_of("containers")
                .chain(own.entries_of("containers"))
                .map(|(name, located)| (name.to_owned(), ContainerStub::of(&located)))
                .collect(),
            progress: get("progress")
                .into_iter()
                .flat_map(|located| located.items())
                .filter_map(|located| said(&located))
                .collect(),
        })
    }

    /// A daemon serves until it is told to end, unless its stub says how it ends.
    #[must_use]
    pub(crate) fn of_daemon(mut self, said: bool) -> Self {
        if !said {
            self.ending = Ending::Never;
        }
        self
    }

    /// What is answered to a task that asks, unless its stub has it end as a process would.
    fn reply(&self, task: &Task, told: bool) -> Option<request::Answer> {
        let request = task.call.as_deref()?;
        if told {
            return Some(request::Answer::Stopped);
        }
        match (&self.reply, &self.ending) {
            (Some(reply), _) => Some(reply.answer()),
            (None, Ending::Exit(Exit::Code(0))) => reply::plain(request, self.result.as_deref().unwrap_or_default()),
            (None, _) => None,
        }
    }

    /// How its containers live, when it has several and gets so far.
    pub(crate) fn schedule(&self, task: &Task) -> Option<ContainerSchedule> {
        let pod = task.pod.as_deref().filter(|_| self.runs())?;
        let exit = match &self.ending {
            Ending::Exit(exit) => Some(exit),
            Ending::Lost(_) | Ending::Never => None,
        };
        Some(ContainerSchedule::of(pod, &self.roles, exit, self.after))
    }

    /// Whether the main process begins to run.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.ending, Ending::Exit(Exit::NotStarted(_) | Exit::Environment(_)) | Ending::Lost(_))
    }

    /// What a runtime would say at the end; `told` when it was made to end otherwise than it was meant to.
    pub(crate) fn report(
        &self,
        attempt: AttemptId,
        at: Time,
        started: Option<Time>,
        told: Option<Exit>,
        task: &Task,
        artifact_texts: &mut ArtifactTexts,
    ) -> Report {
        if let Some(answer) = self.reply(task, told.is_some()) {
            return Report::Answered { attempt, at, answer: Box::new(answer) };
        }
        let schedule = self.schedule(task);
        let natural = schedule.as_ref().and_then(|schedule| Some(schedule.end()?.1));
        let exit = match (told.or(natural), &self.ending) {
            (Some(exit), _) => exit,
            (None, Ending::Exit(exit)) => exit.clone(),
            (None, Ending::Lost(why)) => return Report::Lost { attempt, at, why: why.clone() },
            (None, Ending::Never) => unreachable!("what never ends is only over when it is told to"),
        };
        let members = schedule.zip(started).map(|(schedule, started)| schedule.ends(started, at)).unwrap_or_default();
        let end = End { members, ..self.end(exit, started, task, artifact_texts) };
        Report::Ended { attempt, at, end: Box::new(end) }
    }

    /// What is found when the task is over. One that ends well leaves everything it promised, empty unless it is said.
    fn end(&self, exit: Exit, started: Option<Time>, task: &Task, artifact_texts: &mut ArtifactTexts) -> End {
        let well = exit == Exit::Code(0);
        let text = |named: &BTreeMap<String, String>, name: &String| {
            let said = named.get(name).cloned().or_else(|| well.then(String::new));
            said.filter(|_| !self.missing.contains(name))
        };
        let wanted = &task.wanted;
        let parameters = wanted.parameters.iter().map(|(name, _)| {
            let found = text(&self.parameters, name);
            (name.clone(), found.map_or(Found::Missing, Found::Here))
        });
        let artifacts = wanted.artifacts.iter().map(|wanted| {
            let found = text(&self.artifacts, &wanted.name).map(|text| StoredArtifact {
                digest: artifact_texts.keep(&text),
                size: text.len() as u64,
                archive: wanted.archive,
                key: wanted.key.clone(),
                noted: None,
                deleted: false,
            });
            (wanted.name.clone(), found.map_or(Found::Missing, Found::Here))
        });
        let collected = Collected {
            result: wanted.result.then(|| self.result.clone().unwrap_or_default()),
            parameters: parameters.collect(),
            artifacts: artifacts.collect(),
            message: None,
            log: None,
            fetched: Vec::new(),
        };
        End { exit, started, collected, log_truncated: false, log_bytes: 0, members: Vec::new() }
    }
}

/// Whether a stub says how its tasks end.
pub(super) fn says_ending(located: &Located<'_>) -> bool {
    ending(located).is_some()
}

fn said(progress: &Located<'_>) -> Option<(Duration, (u32, u32))> {
    let after = progress.text_of("after").and_then(|text| span::parse(&text).ok()).unwrap_or_default();
    Some((after, super::notation::progress(&progress.text_of("is")?)?))
}

fn ending(located: &Located<'_>) -> Option<Ending> {
    if let Some(why) = located.text_of("lost") {
        return Some(Ending::Lost(why));
    }
    if located.get("never").is_some_and(|never| never.value.as_bool() == Some(true)) {
        return Some(Ending::Never);
    }
    exit_of(located).map(Ending::Exit)
}

pub(super) fn exit_of(located: &Located<'_>) -> Option<Exit> {
    let number = |key: &str| located.get(key).and_then(|located| i32::try_from(located.value.as_i64()?).ok());
    number("exit")
        .map(Exit::Code)
        .or_else(|| number("signal").map(Exit::Signal))
        .or_else(|| located.text_of("notStarted").map(Exit::NotStarted))
        .or_else(|| located.text_of("broken").map(Exit::Environment))
}

/// Puts what `{{…}}` refers to in its place.
fn put_in(text: &str, given: &Given<'_>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or("a `{{` is not closed")?;
        filled.push_str(before);
        filled.push_str(&look_up(name.trim(), given)?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

const REFERENCES: [&str; 13] = [
    "args",
    "attempt",
    "call",
    "command",
    "env.NAME",
    "image",
    "inputs.artifacts.NAME",
    "inputs.parameters.NAME",
    "node.displayName",
    "node.name",
    "source",
    "template",
    "workflow.name",
];

fn look_up(name: &str, given: &Given<'_>) -> Result<String, String> {
    let main = &given.task.main;
    let known = |what: &str, name: &str, found: Option<String>, all: Vec<&str>| {
        found.ok_or_else(|| {
            let hint = names::suggestion(name, all.iter().copied()).unwrap_or_else(|| match all.as_slice() {
                [] => "it has none".to_owned(),
                all => format!("it has {}", all.join(", ")),
            });
            format!("the task of node `{}` has no {what} `{name}`; {hint}", given.node)
        })
    };
    let keys = |map: &'_ BTreeMap<String, String>| -> Vec<String> { map.keys().cloned().collect() };
    if let Some(name) = name.strip_prefix("inputs.parameters.") {
        let all = keys(&given.parameters);
        let all = all.iter().map(String::as_str).collect();
        return known("input parameter", name, given.parameters.get(name).cloned(), all);
    }
    if let Some(name) = name.strip_prefix("inputs.artifacts.") {
        let all = keys(&given.artifacts);
        let all = all.iter().map(String::as_str).collect();
        return known("input artifact", name, given.artifacts.get(name).cloned(), all);
    }
    if let Some(name) = name.strip_prefix("env.") {
        let found = main.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.reveal().to_owned());
        return known("variable", name, found, main.env.iter().map(|(name, _)| name.as_str()).collect());
    }
    for (word, list) in [("args", &main.args), ("command", &main.command)] {
        if name == word {
            return Ok(list.join(" "));
        }
        let index = name.strip_prefix(word).and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']'));
        if let Some(index) = index.and_then(|index| index.parse::<usize>().ok()) {
            let why = || format!("the task of node `{}` has only {} {word}", given.node, list.len());
            return list.get(index).cloned().ok_or_else(why);
        }
    }
    Ok(match name {
        "source" => source(given.task).ok_or_else(|| format!("the task of node `{}` is no script", given.node))?,
        "image" => main.image.clone(),
        "node.name" => given.node.to_owned(),
        "node.displayName" => given.display.to_owned(),
        "template" => given.template.to_owned(),
        "workflow.name" => given.run.to_owned(),
        "attempt" => given.attempt.to_string(),
        "call" => given.call.to_string(),
        _ => {
            let hint =
                names::suggestion(name, REFERENCES).unwrap_or_else(|| format!("known: {}", REFERENCES.join(", ")));
            return Err(format!("`{{{{{name}}}}}` is nothing a stub can refer to; {hint}"));
        }
    })
}

/// The script a task runs.
pub(crate) fn source(task: &Task) -> Option<String> {
    let file = task.files.iter().find(|file| file.path == SCRIPT)?;
    Some(String::from_utf8_lossy(&file.contents).into_owned())
}
