//! How a task ends and what it leaves: always the same for one seed and one task name.
//! The task's own arguments say how often it fails and whether it ends by itself.

use octoflow_model::{
    Task, Time,
    order::{Collected, End, Exit, Found},
    pod::{MemberEnd, Part},
};

use super::Draw;

pub(super) fn end(seed: u64, task: &Task) -> End {
    let mut draw = Draw::of(seed, "answer", &task.name);
    let failing = manner(task, "fail=").and_then(|text| text.parse().ok()).unwrap_or(0);
    let exit = if !draw.chance(failing) {
        Exit::Code(0)
    } else {
        match draw.below(12) {
            0 => Exit::Signal(9),
            1 => Exit::NotStarted("executable file not found in $PATH".to_owned()),
            2 | 3 => Exit::Environment("an input could not be placed".to_owned()),
            _ => Exit::Code(i32::try_from(draw.between(1, 5)).unwrap_or(1)),
        }
    };
    let mut collected = Collected::default();
    if task.wanted.result {
        collected.result = Some((*draw.pick(&["heads", "tails", "3", "[1,2]"])).to_owned());
    }
    for (name, path) in &task.wanted.parameters {
        let value = if path.ends_with("list") {
            let items: Vec<String> = (0..draw.below(4)).map(|item| item.to_string()).collect();
            Found::Here(format!("[{}]", items.join(",")))
        } else if draw.chance(4) {
            Found::Missing
        } else if draw.chance(1) {
            Found::Failed("it is a directory".to_owned())
        } else {
            Found::Here(draw.below(10).to_string())
        };
        collected.parameters.push((name.clone(), value));
    }
    End { exit, started: None, collected, log_truncated: draw.chance(2), log_bytes: 0, members: Vec::new() }
}

/// Whether the task will run at all, if it is not told to end.
pub(super) fn runs(seed: u64, task: &Task) -> bool {
    ran(&end(seed, task).exit)
}

/// Whether a task that ended so has run.
pub(super) fn ran(exit: &Exit) -> bool {
    !matches!(exit, Exit::NotStarted(_) | Exit::Environment(_))
}

/// How each container of a task that ended so has ended; nothing for a task that never came so far.
pub(crate) fn members(task: &Task, exit: &Exit, started: Option<Time>, now: Time) -> Vec<MemberEnd> {
    if matches!(exit, Exit::Environment(_)) {
        return Vec::new();
    }
    let members = task.pod.iter().flat_map(|pod| &pod.members);
    members
        .map(|member| {
            let name = &member.container.name;
            let exit = match member.part {
                Part::Init => Some(Exit::Code(0)),
                Part::Sidecar => Some(Exit::Signal(15)),
                Part::Main if *name == task.main.name => Some(exit.clone()),
                // What waits for a container that failed is never started.
                Part::Main if !member.after.is_empty() && *exit != Exit::Code(0) => None,
                Part::Main => Some(Exit::Code(0)),
            };
            let at = exit.as_ref().and(started);
            MemberEnd { name: name.clone(), started: at, ended: exit.as_ref().map(|_| now), exit }
        })
        .collect()
}

/// It does not give in to the polite signal.
pub(super) fn stubborn(task: &Task) -> bool {
    task.main.args.iter().any(|manner| manner == "stubborn")
}

/// It never ends by itself.
pub(super) fn endless(task: &Task) -> bool {
    task.main.args.iter().any(|manner| manner == "endless")
}

fn manner<'t>(task: &'t Task, key: &str) -> Option<&'t str> {
    task.main.args.iter().find_map(|manner| manner.strip_prefix(key))
}
