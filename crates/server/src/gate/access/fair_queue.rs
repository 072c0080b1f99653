//! A fair queue for the slow password hash. One is computed at a time, and parties take turns (round robin), so a
//! client with a thousand guesses delays another by one. It knows nothing about passwords.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::gate::addresses::network;

/// Maximum queue length of one party; more are asked to retry.
const MAX_WAITING: usize = 32;

/// Maximum number of waiting parties.
const MAX_PARTIES: usize = 1024;

/// Unit of fairness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// IPv4 address, or IPv6 network.
    Network(IpAddr),
    /// User of this machine, over loopback or the unix socket.
    User(u32),
}

impl Party {
    pub(super) fn of(address: IpAddr) -> Self {
        Self::Network(network(address))
    }
}

#[derive(Clone, Default)]
pub(super) struct FairQueue(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    busy: bool,
    /// Round robin order; each waiting party is in it once.
    order: VecDeque<Party>,
    waiting: HashMap<Party, VecDeque<oneshot::Sender<Slot>>>,
}

/// A turn, held until it is dropped.
pub(super) struct Slot(Option<FairQueue>);

/// The queue is full.
#[derive(Debug)]
pub(super) struct Full;

impl FairQueue {
    /// Takes the turn if it is free.
    pub(super) fn take(&self) -> Option<Slot> {
        let mut state = self.lock();
        if state.busy {
            return None;
        }
        state.busy = true;
        Some(Slot(Some(self.clone())))
    }

    /// Waits for a turn.
    pub(super) async fn wait(&self, party: Party) -> Result<Slot, Full> {
        let told = {
            let mut state = self.lock();
            if !state.busy {
                state.busy = true;
                return Ok(Slot(Some(self.clone())));
            }
            let known = state.waiting.contains_key(&party);
            if !known && state.waiting.len() >= MAX_PARTIES {
                return Err(Full);
            }
            let (tell, told) = oneshot::channel();
            let queue = state.waiting.entry(party).or_default();
            // Cancelled waiters make room.
            queue.retain(|waiting| !waiting.is_closed());
            if queue.len() >= MAX_WAITING {
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

    /// Hands the turn to the next waiter.
    fn pass_on(&self) {
        loop {
            let next = self.lock().next();
            let Some(next) = next else { return };
            match next.send(Slot(Some(self.clone()))) {
                Ok(()) => return,
                // The waiter was cancelled; try the next one.
                Err(mut slot) => slot.0 = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
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

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GUESSER: Party = Party::User(1);
    const OTHER: Party = Party::User(2);

    /// Waits in the background and reports the order in which turns came.
    async fn waiter(queue: &FairQueue, party: Party, heard: &tokio::sync::mpsc::UnboundedSender<Party>) {
        let (queue, heard) = (queue.clone(), heard.clone());
        let before = queue.lock().waiting.get(&party).map_or(0, VecDeque::len);
        let seen = queue.clone();
        tokio::spawn(async move {
            let slot = queue.wait(party).await;
            let _ = heard.send(party);
            drop(slot);
        });
        while seen.lock().waiting.get(&party).map_or(0, VecDeque::len) == before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn somebody_else_waits_for_one_turn_however_many_guess() {
        let queue = FairQueue::default();
        let (heard, mut order) = tokio::sync::mpsc::unbounded_channel();
        let first = queue.wait(GUESSER).await.unwrap();
        for _ in 0..MAX_WAITING {
            waiter(&queue, GUESSER, &heard).await;
        }
        assert!(queue.wait(GUESSER).await.is_err(), "more are asked to come again");
        waiter(&queue, OTHER, &heard).await;
        drop(first);
        assert_eq!(order.recv().await, Some(GUESSER));
        assert_eq!(order.recv().await, Some(OTHER));
        for _ in 1..MAX_WAITING {
            assert_eq!(order.recv().await, Some(GUESSER));
        }
        // Everybody had a turn, and the next one gets it at once.
        assert!(queue.wait(GUESSER).await.is_ok());
        assert!(queue.lock().waiting.is_empty() && queue.lock().order.is_empty());
    }

    #[tokio::test]
    async fn a_turn_is_not_lost_with_those_who_gave_up() {
        let queue = FairQueue::default();
        let first = queue.wait(GUESSER).await.unwrap();
        for _ in 0..3 * MAX_WAITING {
            let gave_up = tokio::time::timeout(Duration::from_millis(1), queue.wait(GUESSER)).await;
            assert!(gave_up.is_err(), "those who gave up do not count");
        }
        drop(first);
        let slot = tokio::time::timeout(Duration::from_secs(10), queue.wait(OTHER)).await.unwrap();
        assert!(slot.is_ok());
    }
}
