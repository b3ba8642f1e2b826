//! CEL with limits. The only user of the CEL library; JSON in, JSON out.
