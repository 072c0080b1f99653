//! Checking the password that the admin chose, which is slow on purpose. One is computed at a time, callers take turns, and
//! a guess that was wrong is known the second time. So guessing neither locks the right password out nor takes the machine.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use octoflow_control::access::Password;
use tokio::{sync::Semaphore, time::sleep};

use super::{
    Client, owner, password,
    secret::{Hash, digest},
    turns::{Party, Turns},
};
use crate::fault::Fault;

/// So many wrong guesses are remembered.
const REMEMBERED: usize = 4096;

pub(super) struct Verifier {
    turns: Turns,
    wrong: Mutex<Wrong>,
    /// The kernel's list of connections is read by few at a time.
    lists: Semaphore,
}

/// What was found not to fit one password.
#[derive(Default)]
struct Wrong {
    password: Vec<u8>,
    guesses: HashSet<Hash>,
    order: VecDeque<Hash>,
}

impl Verifier {
    pub(super) fn new() -> Self {
        Self { turns: Turns::default(), wrong: Mutex::default(), lists: Semaphore::new(2) }
    }

    /// Whether the text is this password.
    pub(super) async fn fits(&self, password: &Arc<Password>, text: &str, client: Client) -> Result<bool, Fault> {
        let guess = digest(text.as_bytes());
        if self.wrong().has(password, &guess) {
            return Ok(false);
        }
        let turn = match self.turns.take() {
            Some(turn) => turn,
            None => self.turns.wait(self.party(client).await).await.map_err(|_| {
                Fault::too_many("too many passwords of yours wait to be checked; try again in a moment", 2)
            })?,
        };
        let (tried, against) = (text.to_owned(), password.clone());
        // On its own: whoever hangs up while it is computed does not hand the turn to the next guess.
        let checked = tokio::spawn(async move {
            let began = Instant::now();
            let fits = tokio::task::spawn_blocking(move || password::fits(&against, &tried)).await;
            if matches!(fits, Ok(false)) {
                // As long as it took, so that guessing costs half of one core at most.
                let rest = began.elapsed();
                tokio::spawn(async move {
                    sleep(rest).await;
                    drop(turn);
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

    /// Who waits: neighbours on this machine are told apart by their users.
    async fn party(&self, client: Client) -> Party {
        let Some(ends) = client.ends.filter(|ends| ends.peer.ip().to_canonical().is_loopback()) else {
            return client.party();
        };
        let _turn = self.lists.acquire().await;
        let user = tokio::task::spawn_blocking(move || owner::of(ends)).await;
        user.ok().flatten().map_or_else(|| client.party(), Party::User)
    }

    fn wrong(&self) -> std::sync::MutexGuard<'_, Wrong> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wrong {
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
        if self.order.len() > REMEMBERED
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
        let mut wrong = Wrong::default();
        let guess = |number: usize| digest(number.to_string().as_bytes());
        for number in 0..=REMEMBERED {
            wrong.add(&first, guess(number));
        }
        assert!(!wrong.has(&first, &guess(0)) && wrong.has(&first, &guess(REMEMBERED)));
        assert_eq!(wrong.guesses.len(), REMEMBERED);
        assert!(!wrong.has(&second, &guess(REMEMBERED)), "it may be right once the password was changed");
        wrong.add(&second, guess(7));
        assert!(!wrong.has(&first, &guess(REMEMBERED)) && wrong.has(&second, &guess(7)));
    }
}
