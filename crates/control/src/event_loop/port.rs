//! The ports of the event loop: where it reads what is stored, which time it is, and who carries out orders once they are
//! durable. Production puts a database, the system's clocks and a runtime behind them, a virtual loop puts memory there.

use std::time::Instant;

use octoflow_model::{Order, Time};
use octoflow_store::{Error as StoreError, Load, Reader, Store};

use crate::{clock, hooks::HookSignal, maintenance::sweep::LocatedDeletion};

/// Reads what is durable. Writing is an effect, so it is not here.
pub(crate) trait Storage: Send {
    fn reader(&self) -> Result<Reader, StoreError>;

    /// The foreground requests that are waiting for answers, or were a moment ago.
    fn load(&self) -> Load;
}

impl Storage for Store {
    fn reader(&self) -> Result<Reader, StoreError> {
        Self::reader(self)
    }

    fn load(&self) -> Load {
        self.foreground().load(Instant::now())
    }
}

/// Tells the time. In virtual time it stands still during a step.
pub(crate) trait Clock: Send {
    /// The engine's time, which never goes back.
    fn now(&self) -> Time;

    /// How many microseconds the wall clock, which runtimes go by, is ahead of the engine's time.
    fn skew(&self) -> i64;
}

/// The clocks of this machine.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        clock::steady()
    }

    fn skew(&self) -> i64 {
        clock::skew()
    }
}

/// Receives what follows a commit. Called on the thread that commits, so it must neither wait nor fail.
pub(crate) trait Outlet: Send + Sync {
    fn send(&self, orders: Vec<Order>);
    fn sweep(&self, deletion: LocatedDeletion);
    /// Tells whoever delivers events to life hooks.
    fn hooks(&self, signal: HookSignal);
}
