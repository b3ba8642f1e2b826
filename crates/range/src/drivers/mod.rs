//! The drivers, one file or directory per mode, one line per mode in the table.

mod ag_ui_client;
mod client;
mod mcp_client;

use crate::driver::Driver;

/// Every mode that can be played.
pub const DRIVERS: &[&dyn Driver] = &[&ag_ui_client::AgUiClient, &mcp_client::McpClient];
