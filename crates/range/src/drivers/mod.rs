//! The drivers, one file or directory per mode, one line per mode in the table.

mod a2a;
mod a2a_client;
mod a2a_server;
mod ag_ui_client;
mod client;
mod mcp_client;
mod mcp_server;

use std::sync::Arc;

use proofhouse_oatf::Mode;

pub use mcp_server::mcp_over;

use crate::driver::Driver;

/// Declares what can be driven: a name for each mode, and its driver.
macro_rules! built_in_modes {
    ($( $(#[$doc:meta])+ $name:ident => $driver:expr; )+) => {
        /// A mode that the range drives itself.
        ///
        /// Documents may have any [`Mode`]; this is the closed set of those that need no driver of the caller's.
        ///
        /// ```
        /// use proofhouse_oatf::Mode;
        /// use proofhouse_range::BuiltInMode;
        ///
        /// assert_eq!(BuiltInMode::of(&Mode::McpServer), Some(BuiltInMode::McpServer));
        /// assert_eq!(BuiltInMode::of(&Mode::from("voice_client")), None);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum BuiltInMode {
            $( $(#[$doc])+ $name, )+
        }

        impl BuiltInMode {
            /// Every mode, in the order in which help and messages name them.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Who drives it.
            #[must_use]
            pub fn driver(self) -> &'static dyn Driver {
                match self {
                    $( Self::$name => &$driver, )+
                }
            }
        }
    };
}

built_in_modes! {
    /// An MCP server that the subject connects to.
    McpServer => mcp_server::McpServer;
    /// An MCP client that connects to the subject.
    McpClient => mcp_client::McpClient;
    /// An A2A agent that the subject asks.
    A2aServer => a2a_server::A2aServer;
    /// An A2A client that asks the subject.
    A2aClient => a2a_client::A2aClient;
    /// A frontend that drives the subject.
    AgUiClient => ag_ui_client::AgUiClient;
}

impl BuiltInMode {
    /// The mode as documents have it.
    #[must_use]
    pub fn mode(self) -> Mode {
        self.driver().mode()
    }

    /// The built-in mode of this name, if there is one.
    #[must_use]
    pub fn of(mode: &Mode) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.mode() == *mode)
    }
}

/// Who drives `mode`: the first of the caller's own drivers that does, or ours.
pub(crate) fn driver_of<'d>(mode: &Mode, own: &'d [Arc<dyn Driver>]) -> Option<&'d dyn Driver> {
    let own = own.iter().find(|driver| driver.mode() == *mode);
    own.map(|driver| &**driver)
        .or_else(|| Some(BuiltInMode::of(mode)?.driver()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_of_the_format_is_driven_once() {
        for mode in Mode::KNOWN {
            let mut of_mode = BuiltInMode::ALL.iter().filter(|it| it.mode() == *mode);
            assert!(of_mode.next().is_some(), "{mode}");
            assert!(of_mode.next().is_none(), "{mode}");
        }
    }
}
