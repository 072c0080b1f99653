//! Verification of the admin's chosen password, which is slow on purpose. One is computed at a time, callers take
//! turns, and wrong guesses are cached. So guessing neither locks out the right password nor exhausts the CPU.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use octoflow_control::access::Password;
use tokio::{sync::Semaphore, time::sleep};

use super::{
    Client,
    fair_queue::{FairQueue, Party},
    owner, password,
    secret::{Hash, digest},
};
use crate::answer::fault::Fault;

/// Maximum number of cached wrong guesses.
const MAX_WRONG_GUESSES: usize = 4096;

pub(super) struct Verifier {
    queue: FairQueue,
    wrong: Mutex<WrongGuesses>,
    /// Limits concurrent reads of the kernel's list of connections.
    lists: Semaphore,
}

/// WrongGuesses guesses for one password.
#[derive(Default)]
struct WrongGuesses {
    password: Vec<u8>,
    guesses: HashSet<Hash>,
    order: VecDeque<Hash>,
}

impl Verifier {
    pub(super) fn new() -> Self {
        Self { queue: FairQueue::default(), wrong: Mutex::default(), lists: Semaphore::new(2) }
    }

    /// Checks a text against the password.
    pub(super) async fn fits(&self, password: &Arc<Password>, text: &str, client: Client) -> Result<bool, Fault> {
        let guess = digest(text.as_bytes());
        if self.wrong().has(password, &guess) {
            return Ok(false);
        }
        let slot = match self.queue.take() {
            Some(slot) => slot,
            None => self.queue.wait(self.party(client).await).await.map_err(|_| {
                Fault::too_many("too many passwords of yours wait to be checked; try again in a moment", 2)
            })?,
        };
        let (tried, against) = (text.to_owned(), password.clone());
        // Spawned: a caller that disconnects during the computation does not free the turn for its next guess.
        let checked = tokio::spawn(async move {
            let began = Instant::now();
            let fits = tokio::task::spawn_blocking(move || password::fits(&against, &tried)).await;
            if matches!(fits, Ok(false)) {
                // Held for as long again, so that guessing costs half of one core at most.
                let rest = began.elapsed();
                tokio::spawn(async move {
                    sleep(rest).await;
                    drop(slot);
                });
            }
            fits
        });
        let fits = checked.await.and_then(|fits| fits);
        let fits = fits.map_err(|error| Fault::internal(format!("a password could not be checked: {error}")))?;
        if !fits {
            self.wrong().add(password, guess);
        }
        Ok(fits)
    }

    /// Returns the waiting party. Local clients are told apart by their users.
    async fn party(&self, client: Client) -> Party {
        let Some(ends) = client.ends.filter(|ends| ends.peer.ip().to_canonical().is_loopback()) else {
            return client.party();
        };
        let _turn = self.lists.acquire().await;
        let user = tokio::task::spawn_blocking(move || owner::of(ends)).await;
        user.ok().flatten().map_or_else(|| client.party(), Party::User)
    }

    fn wrong(&self) -> std::sync::MutexGuard<'_, WrongGuesses> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WrongGuesses {
    fn has(&self, password: &Password, guess: &Hash) -> bool {
        self.password == password.hash && self.guesses.contains(guess)
    }

    fn add(&mut self, password: &Password, guess: Hash) {
        if self.password != password.hash {
            *self = Self { password: password.hash.clone(), ..Self::default() };
        }
        if self.guesses.insert(guess) {
            self.order.push_back(guess);
        }
        if self.order.len() > MAX_WRONG_GUESSES
            && let Some(oldest) = self.order.pop_front()
        {
            self.guesses.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_guesses_are_remembered_for_one_password_and_not_for_ever() {
        let password = |hash: u8| Password {
            who: "admin".to_owned(),
            salt: Vec::new(),
            rounds: 1,
            hash: vec![hash],
            changed: octoflow_control::now(),
        };
        let (first, second) = (password(1), password(2));
        let mut wrong = WrongGuesses::default();
        let guess = |number: usize| digest(number.to_string().as_bytes());
        for number in 0..=MAX_WRONG_GUESSES {
            wrong.add(&first, guess(number));
        }
        assert!(!wrong.has(&first, &guess(0)) && wrong.has(&first, &guess(MAX_WRONG_GUESSES)));
        assert_eq!(wrong.guesses.len(), MAX_WRONG_GUESSES);
        assert!(!wrong.has(&second, &guess(MAX_WRONG_GUESSES)), "it may be right once the password was changed");
        wrong.add(&second, guess(7));
        assert!(!wrong.has(&first, &guess(MAX_WRONG_GUESSES)) && wrong.has(&second, &guess(7)));
    }
}
