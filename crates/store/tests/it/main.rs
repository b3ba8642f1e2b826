//! The tests of the store: one contract on every engine, and what each does by itself.

mod contract;
mod killed;
mod sqlite;
