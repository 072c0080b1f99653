//! `run --log`: prints the output of steps as they write it.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use octoflow_control::lines::{Line, Source};
use octoflow_engine::follow::{FollowedRun, TaskEvent};
use octoflow_model::{AttemptId, Fact, NodeIx, RunId};
use octoflow_runtime::logs::Logs;

use super::Context;
use crate::{
    cli::Run,
    commands::logs::{Label, LineStyle, rendered},
    output::{Output, To},
};

/// Poll interval for logs.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Tail {
    files: Logs,
    output: Output,
    /// Standard error if `-o` uses standard output for the object.
    to: To,
    look: LineStyle,
    open: HashMap<(RunId, NodeIx), (Label, Source)>,
    /// Number of attempts of each task.
    tries: HashMap<(RunId, NodeIx), u32>,
    next: Instant,
}

impl Tail {
    /// Returns `None` unless requested.
    pub(crate) fn new(args: &Run, context: &Context) -> Option<Self> {
        let to = if args.output.is_none() { To::Out } else { To::Err };
        args.log.then(|| Self {
            files: Logs::new(&context.data_dir),
            output: context.output,
            to,
            look: LineStyle::of(&context.output, to, args.raw),
            open: HashMap::new(),
            tries: HashMap::new(),
            next: Instant::now() + LOOK,
        })
    }

    pub(crate) fn fact(&mut self, id: RunId, run: &FollowedRun, fact: &Fact) -> Result<()> {
        match run.task_event(fact) {
            Some(TaskEvent::Launched { task, attempt, label }) => {
                let tries = self.tries.entry((id, task)).or_default();
                let attempt = AttemptId { run: id, task, attempt: attempt.unwrap_or(*tries) };
                *tries += 1;
                let by_pods = run.dialect.is_some_and(|dialect| dialect.view.pod_names().is_some());
                let label = if by_pods { Label::replica(label) } else { Label::step(label) };
                self.open.insert((id, task), (label, Source::open(0, &self.files, attempt)));
            }
            Some(TaskEvent::Ended { task }) => {
                if let Some((label, source)) = self.open.remove(&(id, task)) {
                    self.print(&label, &source.finish()?)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Reads all open logs if it is due; returns the time of the next call.
    pub(crate) fn tick(&mut self) -> Result<Instant> {
        let now = Instant::now();
        if self.next <= now {
            let mut news = Vec::new();
            for (label, source) in self.open.values_mut() {
                news.extend(source.new_lines()?.into_iter().map(|line| (label.clone(), line)));
            }
            self.print_all(news)?;
            self.next = now + LOOK;
        }
        Ok(self.next)
    }

    fn print_all(&self, mut news: Vec<(Label, Line)>) -> Result<()> {
        news.sort_by_key(|(_, line)| line.at);
        news.iter().try_for_each(|(label, line)| self.print(label, std::slice::from_ref(line)))
    }

    fn print(&self, label: &Label, lines: &[Line]) -> Result<()> {
        for line in lines {
            self.output.step_output(self.to, &rendered(line, label, true, false, self.look))?;
        }
        Ok(())
    }
}
