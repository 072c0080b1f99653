//! Turns at the slow hash of passwords. One is computed at a time, and everybody who waits has the same right: parties take
//! turns, so whoever sends a thousand guesses delays a neighbour by one. It decides nothing about passwords.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::addresses::network;

/// So many of one party wait; more are asked to come again.
const WAITING: usize = 32;

/// More parties than this do not wait at one time.
const PARTIES: usize = 1024;

/// Whoever is told apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// An address, or a network of IPv6.
    Network(IpAddr),
    /// A user of this machine, over loopback or the unix socket.
    User(u32),
}

impl Party {
    pub(super) fn of(address: IpAddr) -> Self {
        Self::Network(network(address))
    }
}

#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    busy: bool,
    /// Whose turn it is next; each party that waits stands here once.
    order: VecDeque<Party>,
    waiting: HashMap<Party, VecDeque<oneshot::Sender<Turn>>>,
}

/// Somebody's turn, until it is dropped.
pub(super) struct Turn(Option<Turns>);

/// Too many wait already.
#[derive(Debug)]
pub(super) struct Full;

impl Turns {
    /// A turn, if nobody has it or waits for it.
    pub(super) fn take(&self) -> Option<Turn> {
        let mut state = self.lock();
        if state.busy {
            return None;
        }
        state.busy = true;
        Some(Turn(Some(self.clone())))
    }

    /// Waits for a turn.
    pub(super) async fn wait(&self, party: Party) -> Result<Turn, Full> {
        let told = {
            let mut state = self.lock();
            if !state.busy {
                state.busy = true;
                return Ok(Turn(Some(self.clone())));
            }
            let known = state.waiting.contains_key(&party);
            if !known && state.waiting.len() >= PARTIES {
                return Err(Full);
            }
            let (tell, told) = oneshot::channel();
            let queue = state.waiting.entry(party).or_default();
            // Those who gave up make room.
            queue.retain(|waiting| !waiting.is_closed());
            if queue.len() >= WAITING {
                return Err(Full);
            }
            queue.push_back(tell);
            if !known {
                state.order.push_back(party);
            }
            told
        };
        told.await.map_err(|_| Full)
    }

    /// Gives the turn to the next who still waits.
    fn pass_on(&self) {
        loop {
            let next = self.lock().next();
            let Some(next) = next else { return };
            match next.send(Turn(Some(self.clone()))) {
                Ok(()) => return,
                // It gave up; the turn is still ours to give.
                Err(mut turn) => turn.0 = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(party) = self.order.pop_front() {
            let Some(queue) = self.waiting.get_mut(&party) else { continue };
            let first = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&party);
            } else {
                self.order.push_back(party);
            }
            if first.is_some() {
                return first;
            }
        }
        self.busy = false;
        None
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GUESSER: Party = Party::User(1);
    const OTHER: Party = Party::User(2);

    /// Waits in the background, and says so in the order in which turns came.
    async fn waiter(turns: &Turns, party: Party, heard: &tokio::sync::mpsc::UnboundedSender<Party>) {
        let (turns, heard) = (turns.clone(), heard.clone());
        let before = turns.lock().waiting.get(&party).map_or(0, VecDeque::len);
        let seen = turns.clone();
        tokio::spawn(async move {
            let turn = turns.wait(party).await;
            let _ = heard.send(party);
            drop(turn);
        });
        while seen.lock().waiting.get(&party).map_or(0, VecDeque::len) == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn somebody_else_waits_for_one_turn_however_many_guess() {
        let turns = Turns::default();
        let (heard, mut order) = tokio::sync::mpsc::unbounded_channel();
        let first = turns.wait(GUESSER).await.unwrap();
        for _ in 0..WAITING {
            waiter(&turns, GUESSER, &heard).await;
        }
        assert!(turns.wait(GUESSER).await.is_err(), "more are asked to come again");
        waiter(&turns, OTHER, &heard).await;
        drop(first);
        assert_eq!(order.recv().await, Some(GUESSER));
        assert_eq!(order.recv().await, Some(OTHER));
        for _ in 1..WAITING {
            assert_eq!(order.recv().await, Some(GUESSER));
        }
        // Everybody had a turn, and the next one has it at once.
        assert!(turns.wait(GUESSER).await.is_ok());
        assert!(turns.lock().waiting.is_empty() && turns.lock().order.is_empty());
    }

    #[tokio::test]
    async fn a_turn_is_not_lost_with_those_who_gave_up() {
        let turns = Turns::default();
        let first = turns.wait(GUESSER).await.unwrap();
        for _ in 0..3 * WAITING {
            let gave_up = tokio::time::timeout(Duration::from_millis(1), turns.wait(GUESSER)).await;
            assert!(gave_up.is_err(), "those who gave up do not count");
        }
        drop(first);
        let turn = tokio::time::timeout(Duration::from_secs(10), turns.wait(OTHER)).await.unwrap();
        assert!(turn.is_ok());
    }
}
