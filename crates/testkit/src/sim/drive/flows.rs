//! Flows while the story goes on: their requests go to the worker that makes jobs, templates change, and people tell jobs
//! what to do.

use octoflow_engine::{DialectRun, Run, jobflow, submission, volcano};
use octoflow_model::{AttemptId, Order, RunId, Time};

use super::Sim;
use crate::sim::{
    calendar::{Event, ticks},
    failure::Broken,
    flow::FlowAct,
};

impl Sim<'_> {
    /// Reports whether the attempt is a request of a flow or a submitted job.
    pub(super) fn is_request(&self, id: AttemptId) -> bool {
        let asks = |run: &Run| run.of::<jobflow::Run>().is_some() || run.of::<submission::Run>().is_some();
        self.disk.seen(id.run).is_some_and(asks)
    }

    /// Sends an order to whoever makes runs and calls plugins.
    pub(super) fn request(&mut self, order: &Order, now: Time) -> Result<(), Broken> {
        if let Order::Start { attempt, task } = order {
            self.disk.check_unanswered([(*attempt, &**task)])?;
        }
        self.maker.send(order, now, &mut self.calendar)
    }

    pub(super) fn make(&mut self, id: AttemptId) -> Result<(), Broken> {
        let Some(uid) = self.disk.seen(id.run).map(|run| run.head().uid.to_string()) else { return Ok(()) };
        let Some(life) = &mut self.life else { return Ok(()) };
        if life.event_loop.is_out() {
            self.calendar.put(self.now.saturating_add(ticks(20)), Event::Make(id));
            return Ok(());
        }
        let told = self.maker.make(id, &uid, self.now, &mut life.event_loop, &mut self.calendar)?;
        if let Some(told) = told {
            self.tell(|| format!("maker    {id} {told}"));
        }
        Ok(())
    }

    pub(super) fn change_flows(&mut self, at: usize) {
        let world = self.world;
        let Some((_, act)) = world.flows.as_ref().and_then(|plan| plan.acts.get(at)) else { return };
        let Some(life) = self.life.as_mut().filter(|life| !life.event_loop.is_out()) else {
            self.calendar.put(self.up_at.max(self.now).saturating_add(ticks(20)), Event::Flows(at));
            return;
        };
        match act {
            FlowAct::PutTemplate(name, object) => self.maker.put(name, object.clone(), self.now, &mut self.calendar),
            FlowAct::DeleteTemplate(name) => self.maker.delete(name),
            FlowAct::PutAll(all) => self.maker.put_all(all, self.now, &mut self.calendar),
            FlowAct::TellJob { which, command } => {
                let is_child = |run: &&RunId| {
                    let seen = self.disk.seen(**run).and_then(|run| run.of::<volcano::Run>());
                    seen.is_some_and(|job| job.head().ordered_by.is_some())
                };
                let open = self.disk.open_runs();
                let jobs: Vec<&RunId> = open.iter().filter(is_child).collect();
                let Some(job) = (!jobs.is_empty()).then(|| *jobs[(which % jobs.len() as u64) as usize]) else { return };
                // Whether it is taken is up to the job; nobody waits for the answer.
                drop(life.event_loop.command(job, command.clone()));
                self.tell(|| format!("person   tells job {job} to {command:?}"));
                return;
            }
        }
        self.tell(|| format!("people   {act:?}"));
    }
}
