//! What people ask of the controller, how they take its answers, and the facts of the runs they watch.

use octoflow_control::{Acceptance, Claim, Error};
use octoflow_engine::Program;
use octoflow_model::RunId;

use super::{Ask, Sim};
use crate::sim::{
    calendar::{Event, ticks},
    cluster,
    draw::Draw,
    failure::{Broken, Guarantee, broken},
    world::{UserRequest, World},
};

impl Sim<'_> {
    pub(super) fn act(&mut self, at: usize) {
        let world = self.world;
        let act = &world.acts[at];
        let Some(life) = &mut self.life else {
            self.calendar.put(self.up_at.saturating_add(ticks(1)), Event::Act(at));
            return;
        };
        if let (Some(cluster), UserRequest::Submit(submission)) = (&self.cluster, &act.request)
            && !cluster.takes(cluster::queue_of(submission))
        {
            // A queue that is closed or deleted takes nothing: whoever was refused tries again later.
            self.calendar.put(self.now.saturating_add(ticks(50)), Event::Act(at));
            return;
        }
        let ticket = match &act.request {
            UserRequest::Submit(submission) => {
                // Half of those who submit have compiled the manifest themselves, as the controller does; the other half
                // not.
                let ready = act.run.0.is_multiple_of(2);
                let program = ready.then(|| Program::compile(&submission.manifest, &submission.stored).ok());
                let watcher = Some(life.fact_watches.begin(act.run));
                let acceptance = Acceptance { claim: key(world, act.run), replaces: None, watcher };
                life.event_loop.submit(act.run, submission.clone(), program.flatten(), acceptance)
            }
            UserRequest::Command(command) => life.event_loop.command(act.run, command.clone()),
        };
        life.tickets.push((at, ticket));
        self.asks[at] = Ask::Asked { again: self.asks[at] == Ask::PlannedAgain };
        self.tell(|| match &act.request {
            UserRequest::Submit(submission) => format!("person   submits {} as run {}", submission.name, act.run),
            UserRequest::Command(command) => format!("person   tells run {} to {command:?}", act.run),
        });
    }

    /// People read the answers that have come.
    pub(super) fn read_answers(&mut self) -> Result<(), Broken> {
        self.maker.read_answers(self.now, &mut self.calendar)?;
        self.finish_deletions()?;
        let Some(life) = &mut self.life else { return Ok(()) };
        let mut answers = Vec::new();
        life.tickets.retain_mut(|(at, ticket)| match ticket.poll() {
            Some(answer) => {
                answers.push((*at, answer));
                false
            }
            None => true,
        });
        for (at, answer) in answers {
            self.tell(|| format!("answer   to act {at}: {answer:?}"));
            let again = self.asks[at] == Ask::Asked { again: true };
            let submits = matches!(self.world.acts[at].request, UserRequest::Submit(_));
            if submits && let Some(life) = &mut self.life {
                match answer {
                    Ok(()) => life.fact_watches.accepted(self.world.acts[at].run),
                    Err(_) => life.fact_watches.refused(self.world.acts[at].run),
                }
            }
            self.asks[at] = match answer {
                Ok(()) => Ask::Acknowledged,
                // What was asked for before was done. Whoever gave a key is told which run that is.
                Err(Error::Made { run }) if submits && again && run == self.world.acts[at].run => Ask::Acknowledged,
                Err(Error::NameTaken { .. })
                    if submits && again && key(self.world, self.world.acts[at].run).is_none() =>
                {
                    Ask::Acknowledged
                }
                Err(error) if error.is_outage() => {
                    let patience = ticks(self.weather.below(50) + 1);
                    self.calendar.put(self.now.saturating_add(patience), Event::Act(at));
                    Ask::PlannedAgain
                }
                Err(error) if submits => {
                    return broken(Guarantee::Acknowledged, format!("an admitted manifest was refused: {error}"));
                }
                Err(Error::Refused(_)) => Ask::Refused,
                Err(error) => return broken(Guarantee::Owned, format!("a command came to nothing: {error}")),
            };
        }
        Ok(())
    }

    /// Watches have everything that is durable. To be called while no commit waits to be settled.
    pub(super) fn check_watches(&mut self) -> Result<(), Broken> {
        // What a failed write has left on the disk is delivered once the store is open again.
        let Some(life) = self.life.as_mut().filter(|life| !life.event_loop.is_out()) else { return Ok(()) };
        life.fact_watches.check(&self.disk)
    }

    /// Every run is over, and with it every watch.
    pub(super) fn check_watches_closed(&mut self) -> Result<(), Broken> {
        self.check_watches()?;
        let Some(life) = &self.life else { return Ok(()) };
        life.fact_watches.check_closed()
    }
}

/// The idempotency key of whoever submits a run: half of them have one.
fn key(world: &World, run: RunId) -> Option<Claim> {
    let keyed = Draw::new(world.seed ^ run.0, "claim").chance(50);
    let fingerprint = || run.0.to_le_bytes().to_vec();
    keyed.then(|| Claim { scope: "people".to_owned(), key: run.to_string(), fingerprint: fingerprint() })
}
