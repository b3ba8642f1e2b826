//! Authorization against servers on the loopback address.

mod consent;
mod flow;
mod grants;
mod support;
mod tokens;
