//! What people learn: the answers to what they asked for, and the facts of the runs they watch.

use octoflow_control::{Claim, Error};
use octoflow_model::RunId;

use super::{Ask, Sim};
use crate::sim::{
    calendar::{Event, ticks},
    draw::Draw,
    failure::{Broken, Guarantee, broken},
    world::{UserRequest, World},
};

impl Sim<'_> {
    /// People read the answers that have come.
    pub(super) fn read_answers(&mut self) -> Result<(), Broken> {
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
        let Some(life) = &mut self.life else { return Ok(()) };
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
pub(super) fn key(world: &World, run: RunId) -> Option<Claim> {
    let keyed = Draw::new(world.seed ^ run.0, "claim").chance(50);
    let fingerprint = || run.0.to_le_bytes().to_vec();
    keyed.then(|| Claim { scope: "people".to_owned(), key: run.to_string(), fingerprint: fingerprint() })
}
