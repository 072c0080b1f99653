//! `run --log`: prints what steps write, as they write it.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use octoflow_control::lines::{Line, Source};
use octoflow_model::{AttemptId, Fact, NodeIx, RunId, argo::WorkflowFact, taskset::SetFact};
use octoflow_runtime::logs::Logs;

use super::Context;
use crate::{
    cli::Run,
    commands::logs::{Label, Look, rendered},
    follow::Followed,
    output::{Output, To},
};

/// How often logs are looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Tail {
    files: Logs,
    output: Output,
    /// Beside `-o` standard output belongs to the object.
    to: To,
    look: Look,
    open: HashMap<(RunId, NodeIx), (Label, Source)>,
    /// How many pods each replica of a TaskSet has had.
    tries: HashMap<(RunId, NodeIx), u32>,
    next: Instant,
}

impl Tail {
    /// `None` when nobody asked for it.
    pub(crate) fn new(args: &Run, context: &Context) -> Option<Self> {
        let to = if args.output.is_none() { To::Out } else { To::Err };
        args.log.then(|| Self {
            files: Logs::new(&context.data_dir),
            output: context.output,
            to,
            look: Look::of(&context.output, to, args.raw),
            open: HashMap::new(),
            tries: HashMap::new(),
            next: Instant::now() + LOOK,
        })
    }

    pub(crate) fn fact(&mut self, id: RunId, run: &Followed, fact: &Fact) -> Result<()> {
        match fact {
            Fact::Workflow(WorkflowFact::Launched { node, .. }) => {
                // Retries are nodes of their own, so a node has one attempt.
                let attempt = AttemptId { run: id, task: *node, attempt: 0 };
                let source = Source::open(0, &self.files, attempt);
                self.open.insert((id, *node), (Label::step(run.label(*node)), source));
            }
            Fact::TaskSet(SetFact::Launched { replica, .. }) => {
                let node = NodeIx(*replica);
                let tries = self.tries.entry((id, node)).or_default();
                let source = Source::open(0, &self.files, AttemptId { run: id, task: node, attempt: *tries });
                *tries += 1;
                let label = Label::replica(run.label(run.replica_node(*replica)));
                self.open.insert((id, node), (label, source));
            }
            Fact::TaskSet(SetFact::Ended(end)) => {
                if let Some((label, source)) = self.open.remove(&(id, NodeIx(end.replica))) {
                    self.print(&label, &source.finish()?)?;
                }
            }
            Fact::Workflow(WorkflowFact::Finished(end)) => {
                if let Some((label, source)) = self.open.remove(&(id, end.node)) {
                    self.print(&label, &source.finish()?)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Looks at all open logs if it is time; says when it is time again.
    pub(crate) fn tick(&mut self) -> Result<Instant> {
        let now = Instant::now();
        if self.next <= now {
            let mut news = Vec::new();
            for (label, source) in self.open.values_mut() {
                news.extend(source.look()?.into_iter().map(|line| (label.clone(), line)));
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
