//! Counts looks at queues and tasks while tests run, so that a test can say what an event costs without a clock. Elsewhere it
//! does nothing.

#[cfg(test)]
thread_local! {
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Notes that one more queue or task was looked at.
#[cfg(test)]
pub(super) fn look() {
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

#[cfg(not(test))]
pub(super) const fn look() {}

/// Returns how many looks some work took.
#[cfg(test)]
pub(super) fn looks(work: impl FnOnce()) -> u64 {
    LOOKS.with(|looks| looks.set(0));
    work();
    LOOKS.with(std::cell::Cell::get)
}
