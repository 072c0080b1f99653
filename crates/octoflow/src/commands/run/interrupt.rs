//! State machine for Ctrl-C, SIGTERM and the time limit, without IO. The first signal stops cleanly, the second
//! terminates, a third one gives up waiting.

use crate::config::system::Signal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Stop all runs; their exit handlers run.
    Stop,
    /// Terminate all runs at once.
    Terminate,
    /// Exit now, whatever is still running.
    Leave,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interrupts {
    seen: u8,
    leaving: bool,
}

impl Interrupts {
    pub(crate) fn signal(&mut self, signal: Signal) -> (Step, &'static str) {
        match signal {
            Signal::Interrupt => {
                self.seen = self.seen.saturating_add(1);
                match self.seen {
                    1 => (Step::Stop, "stopping; exit handlers still run (press Ctrl-C again to kill)"),
                    2 => (Step::Terminate, "killing everything (press Ctrl-C again to leave without waiting)"),
                    _ => {
                        self.leaving = true;
                        (Step::Leave, "leaving without waiting")
                    }
                }
            }
            Signal::Terminate => {
                self.leaving = true;
                (Step::Leave, "asked to go; tasks that are under way keep running")
            }
        }
    }

    pub(crate) fn any(&self) -> bool {
        self.seen > 0 || self.leaving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ctrl_c_asks_harder() {
        let mut interrupts = Interrupts::default();
        assert!(!interrupts.any());
        let steps: Vec<Step> = (0..4).map(|_| interrupts.signal(Signal::Interrupt).0).collect();
        assert_eq!(steps, [Step::Stop, Step::Terminate, Step::Leave, Step::Leave]);
        assert!(interrupts.any());
    }

    #[test]
    fn being_asked_to_go_leaves_the_work_to_be_restored() {
        assert_eq!(Interrupts::default().signal(Signal::Terminate).0, Step::Leave);
    }
}
