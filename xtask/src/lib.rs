//! The developer's menu as a library, so that tests call the same code as the menu. Depends on no crate of ours: it
//! must still run when they do not compile.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a menu talks to the person at the terminal")]

pub mod fixture;
pub mod leftover;
pub mod menu;
pub mod setup;
pub mod step;
pub mod tidy;

use std::env;
use std::path::{Path, PathBuf};

/// Returns the root of the checkout that this menu works on.
///
/// Determined at run time first: a binary from a shared build cache may have been compiled elsewhere.
pub fn root() -> PathBuf {
    let own = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().expect("the menu's crate lies one folder below the root").to_path_buf()
}
