//! The drivers, one file or directory per mode, one line per mode in the table.

mod a2a;
mod a2a_client;
mod a2a_server;
mod ag_ui_client;
mod arguments;
mod client;
mod mcp_client;
mod mcp_server;

use std::sync::Arc;

use proofhouse_oatf::Mode;

pub use a2a_server::{OfferedCard, offered_cards};
pub(crate) use mcp_server::carrier as mcp_carrier;
pub use mcp_server::{mcp_over, offered_tools};

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
    McpServer => mcp_server::McpServerDriver;
    /// An MCP client that connects to the subject.
    McpClient => mcp_client::McpClientDriver;
    /// An A2A agent that the subject asks.
    A2aServer => a2a_server::A2aServerDriver;
    /// An A2A client that asks the subject.
    A2aClient => a2a_client::A2aClientDriver;
    /// A frontend that drives the subject.
    AgUiClient => ag_ui_client::AgUiClientDriver;
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
    use std::path::Path;

    use super::*;

    #[test]
    fn every_mode_of_the_format_is_driven_once() {
        for mode in Mode::KNOWN {
            let mut of_mode = BuiltInMode::ALL.iter().filter(|it| it.mode() == *mode);
            assert!(of_mode.next().is_some(), "{mode}");
            assert!(of_mode.next().is_none(), "{mode}");
        }
    }

    /// Adding a mode takes the files that CONTRIBUTING.md lists and no others, as long as nobody writes its name.
    #[test]
    fn the_name_of_a_mode_is_written_once() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut code = Vec::new();
        for folder in std::fs::read_dir(crates).unwrap() {
            read_code(&folder.unwrap().path().join("src"), &mut code);
        }
        for mode in Mode::KNOWN {
            let literal = format!("\"{mode}\"");
            let places = code.iter().filter(|(_, line)| line.contains(&literal));
            let places: Vec<&(String, String)> = places.collect();
            assert_eq!(places.len(), 1, "{places:?}");
        }
    }

    /// The lines of all files below, without comments and tests.
    fn read_code(folder: &Path, code: &mut Vec<(String, String)>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read_code(&path, code);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                #[expect(clippy::disallowed_methods, reason = "a file of this project")]
                let text = std::fs::read_to_string(&path).unwrap();
                let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
                let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
                let name = path.display().to_string();
                code.extend(lines.map(|line| (name.clone(), line.to_owned())));
            }
        }
    }
}
