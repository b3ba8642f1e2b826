//! The action runtimes: one file each.

mod cel;
mod response;
mod stateless_http;

pub use cel::CelRuntime;
pub use stateless_http::StatelessHttp;
