//! The one language statements are written in, and what each database makes of it.
//!
//! It is SQL that both understand, with numbered parameters (`$1`) and a few words in braces:
//!
//! | word | PostgreSQL | SQLite |
//! |---|---|---|
//! | `{now}` | the clock of the server, in milliseconds | the clock of the machine, in milliseconds |
//! | `{lock}` | locks the rows | nothing: there is one writer |
//! | `{skip_locked}` | locks the rows, passing over those that others work on | nothing |
//! | `{in_list}…{list_end}` | is in what is found between, which is made a list first | is in what is found between |
//! | `{skip_locked t}` | the same for the rows of `t` only | nothing |
//! | `{serial}` | a key that the database numbers, never reusing a number | the same |
//! | `{bytes}` | the type of bytes | the same |
//! | `{among t.name 7}` | whether the column is one of the texts of the JSON list that parameter 7 is | the same |
//! | `{folded t.name}` | the column with small letters for the large ones of ASCII | the same |
//! | `{inserted id}` | gives this column of a row that was inserted | nothing: it knows the last one, and gives no row |

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use crate::sync::{read, write};

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    Sqlite,
    Postgres,
    /// SQLite by a clock that is set.
    Simulated,
}

impl Flavor {
    fn word(self, word: &str) -> String {
        let (word, of) = word.split_once(' ').unwrap_or((word, ""));
        let text = match (self, word) {
            (Self::Postgres, "now") => "(extract(epoch from clock_timestamp()) * 1000)::bigint",
            (Self::Simulated, "now") => "(SELECT now FROM simulated_clock)",
            (Self::Sqlite, "now") => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            // Rows that refer to the locked one can still be added.
            (Self::Postgres, "lock") => "FOR NO KEY UPDATE",
            (Self::Postgres, "skip_locked") if of.is_empty() => "FOR NO KEY UPDATE SKIP LOCKED",
            (Self::Postgres, "skip_locked") => {
                return format!("FOR NO KEY UPDATE OF {of} SKIP LOCKED");
            }
            (Self::Postgres, "serial") => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            (Self::Sqlite | Self::Simulated, "serial") => "INTEGER PRIMARY KEY AUTOINCREMENT",
            // A list that is made first has no length that the planner could guess wrongly.
            (Self::Postgres, "in_list") => "= ANY (ARRAY(",
            (Self::Postgres, "list_end") => "))",
            (Self::Sqlite | Self::Simulated, "in_list") => "IN (",
            (Self::Sqlite | Self::Simulated, "list_end") => ")",
            (_, "among") => {
                let (column, number) = of.split_once(' ').unwrap_or((of, "1"));
                return self.among(column, number);
            }
            (Self::Postgres, "folded") => return format!("LOWER(({of}) COLLATE \"C\")"),
            (Self::Sqlite | Self::Simulated, "folded") => return format!("LOWER({of})"),
            (Self::Postgres, "inserted") => return format!("RETURNING {of}"),
            (Self::Postgres, "bytes") => "BYTEA",
            (Self::Sqlite | Self::Simulated, "bytes") => "BLOB",
            _ => "",
        };
        text.to_owned()
    }

    fn among(self, column: &str, number: &str) -> String {
        match self {
            Self::Postgres => format!(
                "{column} IN (SELECT json_array_elements_text(CAST(CAST(${number} AS TEXT) AS json)))"
            ),
            Self::Sqlite | Self::Simulated => {
                format!("{column} IN (SELECT value FROM json_each(?{number}))")
            }
        }
    }

    /// The statement in the language of the database.
    pub(crate) fn render(self, sql: &str) -> String {
        let mut rendered = String::with_capacity(sql.len() + 64);
        let mut rest = sql;
        while let Some(at) = rest.find(['{', '$']) {
            rendered.push_str(&rest[..at]);
            let tail = &rest[at..];
            if let Some(tail) = tail.strip_prefix('$') {
                rendered.push(if self == Self::Postgres { '$' } else { '?' });
                rest = tail;
            } else if let Some(end) = tail.find('}') {
                rendered.push_str(&self.word(&tail[1..end]));
                rest = &tail[end + 1..];
            } else {
                rendered.push_str(tail);
                rest = "";
            }
        }
        rendered.push_str(rest);
        rendered
    }
}

/// Remembers what statements are in the language of a database.
#[derive(Debug)]
pub(crate) struct SqlDialect {
    flavor: Flavor,
    /// By where each is and how long: to compare whole texts would take as long as a short statement does.
    rendered: RwLock<HashMap<(usize, usize), Arc<str>>>,
}

impl SqlDialect {
    pub(crate) fn new(flavor: Flavor) -> Self {
        Self {
            flavor,
            rendered: RwLock::default(),
        }
    }

    /// The statement in the language of the database.
    pub(crate) fn statement(&self, sql: &'static str) -> Arc<str> {
        let key = (sql.as_ptr().addr(), sql.len());
        if let Some(known) = read(&self.rendered).get(&key) {
            return Arc::clone(known);
        }
        let rendered: Arc<str> = self.flavor.render(sql).into();
        write(&self.rendered).insert(key, Arc::clone(&rendered));
        rendered
    }
}
