//! Durable state behind one trait: SQLite for one machine, PostgreSQL for several.
