//! `proofhouse audit`: checks, exports and shortens the audit log of `proofhouse serve`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::config::duration;
use proofhouse_server::audit::{self, CheckpointKey};
use proofhouse_store::model::{AuditCheckpoint, AuditFilter};
use proofhouse_store::{Store, StoreError};
use proofhouse_wire::files::FileInput;
use serde_json::{Value, json};

use crate::exit_code::Exit;
use crate::input::named_files;
use crate::output::{CommandError, StdoutData, printable_line, shown_path, talk};
use crate::runtime::runtime;
use crate::store_options::StoreOptions;

/// The version of the JSON format; it grows when a field changes or goes away.
const VERSION: u32 = 1;
/// The largest file of a key or a checkpoint.
const MAX_FILE: usize = 64 << 10;
/// Entries that are read at once.
const BATCH: usize = 1_000;

/// Verify, export and prune the audit log of `proofhouse serve`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse audit verify --store store.db\n  \
    proofhouse audit export --format ocsf > audit.jsonl\n  \
    proofhouse audit checkpoint --key audit.key > checkpoint.json\n  \
    proofhouse audit verify --checkpoint checkpoint.json\n  \
    proofhouse audit prune --older-than 400d --key audit.key\n\n\
    Exit codes:\n  \
    0   success, and the log is intact\n  \
    1   the log was tampered with\n  \
    3   the store or a file cannot be used\n  \
    64  invalid arguments, or the store does not exist")]
pub(crate) struct AuditCommand {
    #[command(subcommand)]
    command: AuditPart,
}

#[derive(Debug, Subcommand)]
enum AuditPart {
    /// Verify that no entry was changed, inserted or removed
    Verify(Verify),
    /// Print all entries, oldest first
    Export(Export),
    /// Print a signed checkpoint of the current end of the log; keep it in a different place
    Checkpoint(Checkpoint),
    /// Remove old entries and leave a signed checkpoint in their place
    Prune(Prune),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse audit verify --checkpoint checkpoint.json")]
struct Verify {
    /// An earlier checkpoint; verifies that the log continues from it
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,

    /// The public key that must have signed the checkpoints, such as ed25519:0a1b…
    #[arg(long, value_name = "KEY")]
    trusted_key: Option<String>,

    #[command(flatten)]
    store: StoreOptions,

    /// The output format
    #[arg(long, value_enum, default_value_t = VerifyFormat::Human)]
    format: VerifyFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse audit export --format ocsf --after 1200")]
struct Export {
    /// Print only the entries after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: i64,

    #[command(flatten)]
    store: StoreOptions,

    /// The format of each line
    #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
    format: ExportFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse audit checkpoint --key audit.key > checkpoint.json")]
struct Checkpoint {
    #[command(flatten)]
    key: KeyOptions,

    #[command(flatten)]
    store: StoreOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  proofhouse audit prune --older-than 400d --key audit.key")]
struct Prune {
    /// Remove entries that are older than this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    older_than: Duration,

    #[command(flatten)]
    key: KeyOptions,

    #[command(flatten)]
    store: StoreOptions,
}

/// The key that checkpoints are signed with.
#[derive(Debug, Args)]
struct KeyOptions {
    /// The file with the signing key; created if it does not exist, readable only by you
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerifyFormat {
    /// For people
    Human,
    /// For programs
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// As stored: JSON Lines
    Jsonl,
    /// Events of the Open Cybersecurity Schema Framework (OCSF), one per line
    Ocsf,
}

impl AuditCommand {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let runtime = runtime()?;
        runtime.block_on(async {
            match self.command {
                AuditPart::Verify(verify) => verify.run().await,
                AuditPart::Export(export) => export.run().await,
                AuditPart::Checkpoint(checkpoint) => checkpoint.run().await,
                AuditPart::Prune(prune) => prune.run().await,
            }
        })
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what `map_err` hands over"
)]
fn failed(error: StoreError) -> CommandError {
    CommandError::cannot_run(printable_line(&error.to_string()))
}

fn read(path: &Path) -> Result<String, CommandError> {
    let text = FileInput::File(path.to_owned()).read(MAX_FILE);
    text.map_err(|error| CommandError::cannot_run(format!("{}: {error}", shown_path(path))))
}

impl KeyOptions {
    fn read(&self) -> Result<CheckpointKey, CommandError> {
        signing_key(&self.key, talk)
    }
}

/// The key of a file, which is made if there is none.
pub(crate) fn signing_key(path: &Path, tell: impl Fn(&str)) -> Result<CheckpointKey, CommandError> {
    let wrong = |why: String| CommandError::cannot_run(format!("{}: {why}", shown_path(path)));
    if !path.exists() {
        let made = CheckpointKey::generate().map_err(|error| wrong(error.to_string()))?;
        let written = proofhouse_wire::write_files::create_private(path, &format!("{made}\n"));
        written.map_err(|error| wrong(error.to_string()))?;
        tell(&format!("created a signing key: {}", shown_path(path)));
    }
    CheckpointKey::read(&read(path)?).map_err(|error| wrong(error.to_string()))
}

fn checkpoint_json(checkpoint: &AuditCheckpoint) -> Value {
    json!({
        "version": VERSION, "seq": checkpoint.seq, "hash": checkpoint.hash, "statement": checkpoint.statement,
        "signature": checkpoint.signature,
    })
}

impl Verify {
    async fn run(self) -> Result<Exit, CommandError> {
        let known = self.known()?;
        let store = self.store.open_existing().await?;
        let verified =
            audit::verify(store.as_ref(), self.trusted_key.as_deref(), known.as_ref()).await;
        store.close().await;
        let mut data = StdoutData::new();
        let exit = match &verified {
            Ok(_) => Exit::Success,
            Err(audit::AuditFault::Store(error)) => return Err(failed(error.clone())),
            Err(_) => Exit::Failure,
        };
        match (self.format, verified) {
            (VerifyFormat::Human, Ok(report)) => {
                let last = report.last;
                talk(&format!(
                    "the audit log is intact: {} entries up to {last}",
                    report.entries
                ));
                if let Some((seq, key)) = report.checkpoint {
                    talk(&format!(
                        "entries up to {seq} were removed, signed by {key}"
                    ));
                }
            }
            (VerifyFormat::Human, Err(fault)) => {
                talk(&format!("the audit log was tampered with: {fault}"));
            }
            (VerifyFormat::Json, Ok(report)) => {
                let told = json!({"version": VERSION, "holds": true, "report": report});
                data.line(&told.to_string())?;
            }
            (VerifyFormat::Json, Err(fault)) => {
                let told = json!({"version": VERSION, "holds": false, "fault": fault.to_string()});
                data.line(&told.to_string())?;
            }
        }
        data.finish()?;
        Ok(exit)
    }

    fn known(&self) -> Result<Option<AuditCheckpoint>, CommandError> {
        let Some(path) = &self.checkpoint else {
            return Ok(None);
        };
        named_files([path.as_path()])?;
        let said: Option<Value> = serde_json::from_str(&read(path)?).ok();
        let checkpoint = said.and_then(|said| {
            Some(AuditCheckpoint {
                seq: said["seq"].as_i64()?,
                hash: said["hash"].as_str()?.to_owned(),
                statement: said["statement"].as_str()?.to_owned(),
                signature: said["signature"].as_str()?.to_owned(),
            })
        });
        let wrong = || format!("{}: not a checkpoint", shown_path(path));
        checkpoint
            .map(Some)
            .ok_or_else(|| CommandError::cannot_run(wrong()))
    }
}

impl Export {
    async fn run(self) -> Result<Exit, CommandError> {
        let store = self.store.open_existing().await?;
        let exported = self.print(store.as_ref()).await;
        store.close().await;
        exported?;
        Ok(Exit::Success)
    }

    async fn print(&self, store: &Store) -> Result<(), CommandError> {
        let mut data = StdoutData::new();
        let mut after = self.after;
        loop {
            let filter = AuditFilter {
                after,
                limit: BATCH,
                ..AuditFilter::default()
            };
            let page = store.audit(filter).await.map_err(failed)?;
            for record in &page {
                let line = match self.format {
                    ExportFormat::Jsonl => audit::json_line(record),
                    ExportFormat::Ocsf => audit::ocsf_event(record),
                };
                data.line(&line.to_string())?;
            }
            match page.last() {
                Some(last) if page.len() == BATCH => after = last.seq,
                _ => return data.finish(),
            }
        }
    }
}

impl Checkpoint {
    async fn run(self) -> Result<Exit, CommandError> {
        let key = self.key.read()?;
        let store = self.store.open_existing().await?;
        let asking = async {
            let head = store.audit_head().await?;
            Ok::<_, StoreError>((head, store.now().await?))
        };
        let asked = asking.await.map_err(failed);
        store.close().await;
        let (head, now) = asked?;
        let mut data = StdoutData::new();
        let checkpoint = key.sign(head.seq, &head.hash, now);
        data.line(&checkpoint_json(&checkpoint).to_string())?;
        data.finish()?;
        Ok(Exit::Success)
    }
}

impl Prune {
    async fn run(self) -> Result<Exit, CommandError> {
        let key = self.key.read()?;
        let store = self.store.open_existing().await?;
        let age = i64::try_from(self.older_than.as_millis()).unwrap_or(i64::MAX);
        let pruning = async {
            let before = store.now().await?.saturating_sub(age);
            let removed = audit::prune(store.as_ref(), &key, before).await?;
            if removed > 0 {
                let object = json!({"kind": "audit", "id": removed.to_string()});
                let entry = audit::by_command_line("audit.prune", &object);
                store.append_audit(entry).await?;
            }
            Ok::<_, StoreError>(removed)
        };
        let removed = pruning.await.map_err(failed);
        store.close().await;
        talk(&format!("removed {} entries", removed?));
        Ok(Exit::Success)
    }
}
