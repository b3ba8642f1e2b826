//! The drivers, one file or directory per mode, one line per mode in the table.

mod a2a;
mod a2a_client;
mod a2a_server;
mod ag_ui_client;
mod client;
mod mcp_client;
mod mcp_server;

pub use mcp_server::mcp_over;

use crate::driver::Driver;

/// Every mode that can be played.
pub const DRIVERS: &[&dyn Driver] = &[
    &mcp_server::McpServer,
    &mcp_client::McpClient,
    &a2a_server::A2aServer,
    &a2a_client::A2aClient,
    &ag_ui_client::AgUiClient,
];
