//! The live tree on a terminal: drawn on standard error, redrawn in place, never taller than the screen. If the tree is
//! too tall it shows what runs and what failed, and counts the rest.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use octoflow_engine::follow::{FollowedNode, FollowedRun};
use octoflow_model::{Time, run::node::NodeKind};

use super::{
    Output, clock,
    colour::{Colour, Paint, icon, letter_width},
    nodes::step,
    sanitize::escaped,
    table::{Cell, Table},
    tree::{self, Shape},
};

/// Minimum redraw interval: faster is not readable.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Redraw interval when nothing changes, because durations advance.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// Drawing takes at most one part in this many of the time, so that large trees do not slow down the run.
const DRAW_TIME_SHARE: u32 = 20;

#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Number of lines on the screen that belong to the tree.
    drawn: usize,
    /// Earliest time of the next redraw.
    next: Option<Instant>,
    dirty: bool,
}

impl Live {
    /// Marks the tree as changed; it is redrawn when due.
    pub(crate) fn changed(&mut self) {
        self.dirty = true;
    }

    /// Returns the time of the next redraw.
    pub(crate) fn due(&self, now: Instant) -> Instant {
        let next = self.next.unwrap_or(now);
        if self.dirty { next } else { next + IDLE_INTERVAL.saturating_sub(MIN_INTERVAL) }
    }

    pub(crate) fn draw(&mut self, output: &Output, runs: &[&FollowedRun], now: Time) {
        let begin = Instant::now();
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (columns, rows) = size.map_or((80, 24), |(columns, rows)| (usize::from(columns.0), usize::from(rows.0)));
        let lines = picture(runs, rows.saturating_sub(1).max(2), now, output.talk_paint());
        self.replace(output, &lines, columns);
        self.dirty = false;
        self.next = Some(begin + MIN_INTERVAL.max(begin.elapsed() * DRAW_TIME_SHARE));
    }

    /// Replaces the drawn lines; those that do not fit on the screen are left out.
    pub(crate) fn show(&mut self, output: &Output, mut lines: Vec<String>) {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (columns, rows) = size.map_or((80, 24), |(columns, rows)| (usize::from(columns.0), usize::from(rows.0)));
        let room = rows.saturating_sub(1).max(2);
        if lines.len() > room {
            let left = lines.len() - (room - 1);
            lines.truncate(room - 1);
            lines.push(format!("… {left} more lines"));
        }
        self.replace(output, &lines, columns);
    }

    fn replace(&mut self, output: &Output, lines: &[String], columns: usize) {
        let colours = output.talk_paint().is_on();
        let clipped: Vec<String> = lines.iter().map(|line| clip(&escaped(line, colours), columns)).collect();
        output.redraw(self.drawn, &clipped);
        self.drawn = lines.len();
    }

    /// Clears the tree from the screen, so that something else can be printed.
    pub(crate) fn clear(&mut self, output: &Output) {
        output.redraw(self.drawn, &[]);
        self.drawn = 0;
        self.dirty = true;
    }
}

/// Renders all runs, each with its line and its tree, in at most `room` lines.
fn picture(runs: &[&FollowedRun], room: usize, now: Time, paint: Paint) -> Vec<String> {
    let share = (room / runs.len().max(1)).max(2);
    let mut lines: Vec<String> = runs.iter().flat_map(|run| one(run, share, now, paint)).collect();
    lines.truncate(room);
    lines
}

fn one(run: &FollowedRun, room: usize, now: Time, paint: Paint) -> Vec<String> {
    let (icon, colour) = icon(run.phase_word(), false);
    let took = run.began.map_or(Duration::ZERO, |began| run.ended.unwrap_or(now).since(began));
    let mut lines = vec![format!(
        "{} {}  {}  {}/{}  {}",
        paint.paint(icon, colour),
        paint.paint(&run.name, Colour::Bold),
        run.phase_word(),
        run.done,
        run.total,
        clock::short(took)
    )];
    let room = room.saturating_sub(1);
    let everything: Vec<usize> = (0..run.nodes.len()).collect();
    let whole = if run.nodes.len() <= room * 4 { tree_lines(run, &everything, now, paint) } else { Vec::new() };
    if !whole.is_empty() && whole.len() <= room {
        lines.extend(whole);
    } else if !run.nodes.is_empty() && room > 1 {
        lines.extend(excerpt(run, room, now, paint));
    }
    lines
}

/// Renders the most important part of a tree that is too tall, and a line that counts the rest.
fn excerpt(run: &FollowedRun, room: usize, now: Time, paint: Paint) -> Vec<String> {
    let mut ranked: Vec<usize> = (0..run.nodes.len()).filter(|at| importance(&run.nodes[*at]) < 3).collect();
    ranked.sort_by_key(|at| importance(&run.nodes[*at]));
    let mut kept = vec![false; run.nodes.len()];
    let mut budget = room - 1;
    for at in ranked {
        let mut missing = Vec::new();
        let mut next = Some(at);
        while let Some(above) = next.filter(|above| !kept[*above]) {
            missing.push(above);
            next = run.nodes[above].holder.map(|holder| holder.at());
        }
        let visible = missing.iter().filter(|at| run.nodes[**at].kind.word() != "StepGroup").count();
        if visible > budget {
            break;
        }
        budget -= visible;
        missing.into_iter().for_each(|at| kept[at] = true);
    }
    let shown: Vec<usize> = (0..run.nodes.len()).filter(|at| kept[*at]).collect();
    let mut lines = tree_lines(run, &shown, now, paint);
    lines.truncate(room - 1);
    lines.push(paint.paint(&rest(run, &kept), Colour::Dim));
    lines
}

/// Lower is more important: failures, running, waiting, finished.
fn importance(seen: &FollowedNode) -> u8 {
    if !matches!(seen.kind.word(), "Pod" | "HTTP" | "Suspend" | "Skipped") {
        return 3;
    }
    match seen.phase.word() {
        "Failed" | "Error" => 0,
        "Running" => 1,
        "Pending" => 2,
        _ => 3,
    }
}

fn rest(run: &FollowedRun, kept: &[bool]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (seen, _) in run
        .nodes
        .iter()
        .zip(kept)
        .filter(|(seen, kept)| !**kept && matches!(seen.kind.word(), "Pod" | "HTTP" | "Suspend" | "Skipped"))
    {
        *counts.entry(seen.phase.word()).or_default() += 1;
    }
    let words: Vec<String> = counts.iter().map(|(phase, count)| format!("{count} {}", phase.to_lowercase())).collect();
    if words.is_empty() { " …".to_owned() } else { format!(" … and {}", words.join(", ")) }
}

fn tree_lines(run: &FollowedRun, which: &[usize], now: Time, paint: Paint) -> Vec<String> {
    let mut place = vec![None; run.nodes.len()];
    for (new, old) in which.iter().enumerate() {
        place[*old] = Some(new);
    }
    let shapes: Vec<Shape<'_>> = which
        .iter()
        .map(|at| {
            let seen = &run.nodes[*at];
            Shape {
                parent: seen.holder.and_then(|holder| place.get(holder.at()).copied().flatten()),
                kind: seen.kind.word(),
                phase: seen.phase.word(),
                display: &seen.display,
                started: seen.rank.is_none().then_some(seen.started),
                // Containers are created after those they depend on.
                rank: seen.rank.unwrap_or(if seen.kind.word() == "Container" { *at } else { 0 }),
                unwanted: false,
            }
        })
        .collect();
    let roots: Vec<usize> = (0..shapes.len()).filter(|at| shapes[*at].parent.is_none()).collect();
    let mut table = Table::bare();
    for line in tree::draw(&shapes, &roots) {
        match line.node {
            Some(at) => table.push(row(&run.nodes[which[at]], line.prefix, now)),
            None => table.push(Vec::new()),
        }
    }
    table.lines(paint)
}

fn row(seen: &FollowedNode, prefix: String, now: Time) -> Vec<Cell> {
    let works = seen.kind.tasked() || seen.kind == NodeKind::Container;
    let timed = works && (seen.running.is_some() || seen.finished.is_some());
    let took = if timed { clock::short(seen.took(now)) } else { String::new() };
    let again =
        if seen.retries == 0 || seen.holder.is_none() { String::new() } else { format!("retry {} ", seen.retries) };
    vec![
        step(prefix, seen.phase.word(), seen.waits_for_resume(), &seen.display),
        (&seen.template).into(),
        took.into(),
        format!("{again}{}", seen.message).into(),
    ]
}

/// Cuts a line to the width of the screen. Colour sequences take no room; a cut line ends without colour.
fn clip(line: &str, columns: usize) -> String {
    let mut shown = String::new();
    let mut taken = 0;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            shown.push(letter);
            for part in letters.by_ref() {
                shown.push(part);
                if part.is_ascii_alphabetic() {
                    break;
                }
            }
            continue;
        }
        taken += letter_width(letter);
        if taken > columns {
            shown.pop();
            shown.push('…');
            if line.contains('\x1b') {
                shown.push_str("\x1b[0m");
            }
            return shown;
        }
        shown.push(letter);
    }
    shown
}

#[cfg(test)]
mod tests {
    use octoflow_model::{
        Fact, NodeIx,
        argo::{NodeKind, Phase, Role, WorkflowFact},
    };

    use super::*;
    use crate::output::followed::{added, finished, two_steps, workflow};

    #[test]
    fn the_picture_has_a_title_and_the_tree() {
        let mut run = workflow("w");
        for fact in two_steps() {
            run.take(&fact);
        }
        run.take(&Fact::Workflow(WorkflowFact::Started { node: NodeIx(2), at: Time::from_secs(1) }));
        let lines = picture(&[&run], 20, Time::from_secs(4), Paint::OFF);
        assert_eq!(lines, ["● w  Running  0/1  4s", " ● w      t", " └─┬─● a  t  3s", "   └─○ b  t"]);
    }

    fn wide_run(tasks: u32) -> FollowedRun {
        let mut run = workflow("w");
        run.take(&added("w", NodeKind::Dag, Role::Entry, None, None, Phase::Running));
        for task in 0..tasks {
            run.take(&added(
                &format!("w.t{task:04}"),
                NodeKind::Pod,
                Role::Task(task),
                Some(0),
                Some(0),
                Phase::Pending,
            ));
        }
        run
    }

    #[test]
    fn a_tall_tree_shows_failures_and_work_and_counts_the_rest() {
        let mut run = wide_run(1000);
        for task in 1..=500 {
            run.take(&finished(task, Phase::Succeeded, "", Time(0)));
        }
        run.take(&finished(600, Phase::Failed, "main: Error (exit code 1)", Time(0)));
        run.take(&Fact::Workflow(WorkflowFact::Started { node: NodeIx(700), at: Time(0) }));
        let lines = picture(&[&run], 10, Time(0), Paint::OFF);
        assert!(lines.len() <= 10, "{lines:#?}");
        let text = lines.join("\n");
        assert!(text.contains("✖ t0599") && text.contains("● t0699"), "{text}");
        assert!(lines.last().unwrap().contains("500 succeeded"), "{text}");
    }

    #[test]
    fn several_runs_share_the_screen() {
        let runs: Vec<FollowedRun> = (0..3).map(|_| wide_run(50)).collect();
        let runs: Vec<&FollowedRun> = runs.iter().collect();
        assert!(picture(&runs, 12, Time(0), Paint::OFF).len() <= 12);
    }

    #[test]
    fn lines_are_cut_at_the_edge_and_end_without_colour() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdef", 4), "abc…");
        assert_eq!(clip("\x1b[31mabcdef\x1b[0m", 4), "\x1b[31mabc…\x1b[0m");
    }
}
