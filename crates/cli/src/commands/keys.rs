//! `proofhouse keys`: who may use the API of `proofhouse serve`, and what they may do.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::config::{duration, positive_duration};
use proofhouse_server::key_change::{self, KeyOrder};
use proofhouse_server::keys::{AccessRole, KeyScope, KeySecret};
use proofhouse_store::model::ApiKey;
use proofhouse_store::{Store, StoreError};
use serde_json::json;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData, printable_line, talk};
use crate::runtime::runtime;
use crate::store_options::StoreOptions;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;

/// Create, list, rotate and revoke API keys for `proofhouse serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse keys create --name ci --role starter --namespace shop --expires 90d\n  \
    proofhouse keys list --format json\n  \
    proofhouse keys rotate 0a1b2c3d4e5f --overlap 24h\n  \
    proofhouse keys revoke 0a1b2c3d4e5f\n\n\
    Exit codes:\n  \
    0   success\n  \
    3   the store cannot be used, or there is no such key\n  \
    64  invalid arguments, or the store does not exist")]
pub(crate) struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Create a key; it is shown only once, and only its hash is stored
    Create(Create),
    /// List all keys with their ids and scopes, but not their values
    List(KeysList),
    /// Replace a key; the old one keeps working for a while
    Rotate(Rotate),
    /// Revoke a key permanently
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

    /// What the key allows; can be repeated: tasks:read, tasks:begin, tasks:approve, tasks:operate, tasks:write
    /// (the previous three), events:read, events:write, manifests:read, metrics:read, audit:read, users:act or
    /// admin
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        required_unless_present = "roles"
    )]
    scopes: Vec<KeyScope>,

    /// A predefined set of scopes; can be repeated: reader, starter, approver, operator, auditor or admin
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<AccessRole>,

    /// Limit the key to this namespace; can be repeated [default: all namespaces]
    #[arg(long = "namespace", value_name = "NAME")]
    namespaces: Vec<String>,

    /// The person who holds the key, as named by `review(…)` in manifests, such as ann@example.com
    #[arg(long, value_name = "PERSON")]
    user: Option<String>,

    /// How long the key is valid [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    expires: Option<Duration>,

    #[command(flatten)]
    store: StoreOptions,

    /// The output format
    #[arg(long, value_enum, default_value_t = KeysFormat::Human)]
    format: KeysFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse keys list --format json")]
struct KeysList {
    #[command(flatten)]
    store: StoreOptions,

    /// The output format
    #[arg(long, value_enum, default_value_t = KeysFormat::Human)]
    format: KeysFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse keys rotate 0a1b2c3d4e5f --overlap 24h")]
struct Rotate {
    /// The id of the key, as shown by `proofhouse keys list`
    id: String,

    /// How long the old key keeps working
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    overlap: Duration,

    /// How long the new key is valid [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    expires: Option<Duration>,

    #[command(flatten)]
    store: StoreOptions,

    /// The output format
    #[arg(long, value_enum, default_value_t = KeysFormat::Human)]
    format: KeysFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse keys revoke 0a1b2c3d4e5f")]
struct Revoke {
    /// The id of the key, as shown by `proofhouse keys list`
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
        let runtime = runtime()?;
        runtime.block_on(async {
            match self.command {
                KeysCommand::Create(create) => create.run().await,
                KeysCommand::List(list) => list.run().await,
                KeysCommand::Rotate(rotate) => rotate.run().await,
                KeysCommand::Revoke(revoke) => revoke.run().await,
            }
        })?;
        Ok(Exit::Success)
    }
}

/// The moment after so much time, by the clock of the store.
async fn moment_after(store: &Store, time: Option<Duration>) -> Result<Option<i64>, CommandError> {
    let Some(time) = time else {
        return Ok(None);
    };
    let now = store.now().await.map_err(failed)?;
    Ok(Some(now.saturating_add(millis(time))))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Prints a key, once.
fn print(key: &ApiKey, secret: &KeySecret, format: KeysFormat) -> Result<(), CommandError> {
    let mut data = StdoutData::new();
    match format {
        KeysFormat::Human => {
            talk(&format!("Created key {}. It is shown only once:", key.id));
            data.line(secret.reveal())?;
        }
        KeysFormat::Json => {
            let told = json!({
                "version": VERSION, "id": key.id, "name": key.name, "scopes": key.scopes,
                "namespaces": key.namespaces, "user": key.holder, "expires_at": key.expires_at,
                "key": secret.reveal(),
            });
            data.line(&told.to_string())?;
        }
    }
    data.finish()
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
        let mut scopes = self.scopes.clone();
        scopes.extend(self.roles.iter().flat_map(|role| role.scopes()));
        scopes.sort_unstable();
        scopes.dedup();
        let store = self.store.open().await?;
        let making = async {
            let secret =
                KeySecret::new().map_err(|error| CommandError::cannot_run(error.to_string()))?;
            let order = KeyOrder {
                name: &self.name,
                scopes: &scopes,
                namespaces: Some(self.namespaces.clone()).filter(|list| !list.is_empty()),
                holder: self.user.clone(),
                expires_at: moment_after(store.as_ref(), self.expires).await?,
            };
            let key = key_change::keep(store.as_ref(), &secret, order)
                .await
                .map_err(failed)?;
            Ok::<_, CommandError>((key, secret))
        };
        let made = making.await;
        store.close().await;
        let (key, secret) = made?;
        print(&key, &secret, self.format)
    }
}

impl Rotate {
    async fn run(self) -> Result<(), CommandError> {
        let store = self.store.open_existing().await?;
        let rotating = async {
            let secret =
                KeySecret::new().map_err(|error| CommandError::cannot_run(error.to_string()))?;
            let expires_at = moment_after(store.as_ref(), self.expires).await?;
            let overlap = millis(self.overlap);
            let key = key_change::rotate(store.as_ref(), &self.id, &secret, expires_at, overlap);
            let key = key.await.map_err(failed)?;
            Ok::<_, CommandError>((key, secret))
        };
        let made = rotating.await;
        store.close().await;
        let (key, secret) = made?;
        print(&key, &secret, self.format)
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
                    let bound = key.namespaces.as_ref();
                    let bound = bound.map_or_else(|| "*".to_owned(), |list| list.join(","));
                    let line = format!("{}  {state:7}  {scopes}  {bound}  {}", key.id, key.name);
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
        let revoked = key_change::revoke(store.as_ref(), &self.id).await;
        store.close().await;
        revoked.map_err(failed)?;
        talk(&format!("revoked {}", printable_line(&self.id)));
        Ok(())
    }
}
