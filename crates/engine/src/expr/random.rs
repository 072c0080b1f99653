//! Deterministic pseudo-random numbers: they derive from the identity of the caller, so the same caller always gets the
//! same ones. They distinguish things and spread work; they can be computed from a run's identity, so they must never
//! protect a secret.

/// The identity of the caller, as a hash (FNV-1a, 128 bits) of all the names that lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u128);

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Separator that is no byte of a text, so that the boundaries between names count as well.
const BETWEEN: u8 = 0xff;

impl Seed {
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(OFFSET).with(text)
    }

    #[must_use]
    pub fn with(self, text: &str) -> Self {
        self.mixed(text.bytes()).mixed([BETWEEN])
    }

    #[must_use]
    pub fn nth(self, number: usize) -> Self {
        self.mixed((number as u64).to_le_bytes()).mixed([BETWEEN])
    }

    fn mixed(self, bytes: impl IntoIterator<Item = u8>) -> Self {
        Self(bytes.into_iter().fold(self.0, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME)))
    }
}

/// A sequence of pseudo-random numbers derived from a seed: two sequences of SplitMix64, one for each half of it.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    high: u64,
    low: u64,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    pub(crate) fn new(seed: Seed) -> Self {
        Self { high: (seed.0 >> 64) as u64, low: seed.0 as u64 }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.high = self.high.wrapping_add(STEP);
        self.low = self.low.wrapping_add(STEP);
        // Rotated by a few bits, so that equal halves do not cancel out.
        scrambled(self.high).rotate_left(23) ^ scrambled(self.low)
    }

    /// Returns a number below `end`, which must not be zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

fn scrambled(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_and_the_mixer_are_the_well_known_ones() {
        assert_eq!(Seed(OFFSET).mixed(*b"a").0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(scrambled(STEP), 0xe220_a839_7b1d_cdaf, "the first number of a sequence that begins at zero");
    }

    #[test]
    fn other_names_give_other_numbers_and_the_same_names_the_same() {
        let first = |seed: Seed| Rng::new(seed).next();
        assert_eq!(first(Seed::of("run").with("node")), first(Seed::of("run").with("node")));
        assert_ne!(Seed::of("ab").with("c"), Seed::of("a").with("bc"));
        let mut drawn: Vec<u64> = (0..1000).map(|number| first(Seed::of("run").nth(number))).collect();
        let mut draws = Rng::new(Seed::of("run"));
        drawn.extend((0..1000).map(|_| draws.next()));
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 2000);
    }

    #[test]
    fn a_number_stays_below_its_end_and_every_one_of_few_comes_up() {
        let mut draws = Rng::new(Seed::of("dice"));
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[draws.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
        assert_eq!(draws.below(1), 0);
    }
}
