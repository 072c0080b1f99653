//! A broken guarantee: which one, what was seen, and how to see it again.

use std::fmt;

use super::world::Crashes;

/// What the controller promises, by the names the design gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// G1: what was acknowledged is never lost.
    Acknowledged,
    /// Nothing acts on a decision that a crash could forget.
    Durable,
    /// G2: every unfinished node has an owner or a wake-up, and the run never stalls.
    Owned,
    /// G3: a terminal result, once visible, never changes.
    Terminal,
    /// G4: an attempt starts at most once and never after its end.
    Fenced,
    /// G5: slots equal live tasks, and limits are never exceeded.
    Limits,
    /// Whoever watches a run gets every durable fact of it, once and in order.
    Watched,
    /// G7: the fold of the journal is the live state.
    Fold,
    /// Whoever ends a run ends those that belong to it, and no crash comes between.
    Together,
    /// Looking again decides nothing again.
    Twice,
    /// With the same answers of the tasks the same tree comes out, crashes or not.
    SameTree,
    /// Nothing is left running when everything is over.
    NothingLeft,
    /// A life hook hears of every state of every run, once and in order.
    Told,
    /// The world itself is wrong: its manifest was not admitted.
    Admitted,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acknowledged => "G1: what was acknowledged is never lost",
            Self::Durable => "nothing acts on a decision that is not durable",
            Self::Owned => "G2: every unfinished node has an owner or a wake-up",
            Self::Terminal => "G3: a terminal result never changes",
            Self::Fenced => "G4: an attempt starts at most once and never after its end",
            Self::Limits => "G5: slots equal live tasks and limits are never exceeded",
            Self::Watched => "watches get every durable fact once and in order",
            Self::Fold => "G7: the fold of the journal is the live state",
            Self::Together => "those that belong to a run end with it",
            Self::Twice => "looking twice decides nothing twice",
            Self::SameTree => "the same answers give the same tree",
            Self::NothingLeft => "nothing is left running",
            Self::Told => "a life hook hears of every state once and in order",
            Self::Admitted => "the world's own manifest is admitted",
        })
    }
}

/// A guarantee broken in the world of a seed.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub crashes: Crashes,
    pub guarantee: Guarantee,
    pub what: String,
    /// What had happened until then, when it was asked for.
    pub story: Vec<String>,
}

impl Failure {
    /// The command that shows it again.
    pub fn replay(&self) -> String {
        format!("cargo xtask sim {}{} -v", self.seed, self.crashes.argument())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.story {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {} broke {}", self.seed, self.guarantee)?;
        writeln!(f, "    {}", self.what)?;
        write!(f, "    see it again: {}", self.replay())
    }
}

/// Ends a check with the guarantee it broke; the driver knows the seed and the story.
pub(super) type Broken = (Guarantee, String);

pub(super) fn broken<T>(guarantee: Guarantee, what: impl Into<String>) -> Result<T, Broken> {
    Err((guarantee, what.into()))
}
