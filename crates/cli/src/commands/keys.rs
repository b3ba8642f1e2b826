//! `proofhouse keys`: who may use the API of `proofhouse serve`, and what they may do.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::config::duration;
use proofhouse_server::keys::{KeyScope, KeySecret};
use proofhouse_store::model::{ApiKey, NewApiKey};
use proofhouse_store::{Store, StoreError};
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::store_options::StoreOptions;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;
/// Letters of a key's id: enough that two do not meet.
const ID_LETTERS: usize = 12;

/// Make, list and revoke keys of the API that `proofhouse serve` has
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse keys create --name ci --scope tasks:read --scope tasks:write\n  \
    proofhouse keys list --format json\n  \
    proofhouse keys revoke 0a1b2c3d4e5f\n\n\
    Exit codes: 0 done, 3 the store cannot be used or there is no such key, 64 usage, or there is no such store.")]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key; it is shown once, and only its hash is kept
    Create(Create),
    /// List the keys, without the keys themselves
    List(KeysList),
    /// Make a key invalid for good
    Revoke(Revoke),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  proofhouse keys create --name ci --scope tasks:read --expires 30d"
)]
struct Create {
    /// What the key is for
    #[arg(long, value_name = "TEXT", default_value = "unnamed")]
    name: String,

    /// What it allows; may be given again: tasks:read, tasks:write, events:read, events:write,
    /// manifests:read, metrics:read or admin
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<KeyScope>,

    /// How long it is valid [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires: Option<Duration>,

    #[command(flatten)]
    store: StoreOptions,

    /// How to print it
    #[arg(long, value_enum, default_value_t = KeysFormat::Human)]
    format: KeysFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse keys list --format json")]
struct KeysList {
    #[command(flatten)]
    store: StoreOptions,

    /// How to print them
    #[arg(long, value_enum, default_value_t = KeysFormat::Human)]
    format: KeysFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse keys revoke 0a1b2c3d4e5f")]
struct Revoke {
    /// The id of the key, from the list
    id: String,

    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeysFormat {
    /// For people
    Human,
    /// For programs
    Json,
}

impl Keys {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            match self.command {
                KeysCommand::Create(create) => create.run().await,
                KeysCommand::List(list) => list.run().await,
                KeysCommand::Revoke(revoke) => revoke.run().await,
            }
        })?;
        Ok(Exit::Success)
    }
}

/// Makes a key and keeps its hash.
pub(crate) async fn make(
    store: &Store,
    name: &str,
    scopes: &[KeyScope],
    expires_at: Option<i64>,
) -> Result<(ApiKey, KeySecret), CommandError> {
    let secret = KeySecret::new().map_err(|error| CommandError::cannot_run(error.to_string()))?;
    let key = NewApiKey {
        // The hash tells nothing about the key, so its beginning can name it.
        id: secret.hash().chars().take(ID_LETTERS).collect(),
        name: name.to_owned(),
        hash: secret.hash(),
        scopes: scopes.iter().map(ToString::to_string).collect(),
        expires_at,
    };
    let key = store.add_api_key(key).await.map_err(failed)?;
    Ok((key, secret))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what `map_err` hands over"
)]
fn failed(error: StoreError) -> CommandError {
    CommandError::cannot_run(printable_line(&error.to_string()))
}

impl Create {
    async fn run(self) -> Result<(), CommandError> {
        let store = self.store.open().await?;
        let expires_at = match self.expires {
            Some(expires) => {
                let now = store.now().await.map_err(failed)?;
                let after = i64::try_from(expires.as_millis()).unwrap_or(i64::MAX);
                Some(now.saturating_add(after))
            }
            None => None,
        };
        let made = make(store.as_ref(), &self.name, &self.scopes, expires_at).await;
        store.close().await;
        let (key, secret) = made?;
        let mut data = StdoutData::new();
        match self.format {
            KeysFormat::Human => {
                talk(&format!("key {}, shown this once:", key.id));
                data.line(secret.reveal())?;
            }
            KeysFormat::Json => {
                let told = json!({
                    "version": VERSION, "id": key.id, "name": key.name, "scopes": key.scopes,
                    "expires_at": key.expires_at, "key": secret.reveal(),
                });
                data.line(&told.to_string())?;
            }
        }
        data.finish()
    }
}

impl KeysList {
    async fn run(self) -> Result<(), CommandError> {
        let store = self.store.open_existing().await?;
        let keys = store.api_keys().await.map_err(failed);
        let now = store.now().await.map_err(failed);
        store.close().await;
        let (keys, now) = (keys?, now?);
        let mut data = StdoutData::new();
        match self.format {
            KeysFormat::Human if keys.is_empty() => talk("there are no keys"),
            KeysFormat::Human => {
                for key in &keys {
                    let has_expired = key.expires_at.is_some_and(|end| end <= now);
                    let state = match key.revoked_at {
                        Some(_) => "revoked",
                        None if has_expired => "expired",
                        None => "valid",
                    };
                    let scopes = key.scopes.join(",");
                    let line = format!("{}  {state:7}  {scopes}  {}", key.id, key.name);
                    data.line(&printable_line(&line))?;
                }
            }
            KeysFormat::Json => {
                let told = json!({"version": VERSION, "keys": keys});
                data.line(&told.to_string())?;
            }
        }
        data.finish()
    }
}

impl Revoke {
    async fn run(self) -> Result<(), CommandError> {
        let store = self.store.open_existing().await?;
        let revoked = store.revoke_api_key(&self.id).await.map_err(failed);
        store.close().await;
        revoked?;
        talk(&format!("revoked {}", printable_line(&self.id)));
        Ok(())
    }
}
