//! Laws of submitted jobs that need no engine.

mod answers;
