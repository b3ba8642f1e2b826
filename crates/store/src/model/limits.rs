//! How much the store takes at once. Everything it keeps comes from outside in the end.

/// Bytes of one event's payload; platforms send at most a few megabytes (GitHub: 25 MB, most others 1 MB).
pub const MAX_PAYLOAD_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of one JSON body: a turn, the parameters of a task, what routing decided.
pub const MAX_JSON_BYTES: usize = 32 * 1024 * 1024;

/// Bytes of a name, a key or a word; they are part of indexes (PostgreSQL takes about 2,700 bytes in one).
pub const MAX_NAME_BYTES: usize = 512;

/// Events in one call of `receive`, so that one caller does not hold the writer for long.
pub const MAX_BATCH: usize = 10_000;

/// Rows in one page.
pub const MAX_PAGE: usize = 1_000;

/// Ids a poll remembers; when there are more, the oldest are forgotten.
pub const MAX_SEEN_IDS: usize = 10_000;

/// How long a key keeps a second copy of an event out: 7 days.
pub const DEDUPE_MS: i64 = 7 * 24 * 60 * 60 * 1000;
