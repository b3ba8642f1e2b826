//! `proofhouse keys`: who may use the API of `proofhouse serve`, and what they may do.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::config::duration;
use proofhouse_server::audit;
use proofhouse_server::keys::{AccessRole, KeyScope, KeySecret};
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

/// Make, list, rotate and revoke keys of the API that `proofhouse serve` has
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse keys create --name ci --role starter --namespace shop --expires 90d\n  \
    proofhouse keys list --format json\n  \
    proofhouse keys rotate 0a1b2c3d4e5f --overlap 24h\n  \
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
    /// Make a successor of a key; both work for a while
    Rotate(Rotate),
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

    /// What it allows; may be given again: tasks:read, tasks:begin, tasks:approve, tasks:operate, tasks:write (the last three),
    /// events:read, events:write, manifests:read, metrics:read, audit:read, users:act or admin
    #[arg(
        long = "scope",
        value_name = "SCOPE",
        required_unless_present = "roles"
    )]
    scopes: Vec<KeyScope>,

    /// Scopes that go together; may be given again: reader, starter, approver, operator, auditor or admin
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<AccessRole>,

    /// A namespace it is bound to; may be given again [default: all]
    #[arg(long = "namespace", value_name = "NAME")]
    namespaces: Vec<String>,

    /// Who holds it, as `review(…)` in manifests names people, such as ann@example.com
    #[arg(long, value_name = "PERSON")]
    user: Option<String>,

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
#[command(after_help = "Example:\n  proofhouse keys rotate 0a1b2c3d4e5f --overlap 24h")]
struct Rotate {
    /// The id of the key, from the list
    id: String,

    /// How long the old key still works
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "24h")]
    overlap: Duration,

    /// How long the new one is valid [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires: Option<Duration>,

    #[command(flatten)]
    store: StoreOptions,

    /// How to print it
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
                KeysCommand::Rotate(rotate) => rotate.run().await,
                KeysCommand::Revoke(revoke) => revoke.run().await,
            }
        })?;
        Ok(Exit::Success)
    }
}

/// What a key is to be.
#[derive(Debug, Default)]
pub(crate) struct KeyOrder<'a> {
    pub(crate) name: &'a str,
    pub(crate) scopes: &'a [KeyScope],
    pub(crate) namespaces: Option<Vec<String>>,
    pub(crate) holder: Option<String>,
    pub(crate) expires_at: Option<i64>,
}

/// The id of a key. The hash tells nothing about the key, so its beginning can name it.
fn id_of(secret: &KeySecret) -> String {
    secret.hash().chars().take(ID_LETTERS).collect()
}

/// A key that nobody has yet.
pub(crate) fn new_secret() -> Result<KeySecret, CommandError> {
    KeySecret::new().map_err(|error| CommandError::cannot_run(error.to_string()))
}

/// Keeps the hash of a key, and notes that in the audit log.
pub(crate) async fn keep(
    store: &Store,
    secret: &KeySecret,
    order: KeyOrder<'_>,
) -> Result<ApiKey, CommandError> {
    let key = NewApiKey {
        id: id_of(secret),
        name: order.name.to_owned(),
        hash: secret.hash(),
        scopes: order.scopes.iter().map(ToString::to_string).collect(),
        namespaces: order.namespaces,
        holder: order.holder,
        expires_at: order.expires_at,
    };
    let key = store.add_api_key(key).await.map_err(failed)?;
    noted(store, "key.create", &key.id).await?;
    Ok(key)
}

async fn noted(store: &Store, action: &str, id: &str) -> Result<(), CommandError> {
    let entry = audit::by_command_line(action, &json!({"kind": "key", "id": id}));
    store.append_audit(entry).await.map_err(failed)?;
    Ok(())
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
            talk(&format!("key {}, shown this once:", key.id));
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
            let secret = new_secret()?;
            let order = KeyOrder {
                name: &self.name,
                scopes: &scopes,
                namespaces: Some(self.namespaces.clone()).filter(|list| !list.is_empty()),
                holder: self.user.clone(),
                expires_at: moment_after(store.as_ref(), self.expires).await?,
            };
            let key = keep(store.as_ref(), &secret, order).await?;
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
            let secret = new_secret()?;
            let (id, hash) = (id_of(&secret), secret.hash());
            let expires_at = moment_after(store.as_ref(), self.expires).await?;
            let overlap = millis(self.overlap);
            let key = store.rotate_api_key(&self.id, (&id, &hash), expires_at, overlap);
            let key = key.await.map_err(failed)?;
            noted(store.as_ref(), "key.rotate", &self.id).await?;
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
        let revoked = match store.revoke_api_key(&self.id).await.map_err(failed) {
            Ok(()) => noted(store.as_ref(), "key.revoke", &self.id).await,
            refused => refused,
        };
        store.close().await;
        revoked?;
        talk(&format!("revoked {}", printable_line(&self.id)));
        Ok(())
    }
}
