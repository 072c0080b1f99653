//! Sets of completion indexes, kept as sorted ranges: a job may have very many indexes, and most of them lie side by side.

use std::fmt;

/// A set of completion indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Returns the set of all indexes from `first` up to but not including `end`.
    pub fn between(first: u32, end: u32) -> Self {
        Self(if first < end { vec![(first, end - 1)] } else { Vec::new() })
    }

    /// Parses `0,3-5`. On error returns a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut set = Self::default();
        let mut least = 0u32;
        for (at, part) in text.split(',').enumerate() {
            let number = |digits: &str| {
                let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse::<u32>().ok().filter(|_| plain).ok_or_else(|| format!("`{digits}` is not an index"))
            };
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if last < first {
                return Err(format!("`{part}` ends before it begins"));
            }
            if at > 0 && first < least {
                return Err(format!("`{part}` does not come after the indexes before it"));
            }
            least = last.checked_add(1).ok_or_else(|| format!("`{part}` is too large"))?;
            match set.0.last_mut().filter(|before| before.1 + 1 == first) {
                Some(before) => before.1 = last,
                None => set.0.push((first, last)),
            }
        }
        Ok(set)
    }

    /// Returns the ranges, both ends included, in order.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Returns the largest index.
    pub fn last(&self) -> Option<u32> {
        self.0.last().map(|range| range.1)
    }

    pub fn contains(&self, index: u32) -> bool {
        let at = self.0.partition_point(|range| range.1 < index);
        self.0.get(at).is_some_and(|range| range.0 <= index)
    }

    /// Counts the indexes that another set has, too.
    pub fn shared_with(&self, other: &Self) -> u32 {
        let (mut mine, mut theirs, mut count) = (0, 0, 0);
        while let (Some(one), Some(two)) = (self.0.get(mine), other.0.get(theirs)) {
            let (first, last) = (one.0.max(two.0), one.1.min(two.1));
            if first <= last {
                count += last - first + 1;
            }
            if one.1 < two.1 { mine += 1 } else { theirs += 1 }
        }
        count
    }

    /// Returns the first indexes, at most so many, as ranges.
    pub fn first(&self, most: u32) -> Vec<(u32, u32)> {
        let mut left = most;
        let mut found = Vec::new();
        for (first, last) in self.0.iter().copied() {
            if left == 0 {
                break;
            }
            let count = (last - first + 1).min(left);
            found.push((first, first + count - 1));
            left -= count;
        }
        found
    }

    pub fn insert(&mut self, index: u32) {
        let at = self.0.partition_point(|range| range.1 < index);
        if self.0.get(at).is_some_and(|range| range.0 <= index) {
            return;
        }
        let joins_before = at > 0 && self.0[at - 1].1 + 1 == index;
        let joins_after = self.0.get(at).is_some_and(|range| range.0 == index + 1);
        match (joins_before, joins_after) {
            (true, true) => {
                self.0[at - 1].1 = self.0[at].1;
                self.0.remove(at);
            }
            (true, false) => self.0[at - 1].1 = index,
            (false, true) => self.0[at].0 = index,
            (false, false) => self.0.insert(at, (index, index)),
        }
    }

    pub fn remove(&mut self, index: u32) {
        let at = self.0.partition_point(|range| range.1 < index);
        let Some((first, last)) = self.0.get(at).copied().filter(|range| range.0 <= index) else { return };
        match (first == index, last == index) {
            (true, true) => drop(self.0.remove(at)),
            (true, false) => self.0[at].0 = index + 1,
            (false, true) => self.0[at].1 = index - 1,
            (false, false) => {
                self.0[at].1 = index - 1;
                self.0.insert(at + 1, (index + 1, last));
            }
        }
    }

    /// Removes a whole range, both ends included.
    pub fn remove_range(&mut self, first: u32, last: u32) {
        let mut left = Vec::with_capacity(self.0.len() + 1);
        for (from, to) in self.0.drain(..) {
            if to < first || from > last {
                left.push((from, to));
                continue;
            }
            if from < first {
                left.push((from, first - 1));
            }
            if to > last {
                left.push((last + 1, to));
            }
        }
        self.0 = left;
    }

    /// Removes all indexes from this one on.
    pub fn truncate(&mut self, end: u32) {
        self.0.retain(|range| range.0 < end);
        if let Some(range) = self.0.last_mut().filter(|range| range.1 >= end) {
            range.1 = end - 1;
        }
    }
}

/// Writes three or more neighbours as a range, as Kubernetes does.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_does_what_a_plain_set_does() {
        let (mut set, mut plain) = (Indexes::between(0, 20), (0..20).collect::<BTreeSet<u32>>());
        let mut random = 12_345u32;
        for round in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = (random >> 16) % 30;
            match round % 5 {
                0 | 1 => drop((set.insert(index), plain.insert(index))),
                2 | 3 => drop((set.remove(index), plain.remove(&index))),
                _ if round % 100 == 4 => {
                    set.truncate(index);
                    plain.retain(|one| *one < index);
                }
                _ => {
                    set.remove_range(index, index + 2);
                    plain.retain(|one| !(index..=index + 2).contains(one));
                }
            }
            assert_eq!(set.count() as usize, plain.len());
            assert!((0..35).all(|index| set.contains(index) == plain.contains(&index)), "{set} and {plain:?}");
            let firsts: Vec<u32> = set.first(3).iter().flat_map(|range| range.0..=range.1).collect();
            assert_eq!(firsts, plain.iter().copied().take(3).collect::<Vec<_>>());
            assert_eq!(set.shared_with(&Indexes::between(5, 15)) as usize, plain.range(5..15).count());
            assert!(set.is_empty() || Indexes::parse(&set.to_string()).as_ref() == Ok(&set), "{set}");
        }
    }

    #[test]
    fn indexes_are_written_as_kubernetes_writes_them() {
        let set = Indexes::parse("1,3-5,7,8").unwrap();
        assert_eq!(set.to_string(), "1,3-5,7,8");
        for wrong in ["", "a", "3-1", "4,2", "1,,2", "-1", "1-", "+1", "4294967295"] {
            assert!(Indexes::parse(wrong).is_err(), "{wrong}");
        }
    }
}
