//! Numbers that look random and are not: everything drawn follows from the seed.
//! It knows nothing of what the numbers are used for.

/// A stream of numbers. Two streams of one seed with different labels are unrelated.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64, label: &str) -> Self {
        Self(mix(seed ^ fold(label)))
    }

    /// The number a text stands for in the world of this seed.
    pub fn of(seed: u64, label: &str, text: &str) -> Self {
        Self(mix(mix(seed ^ fold(label)) ^ fold(text)))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// From zero to one less than `count`, which must not be zero.
    pub fn below(&mut self, count: u64) -> u64 {
        self.number() % count
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len() as u64) as usize]
    }
}

fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

fn fold(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_stream_and_labels_part_it() {
        let numbers = |label: &str| {
            let mut draw = Draw::new(7, label);
            [draw.number(), draw.number(), draw.number()]
        };
        assert_eq!(numbers("a"), numbers("a"));
        assert_ne!(numbers("a"), numbers("b"));
    }

    #[test]
    fn chances_are_about_what_they_say() {
        let mut draw = Draw::new(1, "chance");
        let hits = (0..10_000).filter(|_| draw.chance(30)).count();
        assert!((2_700..3_300).contains(&hits), "{hits} of 10000 at 30 percent");
    }
}
