//! Progress display of `run`: none, lines, or a live tree.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use jiff::tz::TimeZone;
use octoflow_engine::follow::{Event, FollowedRun};
use octoflow_model::Time;

use crate::{
    cli::Run,
    output::{Output, clock, events, live::Live},
};

/// Poll interval when nothing needs to be redrawn.
const CALM: Duration = Duration::from_secs(3600);

pub(crate) struct Progress {
    output: Output,
    zone: TimeZone,
    several: bool,
    form: Form,
}

enum Form {
    Quiet,
    Lines,
    Live(Live),
}

impl Progress {
    pub(crate) fn new(args: &Run, output: Output, runs: usize) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let form = if args.quiet {
            Form::Quiet
        } else if std::io::stderr().is_terminal() && !dumb && !args.log {
            Form::Live(Live::default())
        } else {
            Form::Lines
        };
        Self { output, zone: clock::local_zone(), several: runs > 1, form }
    }

    /// Reports whether a tree is drawn in place.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.form, Form::Live(_))
    }

    /// Shows nothing from now on: somebody else draws.
    pub(crate) fn be_quiet(&mut self) {
        self.form = Form::Quiet;
    }

    pub(crate) fn event(&mut self, run: &FollowedRun, at: Time, event: &Event) {
        match &mut self.form {
            Form::Quiet => {}
            Form::Lines => {
                let line = events::line(run, at, event, self.several, &self.zone, self.output.talk_paint());
                self.output.talk(&line);
            }
            Form::Live(live) => live.changed(),
        }
    }

    /// Prints a message between progress output.
    pub(crate) fn talk(&mut self, text: &str) {
        if let Form::Live(live) = &mut self.form {
            live.clear(&self.output);
        }
        self.output.talk(text);
    }

    /// Redraws if it is due; returns the time of the next call.
    pub(crate) fn tick<'a>(&mut self, runs: impl FnOnce() -> Vec<&'a FollowedRun>) -> Instant {
        let now = Instant::now();
        match &mut self.form {
            Form::Live(live) => {
                if live.due(now) <= now {
                    live.draw(&self.output, &runs(), clock::now());
                }
                live.due(now)
            }
            Form::Quiet | Form::Lines => now + CALM,
        }
    }

    /// Draws the final state, which stays on the screen.
    pub(crate) fn finish(&mut self, runs: &[&FollowedRun]) {
        if let Form::Live(live) = &mut self.form {
            live.draw(&self.output, runs, clock::now());
        }
    }
}
