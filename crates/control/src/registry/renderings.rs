//! Limits what large runs cost when they are shown in whole: few are rendered at once, whoever comes meanwhile waits or
//! is told to come back, and several who ask for the same share one text. Never holds a text that nobody is sent.

use std::{
    collections::HashMap,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use octoflow_model::{Revision, RunId};

/// Large runs rendered at the same time. Each takes some ten times the memory of its text meanwhile.
const MAX_AT_ONCE: usize = 2;
/// Callers that wait for their turn. Each holds one of the threads that serve requests.
const MAX_WAITING: usize = 16;
/// How long a caller waits.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Text of an object, shared by all answers that send it.
#[derive(Clone, Debug)]
pub struct SharedText(Arc<Vec<u8>>);

impl SharedText {
    pub(super) fn new(text: Vec<u8>) -> Self {
        Self(Arc::new(text))
    }
}

impl From<Vec<u8>> for SharedText {
    fn from(text: Vec<u8>) -> Self {
        Self::new(text)
    }
}

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Default)]
pub(super) struct Renderings {
    state: Mutex<State>,
    freed: Condvar,
    count: AtomicU64,
}

#[derive(Default)]
struct State {
    at_work: usize,
    waiting: usize,
    /// Texts that are being sent, by run and form.
    texts: HashMap<(RunId, String), SentText>,
}

struct SentText {
    /// Revision of the run.
    revision: Revision,
    text: Weak<Vec<u8>>,
}

/// The right to render one large run. Held until its text is written.
pub(super) struct Turn<'a>(&'a Renderings);

/// Too many wait already, or one waited too long.
#[derive(Debug)]
pub(super) struct Busy;

impl Renderings {
    /// Waits for a turn.
    pub(super) fn enter(&self) -> Result<Turn<'_>, Busy> {
        let patience = Instant::now() + MAX_WAIT;
        let mut state = self.lock();
        if state.at_work >= MAX_AT_ONCE {
            if state.waiting >= MAX_WAITING {
                return Err(Busy);
            }
            state.waiting += 1;
            while state.at_work >= MAX_AT_ONCE {
                let left = patience.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    state.waiting -= 1;
                    return Err(Busy);
                }
                state = self.freed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            state.waiting -= 1;
        }
        state.at_work += 1;
        Ok(Turn(self))
    }

    /// Returns the text of the run in this form, if somebody is being sent that of this revision.
    pub(super) fn shared(&self, run: RunId, form: &str, revision: Revision) -> Option<SharedText> {
        let state = self.lock();
        let sent = state.texts.get(&(run, form.to_owned()))?;
        if sent.revision == revision { sent.text.upgrade().map(SharedText) } else { None }
    }

    pub(super) fn share(&self, run: RunId, form: &str, revision: Revision, text: &SharedText) {
        let mut state = self.lock();
        state.texts.retain(|_, sent| sent.text.strong_count() > 0);
        state.texts.insert((run, form.to_owned()), SentText { revision, text: Arc::downgrade(&text.0) });
    }

    /// Counts the rendering of a large run with its nodes.
    pub(super) fn rendered(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.lock().at_work -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn few_are_rendered_at_once_and_others_wait_until_there_are_too_many() {
        let renderings = Renderings::default();
        let (first, second) = (renderings.enter().unwrap(), renderings.enter().unwrap());
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..MAX_WAITING).map(|_| scope.spawn(|| renderings.enter().map(drop))).collect();
            while renderings.lock().waiting < MAX_WAITING {
                thread::yield_now();
            }
            assert!(renderings.enter().is_err(), "one too many");
            drop((first, second));
            for one in waiting {
                assert!(one.join().unwrap().is_ok());
            }
        });
        let state = renderings.lock();
        assert_eq!((state.at_work, state.waiting), (0, 0));
    }

    #[test]
    fn a_text_is_shared_while_it_is_sent_and_only_in_its_form_and_revision() {
        let renderings = Renderings::default();
        let text = SharedText::new(b"text".to_vec());
        renderings.share(RunId(1), "whole", Revision(7), &text);
        let found = |run, form, revision| renderings.shared(RunId(run), form, Revision(revision)).is_some();
        assert!(found(1, "whole", 7) && !found(1, "whole", 8) && !found(1, "table", 7) && !found(2, "whole", 7));
        drop(text);
        assert!(!found(1, "whole", 7));
        renderings.share(RunId(2), "whole", Revision(8), &SharedText::new(Vec::new()));
        assert_eq!(renderings.lock().texts.len(), 1, "what nobody is sent is forgotten");
    }
}
