//! The elements of an array in a later version of it: each old element needs a distinct new one that has all of it, at
//! any index. A bipartite matching by augmenting paths. Knows nothing of what elements mean.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::{Judge, Place, TooLarge};

/// How many new elements are tried for an old one before the search begins in earnest.
const LOOK_AHEAD: usize = 32;

/// Which new element each old one became.
pub(super) struct Matching {
    /// By old index.
    pub(super) new_of: Vec<Option<usize>>,
    /// By new index.
    pub(super) old_of: Vec<Option<usize>>,
    /// A new element that is nobody's counterpart although it may not be added, so that the arrays do not fit.
    pub(super) forbidden: Option<usize>,
}

impl Matching {
    pub(super) fn is_complete(&self) -> bool {
        self.forbidden.is_none() && self.new_of.iter().all(Option::is_some)
    }
}

/// Finds a matching; an incomplete one tells what has no counterpart.
///
/// New elements that may not be added are matched first. Augmenting paths never take the counterpart from an element
/// that has one, so these keep theirs, and if both sides can be served there is a matching that serves both.
pub(super) fn find(judge: &Judge, old: &[Value], new: &[Value], place: Place) -> Result<Matching, TooLarge> {
    judge.spend(old.len() + new.len())?;
    let matching = Matching { new_of: vec![None; old.len()], old_of: vec![None; new.len()], forbidden: None };
    let mut search = Search { judge, old, new, place: place.element(), known: vec![Vec::new(); old.len()], matching };
    for (at, value) in new.iter().enumerate() {
        if !judge.may_add(value, search.place)? && !search.match_new(at)? {
            search.matching.forbidden = Some(at);
            return Ok(search.matching);
        }
    }
    search.match_in_order()?;
    for at in 0..old.len() {
        if search.matching.new_of[at].is_none() && !search.match_old(at)? && old.len() > new.len() {
            break;
        }
    }
    Ok(search.matching)
}

struct Search<'a> {
    judge: &'a Judge,
    old: &'a [Value],
    new: &'a [Value],
    /// Place of the elements.
    place: Place,
    /// By old index: the new elements it was compared with. Rows are made when they are needed.
    known: Vec<Vec<Option<bool>>>,
    matching: Matching,
}

impl Search<'_> {
    fn fits(&mut self, old: usize, new: usize) -> Result<bool, TooLarge> {
        self.judge.spend(1)?;
        if self.known[old].is_empty() {
            self.judge.spend(self.new.len() / 64)?;
            self.known[old] = vec![None; self.new.len()];
        }
        if let Some(known) = self.known[old][new] {
            return Ok(known);
        }
        let fits = self.compare(old, new)?;
        self.known[old][new] = Some(fits);
        Ok(fits)
    }

    fn compare(&self, old: usize, new: usize) -> Result<bool, TooLarge> {
        self.judge.extends(&self.old[old], &self.new[new], self.place)
    }

    fn pair(&mut self, old: usize, new: usize) {
        self.matching.new_of[old] = Some(new);
        self.matching.old_of[new] = Some(old);
    }

    /// Pairs what is easy: the element of the same name, or one of those behind the previous one's counterpart.
    fn match_in_order(&mut self) -> Result<(), TooLarge> {
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, value) in self.new.iter().enumerate() {
            if let Some(name) = name(value) {
                named.entry(name).or_insert(at);
            }
        }
        let mut next = 0;
        for old in 0..self.old.len() {
            let same_name = name(&self.old[old]).and_then(|name| named.get(name)).copied();
            let behind = next..self.new.len().min(next + LOOK_AHEAD);
            for new in std::iter::once(next).chain(same_name).chain(behind) {
                let is_free = self.matching.new_of[old].is_none() && self.matching.old_of.get(new) == Some(&None);
                if is_free && self.compare(old, new)? {
                    self.pair(old, new);
                    next = new + 1;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Finds a counterpart for an old element, moving others if need be.
    fn match_old(&mut self, start: usize) -> Result<bool, TooLarge> {
        let mut reached_from: Vec<Option<usize>> = vec![None; self.new.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(old) = queue.pop_front() {
            for new in 0..self.new.len() {
                if reached_from[new].is_some() || !self.fits(old, new)? {
                    continue;
                }
                reached_from[new] = Some(old);
                if let Some(owner) = self.matching.old_of[new] {
                    queue.push_back(owner);
                    continue;
                }
                let mut free = Some(new);
                while let Some(new) = free {
                    let Some(old) = reached_from[new] else { break };
                    free = self.matching.new_of[old];
                    self.pair(old, new);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same from the other side: finds the old element that a new one continues.
    fn match_new(&mut self, start: usize) -> Result<bool, TooLarge> {
        let mut reached_from: Vec<Option<usize>> = vec![None; self.old.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(new) = queue.pop_front() {
            for old in 0..self.old.len() {
                if reached_from[old].is_some() || !self.fits(old, new)? {
                    continue;
                }
                reached_from[old] = Some(new);
                if let Some(owner) = self.matching.new_of[old] {
                    queue.push_back(owner);
                    continue;
                }
                let mut free = Some(old);
                while let Some(old) = free {
                    let Some(new) = reached_from[old] else { break };
                    free = self.matching.old_of[new];
                    self.pair(old, new);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn name(value: &Value) -> Option<&str> {
    value.get("name")?.as_str()
}
