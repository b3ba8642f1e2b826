//! The tests of frames, processes and HTTP.

mod exchange;
mod guard;
mod http;
mod processes;
