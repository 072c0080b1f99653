//! Amounts of resources as dense vectors, so that sums along a path of queues cost a few additions. Names are interned once;
//! nothing outside of the scheduler sees an index.

use std::{collections::HashMap, sync::Arc};

use octoflow_model::task::Resources;

use super::spec::Quantities;

/// The number of tasks; every task takes one.
pub(super) const PODS: usize = 0;
pub(super) const CPU: usize = 1;
const FIRST: [&str; 3] = ["pods", "cpu", "memory"];

/// The largest amount that is told apart: sums of many of them cannot overflow.
const MAX_AMOUNT: u64 = 1 << 50;

/// Resource names by index.
#[derive(Clone, Debug)]
pub(super) struct ResourceNames {
    names: Vec<Arc<str>>,
    index: HashMap<Arc<str>, usize>,
}

impl Default for ResourceNames {
    fn default() -> Self {
        let mut names = Self { names: Vec::new(), index: HashMap::new() };
        for name in FIRST {
            names.index(name);
        }
        names
    }
}

impl ResourceNames {
    pub(super) fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.index.get(name) {
            return *index;
        }
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.index.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }

    pub(super) fn name(&self, index: usize) -> &Arc<str> {
        &self.names[index]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns what one task with these requests takes.
    pub(super) fn of_task(&mut self, resources: &Resources) -> Amounts {
        let mut amounts = Amounts::default();
        amounts.set(PODS, 1);
        for (name, amount) in resources.iter() {
            amounts.set(self.index(name), amount.min(MAX_AMOUNT));
        }
        amounts
    }

    pub(super) fn bounds(&mut self, quantities: &Quantities) -> Bounds {
        let mut bounds = Bounds::default();
        for (name, amount) in quantities {
            bounds.set(self.index(name), *amount);
        }
        bounds
    }
}

/// Whether a resource is numbered, so that tasks get certain ones of it, such as graphics processors.
pub(super) fn is_device(name: &str) -> bool {
    !FIRST.contains(&name) && !name.starts_with("hugepages-") && !name.ends_with("storage")
}

/// Amounts by resource index. Missing ones are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Amounts(Vec<u64>);

impl Amounts {
    pub(super) fn get(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// Sets one amount. Trailing zeros are not kept, so that equal amounts are equal vectors.
    pub(super) fn set(&mut self, index: usize, amount: u64) {
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] = amount;
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Iterates over the amounts that are not zero.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, amount)| *amount > 0)
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            *own = own.saturating_add(*more);
        }
    }

    pub(super) fn sub(&mut self, other: &Self) {
        for (own, less) in self.0.iter_mut().zip(&other.0) {
            debug_assert!(*own >= *less, "more is given back than was taken");
            *own = own.saturating_sub(*less);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    pub(super) fn times(&self, count: u64) -> Self {
        Self(self.0.iter().map(|amount| amount.saturating_mul(count)).collect())
    }
}

/// Amounts of which some are not stated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds(Vec<Option<u64>>);

impl Bounds {
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        self.0.get(index).copied().flatten()
    }

    pub(super) fn set(&mut self, index: usize, amount: u64) {
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        self.0[index] = Some(amount);
    }

    /// Iterates over the amounts that are stated.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().enumerate().filter_map(|(index, amount)| Some((index, (*amount)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_can_be_taken_away_and_equal_amounts_are_equal() {
        let mut names = ResourceNames::default();
        let gpu = names.index("nvidia.com/gpu");
        let mut all = Amounts::default();
        let mut one = Amounts::default();
        one.set(gpu, 2);
        all.add(&one);
        all.sub(&one);
        assert_eq!(all, Amounts::default());
        one.set(gpu, 0);
        assert!(one.is_zero());
    }

    #[test]
    fn devices_are_what_is_neither_shared_nor_measured_in_bytes() {
        assert!(is_device("nvidia.com/gpu") && is_device("example.com/fpga"));
        assert!(
            !is_device("cpu") && !is_device("ephemeral-storage") && !is_device("hugepages-2Mi") && !is_device("pods")
        );
    }
}
