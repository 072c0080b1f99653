//! What admission says of TaskSets, by scenario.
