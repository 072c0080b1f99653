//! Schedules by example, and decisions under every sequence of looks, restarts and clocks that jump.

mod books;
mod decisions;
mod times;
