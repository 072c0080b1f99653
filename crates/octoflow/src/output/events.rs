//! Progress of a run as one line per event, such as `12:00:01 ✔ step-a succeeded (0.3s)`, for output that is not a
//! terminal.

use jiff::tz::TimeZone;
use octoflow_engine::{
    dialect::PhaseClass,
    follow::{Event, FollowedNode, FollowedRun},
};
use octoflow_model::{Shutdown, Time, run::node::Phase};

use super::{
    clock,
    colour::{Colour, Paint, class_of, icon, one_line},
};

/// Formats an event. With several runs each line begins with its run's name.
pub(crate) fn line(run: &FollowedRun, at: Time, event: &Event, several: bool, zone: &TimeZone, paint: Paint) -> String {
    let (phase, waiting, words) = describe(run, at, event);
    let (icon, colour) = icon(phase, waiting);
    let owner =
        if several { format!("{} ", paint.paint(&format!("[{}]", run.name), Colour::Dim)) } else { String::new() };
    let words = one_line(&words);
    format!("{} {} {owner}{words}", paint.paint(&clock::of_day(at, zone), Colour::Dim), paint.paint(icon, colour))
}

fn describe(run: &FollowedRun, at: Time, event: &Event) -> (&'static str, bool, String) {
    let workflow = &run.name;
    let noun = run.noun();
    match event {
        Event::Began => ("Running", false, format!("{noun} {workflow} started")),
        Event::Attempt(number) => ("Running", false, format!("{noun} {workflow} begins attempt {number}")),
        Event::TriedAgain { until, message } => {
            let wait = clock::fine(until.since(at));
            ("Pending", false, format!("{noun} {workflow} is tried again in {wait}{}", reason(message)))
        }
        Event::Judged(node) => {
            let (phase, message) = run.nodes.get(node.at()).map_or(("", ""), |seen| (seen.phase.word(), &seen.message));
            (phase_of(phase), false, format!("role {} {}{}", run.label(*node), verb(phase), reason(message)))
        }
        Event::Stopped(node) => ("Skipped", false, format!("{} was ended", run.label(*node))),
        Event::Started(node) => {
            let retries = run.nodes.get(node.at()).map_or(0, |seen| seen.retries);
            let again = if retries == 0 { String::new() } else { format!(" (retry {retries})") };
            ("Running", false, format!("{} started{again}", run.label(*node)))
        }
        Event::Waits(node) => {
            let display = run.nodes.get(node.at()).map_or("", |seen| &seen.display);
            let how = format!("octoflow resume {workflow} --node-field-selector displayName={display}");
            ("Running", true, format!("{} waits (to go on: {how})", run.label(*node)))
        }
        Event::Finished(node) => match run.nodes.get(node.at()) {
            Some(seen) => (seen.phase.word(), false, format!("{} {}", run.label(*node), ending(seen, at))),
            None => ("Succeeded", false, run.label(*node)),
        },
        Event::Backoff { node, until, message } => {
            let wait = clock::fine(until.since(at));
            ("Pending", false, format!("{} is tried again in {wait}{}", run.label(*node), reason(message)))
        }
        Event::Preempted { node, message } => {
            ("Pending", false, format!("{} is ended and waits again{}", run.label(*node), reason(message)))
        }
        Event::Locked { node, lock, holders } => {
            let who = node.map_or_else(|| format!("{noun} {workflow}"), |node| run.label(node));
            let by = if holders.is_empty() { String::new() } else { format!(", held by {}", holders.join(", ")) };
            ("Pending", false, format!("{who} waits for the lock {lock}{by}"))
        }
        Event::Suspended => {
            ("Running", true, format!("{noun} {workflow} is suspended (to go on: octoflow resume {workflow})"))
        }
        Event::Resumed => ("Running", false, format!("{noun} {workflow} is resumed")),
        Event::ShuttingDown(Shutdown::Stop) => ("Pending", false, format!("{noun} {workflow} is being stopped")),
        Event::ShuttingDown(Shutdown::Terminate) => {
            ("Pending", false, format!("{noun} {workflow} is being terminated"))
        }
        Event::Deadlock { message } => ("Pending", false, format!("{noun} {workflow}: {message}")),
        Event::DeadlinePassed => ("Failed", false, format!("{noun} {workflow} exceeded its deadline")),
        Event::Ended => {
            let took = run.began.map_or(String::new(), |began| format!(" ({})", clock::fine(at.since(began))));
            let words = format!("{noun} {workflow} {}{took}{}", verb(run.phase.word()), reason(&run.message));
            (run.phase.word(), false, words)
        }
    }
}

/// Returns the phase with a static lifetime.
fn phase_of(phase: &str) -> &'static str {
    if phase == "Succeeded" { "Succeeded" } else { "Failed" }
}

fn ending(seen: &FollowedNode, at: Time) -> String {
    match seen.phase {
        Phase::Succeeded => format!("succeeded ({})", clock::fine(seen.took(at))),
        phase => format!("{}{}", verb(phase.word()), reason(&seen.message)),
    }
}

/// Returns the word for a phase of any kind of run, or of a node.
pub(crate) fn verb(phase: &str) -> &'static str {
    match phase {
        "Succeeded" => "succeeded",
        "Completed" | "Complete" => "completed",
        "Failed" => "failed",
        "Terminated" => "was terminated",
        "stopped" => "was stopped",
        "Aborted" => "is aborted",
        "Suspended" | "suspended" => "is suspended",
        "Error" => "could not be run",
        "Skipped" => "skipped",
        "Omitted" => "omitted",
        "Pending" | "Waiting" => "waits",
        other => match class_of(other) {
            Some(PhaseClass::Waiting) => "waits",
            Some(PhaseClass::Succeeded) => "succeeded",
            Some(PhaseClass::Failed) => "failed",
            Some(PhaseClass::Running) | None => "runs",
        },
    }
}

pub(crate) fn reason(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {}", one_line(message)) }
}

#[cfg(test)]
mod tests {
    use octoflow_engine::kinds::{self, Kind};
    use octoflow_model::{Fact, NodeIx, RunFact, RunPhase, argo::WorkflowFact};

    use super::*;
    use crate::output::followed::{finished, two_steps, workflow};

    fn told(facts: &[Fact], several: bool) -> Vec<String> {
        let mut run = workflow("w");
        facts
            .iter()
            .filter_map(|fact| {
                run.take(fact).map(|(at, event)| line(&run, at, &event, several, &TimeZone::UTC, Paint::OFF))
            })
            .collect()
    }

    #[test]
    fn each_event_is_one_line_with_time_and_icon() {
        let mut facts = two_steps();
        facts.extend([
            Fact::Workflow(WorkflowFact::Started { node: NodeIx(2), at: Time(1_000_000) }),
            finished(2, Phase::Succeeded, "", Time(1_340_000)),
            Fact::Run(RunFact::Ended { phase: RunPhase::Succeeded, message: String::new(), at: Time(2_000_000) }),
        ]);
        let expected = [
            "00:00:00 ● workflow w started",
            "00:00:00 ○ b skipped",
            "00:00:01 ● a started",
            "00:00:01 ✔ a succeeded (0.3s)",
            "00:00:02 ✔ workflow w succeeded (2.0s)",
        ];
        assert_eq!(told(&facts, false), expected);
    }

    #[test]
    fn every_final_phase_of_every_kind_has_its_word() {
        for dialect in kinds::of_runs().filter_map(Kind::dialect) {
            for known in dialect.phases.iter().filter(|known| known.class.is_final()) {
                let word = verb(known.word);
                assert!(!matches!(word, "runs" | "waits"), "{} of a {}: {word}", known.word, dialect.kind.noun);
            }
        }
        assert_eq!(
            [verb("Succeed"), verb("Complete"), verb("Terminated")],
            ["succeeded", "completed", "was terminated"]
        );
        assert_eq!([verb("Aborted"), verb("Running"), verb("TaskSetRunning")], ["is aborted", "runs", "runs"]);
    }

    #[test]
    fn a_failure_says_why() {
        let mut facts = two_steps();
        facts.push(finished(2, Phase::Failed, "main: Error (exit code 1)", Time(0)));
        assert_eq!(told(&facts, true).last().unwrap(), "00:00:00 ✖ [w] a failed: main: Error (exit code 1)");
    }
}
