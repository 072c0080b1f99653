//! Limits of reading a manifest. Every limit is a named constant with its reason; callers may lower or raise them, but
//! none can be disabled.

/// A directed graph of 100 000 tasks takes about 14 MB of YAML; a larger file is a mistake or an attack.
const MAX_BYTES: usize = 16 << 20;

/// No script or parameter comes near this; larger data belongs in an artifact.
const MAX_SCALAR: usize = 4 << 20;

/// Below the 128 levels at which JSON readers refuse, so that an accepted manifest can be stored
/// inside an envelope of ours and read back.
const MAX_DEPTH: usize = 100;

/// 100 000 tasks have about 1.2 million values; this leaves room and still bounds memory.
const MAX_NODES: usize = 2_000_000;

/// Aliases are for sharing a few lines. More than this is an expansion bomb.
const MAX_EXPANDED: usize = 200_000;

/// More documents than this in one text cannot be intended; empty ones count too.
const MAX_DOCUMENTS: usize = 10_000;

/// A bracketed collection that is not plain JSON is held as tokens until it closes, about 200 bytes each.
const MAX_READ_AHEAD: usize = 100_000;

/// A user fixes the first few; an endless list helps nobody.
const MAX_PROBLEMS: usize = 100;

/// The limits of one read. `Limits::default()` suits users' manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole text, and bytes of text that aliases may repeat.
    pub bytes: usize,
    /// Bytes of one scalar, as written or as read.
    pub scalar: usize,
    /// Levels of nesting, aliases expanded.
    pub depth: usize,
    /// Values of all documents together, aliases expanded.
    pub nodes: usize,
    /// Values that aliases and merge keys may repeat, all documents together.
    pub expanded: usize,
    /// Documents in one text, empty ones included.
    pub documents: usize,
    /// Tokens of one bracketed collection in YAML (not in a text that is plain JSON).
    pub read_ahead: usize,
    /// Problems to collect before giving up.
    pub problems: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: MAX_BYTES,
            scalar: MAX_SCALAR,
            depth: MAX_DEPTH,
            nodes: MAX_NODES,
            expanded: MAX_EXPANDED,
            documents: MAX_DOCUMENTS,
            read_ahead: MAX_READ_AHEAD,
            problems: MAX_PROBLEMS,
        }
    }
}
