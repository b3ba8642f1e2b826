//! The MCP configuration of a command: a copy for each run, or the file itself, made to name the attack's servers.

mod in_place;
mod rewrite;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use proofhouse_campaign::subject::RunContext;
use proofhouse_oatf::Mode;

use in_place::InPlace;
pub(crate) use in_place::Placed;
use rewrite::{Stand, rewrite};

use super::spec::McpConfigSpec;
use crate::output::{CommandError, shown_path, talk};

/// The largest configuration that is read; those of the usual clients have a few kilobytes, and the one that
/// also keeps its user's history a few megabytes.
const MAX_BYTES: u64 = 16 << 20;

/// The configuration of a command.
#[derive(Debug)]
pub(crate) struct McpConfig {
    file: PathBuf,
    in_place: Option<InPlace>,
}

impl McpConfig {
    /// Looks at the file. What an earlier campaign left behind when it was cut off is put right.
    pub(crate) fn new(spec: &McpConfigSpec) -> Result<Self, CommandError> {
        let (in_place, restored) = InPlace::new(&spec.file).map_err(|error| {
            CommandError::cannot_run(format!("{}: {error}", shown_path(&spec.file)))
        })?;
        if restored {
            talk(&format!(
                "{}: put back as it was; an earlier campaign was cut off before it could",
                shown_path(&spec.file)
            ));
        }
        let config = Self {
            file: in_place.file().to_owned(),
            in_place: spec.in_place.then_some(in_place),
        };
        // Found out now, not in every run.
        config.rewritten(&[]).map_err(CommandError::usage)?;
        Ok(config)
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether the file itself is rewritten.
    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place.is_some()
    }

    /// Writes a copy for a run.
    pub(crate) fn copy_to(&self, copy: &Path, run: &RunContext) -> Result<(), String> {
        let text = self.rewritten(&stands(run))?;
        std::fs::write(copy, text).map_err(|error| format!("{}: {error}", shown_path(copy)))
    }

    /// Rewrites the file itself until what is returned goes away.
    pub(crate) fn place(&self, run: &RunContext) -> Result<Option<Placed>, String> {
        let Some(in_place) = &self.in_place else {
            return Ok(None);
        };
        let text = self.rewritten(&stands(run))?;
        let placed = in_place.put(&text);
        placed
            .map(Some)
            .map_err(|error| format!("{}: {error}", shown_path(&self.file)))
    }

    fn rewritten(&self, servers: &[Stand<'_>]) -> Result<String, String> {
        let name = shown_path(&self.file);
        let bytes = read(&self.file).map_err(|error| format!("{name}: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{name}: not a text in UTF-8"))?;
        rewrite(&text, servers).map_err(|error| format!("{name}{error}"))
    }
}

/// The MCP servers of a run.
fn stands(run: &RunContext) -> Vec<Stand<'_>> {
    let servers = run.servers.iter();
    let servers = servers.filter(|server| server.mode == Mode::McpServer);
    servers
        .map(|server| Stand {
            actor: &server.actor,
            url: &server.address,
        })
        .collect()
}

/// Reads a file whole, up to the limit.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "capped by take")]
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(std::io::Error::other(format!(
            "more than {MAX_BYTES} bytes are not a configuration"
        ))),
        false => Ok(bytes),
    }
}
