//! Runs that others order, while the story goes on: requests go to the worker that makes them, templates change, and people tell
//! what was ordered what to do, end it and delete it.

use octoflow_engine::{Command, argo, jobflow, submission, volcano};
use octoflow_model::{AttemptId, Order, RunId, Time};

use super::{Sim, no_disk, over};
use crate::sim::{
    calendar::{Event, ticks},
    failure::Broken,
    flow::FlowAct,
    world::{PARENTS, WALKS},
};

impl Sim<'_> {
    /// Reports whether the attempt is a request of a flow, of a workflow or of a submitted job.
    pub(super) fn is_request(&self, id: AttemptId) -> bool {
        let Some(run) = self.disk.seen(id.run) else { return false };
        let of_workflow = run.of::<argo::Run>().is_some() && over(run, id.task).is_some() && run.is_request(id.task);
        of_workflow || run.of::<jobflow::Run>().is_some() || run.of::<submission::Run>().is_some()
    }

    /// Has the loop let go of a run, so that it can be deleted.
    pub(super) fn delete(&mut self, id: RunId) {
        let asked = self.leaving.iter().any(|(run, _)| *run == id) || !self.disk.runs().contains(&id);
        let Some(seen) = self.disk.seen(id).filter(|_| !asked) else { return };
        let Some(life) = self.life.as_mut().filter(|life| !life.event_loop.is_out()) else {
            self.calendar.put(self.up_at.max(self.now).saturating_add(ticks(20)), Event::Delete(id));
            return;
        };
        let head = seen.head();
        let leaving = life.event_loop.forget(id, seen.kind().key, &head.namespace, &head.name);
        life.leaving.insert(id);
        self.leaving.push((id, leaving));
        self.disk.leave(id);
        self.tell(|| format!("person   deletes run {id}"));
    }

    /// Whoever has something deleted when the controller crashes asks again until it is.
    pub(super) fn ask_again_for_deletions(&mut self) {
        for (run, _) in std::mem::take(&mut self.leaving) {
            self.calendar.put(self.now, Event::Delete(run));
        }
    }

    /// Deletes what the loop has let go of.
    pub(super) fn finish_deletions(&mut self) -> Result<(), Broken> {
        let mut answers = Vec::new();
        self.leaving.retain_mut(|(id, leaving)| match leaving.poll() {
            Some(answer) => {
                answers.push((*id, answer));
                false
            }
            None => true,
        });
        for (id, answer) in answers {
            match answer {
                Ok(batch) if self.life.as_ref().is_some_and(|life| !life.event_loop.is_out()) => {
                    self.virtual_disk.write(&batch).or_else(no_disk)?;
                    self.disk.delete(id);
                    self.maker.note_deletion(id);
                    self.tell(|| format!("disk     run {id} is deleted"));
                }
                // Whoever has something deleted asks again until it is.
                Ok(_) | Err(_) => self.calendar.put(self.now.saturating_add(ticks(20)), Event::Delete(id)),
            }
        }
        Ok(())
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
            FlowAct::DeleteChild { which, patience } => {
                let ordered = self.disk.ordered_runs();
                let Some(run) = (!ordered.is_empty()).then(|| ordered[(which % ordered.len() as u64) as usize]) else {
                    return;
                };
                // One that is over refuses.
                drop(life.event_loop.command(run, Command::Terminate));
                self.calendar.put(self.now.saturating_add(ticks(*patience)), Event::Delete(run));
                self.tell(|| format!("person   ends run {run}, to delete it"));
                return;
            }
            FlowAct::TellJob { which, command } => {
                let is_child = |run: &&RunId| {
                    let seen = self.disk.seen(**run).filter(|run| run.head().ordered_by.is_some());
                    seen.is_some_and(|run| (PARENTS..WALKS).contains(&world.seed) || run.of::<volcano::Run>().is_some())
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
