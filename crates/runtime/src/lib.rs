//! Runtimes: the port that each of them implements, and those that need nothing installed. A runtime obeys orders and
//! reports what happens; it never decides what should run.

pub mod artifacts;
pub mod calls;
pub mod clock;
pub mod egress;
pub mod logs;
pub mod null;
pub mod port;
pub mod process;
pub mod route;
mod shortage;
mod space;
pub mod threads;
