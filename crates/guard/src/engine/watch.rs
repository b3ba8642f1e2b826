//! Indicators that watch a session: any set of threat documents, compiled into one scanner.
//!
//! They observe. One may block only if it earned it: its tier is an action or a breach, it looks at what the guarded client
//! sends, and a trace of the same task without the attack shows that it stays silent there.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofhouse_detect::{
    BuildError, EXTENSION_FIELD, ImportOptions, ScanFinding, ScanOutcome, ScanSession, Scanner,
    TraceItem, dropped_by, open,
};
use proofhouse_oatf::{Direction, Document, Indicator, Protocol, ReadLimits, Tier, load_with};
use proofhouse_wire::files::{CollectError, DOCUMENTS, FileInput, Unreadable, collect};
use serde_json::Value;

use super::MessageFrom;
use crate::finding::{FindingCode, GuardDecision, GuardFinding};
use crate::pack;
use crate::policy::{EnforcedIndicator, IndicatorPolicy};

/// The key of an indicator's `x-proofhouse` that says that its matches are secrets.
const MASKED: &str = "masked";

/// How many characters of a secret are shown: those that say whose format it is.
const SHOWN_OF_SECRET: usize = 4;

/// Why indicators cannot watch, or may not block.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The documents cannot be found.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// A document cannot be read.
    #[error("{name}: {error}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        error: Unreadable,
    },
    /// A document cannot be used.
    #[error("{name}: {reason}")]
    Unusable {
        /// The file.
        name: String,
        /// The first thing that is wrong.
        reason: String,
    },
    /// The documents cannot be compiled.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no such indicator.
    #[error("no document has an indicator `{0}`")]
    Unknown(String),
    /// Several documents have one of this id.
    #[error("several documents have an indicator `{0}`; name the `document`")]
    Ambiguous(String),
    /// It says that something was read, not that something was done.
    #[error(
        "the indicator `{0}` may not block: its tier is {tier}, and only `local_action` and `boundary_breach` show that the agent acted",
        tier = .1.map_or("not given", Tier::as_str)
    )]
    Tier(String, Option<Tier>),
    /// It looks at what servers send.
    #[error(
        "the indicator `{0}` may not block: it looks at answers, and only what the guarded client sends may be blocked by an indicator"
    )]
    Direction(String),
    /// It looks at another protocol.
    #[error("the indicator `{0}` may not block: it looks at neither MCP nor A2A")]
    Protocol(String),
    /// The control cannot be read.
    #[error("the indicator `{indicator}` may not block: its control {}: {reason}", path.display())]
    Control {
        /// The indicator.
        indicator: String,
        /// The trace.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The control has nothing that it looks at, so its silence shows nothing.
    #[error(
        "the indicator `{0}` may not block: its control has no message that it looks at, so its silence shows nothing"
    )]
    Vacuous(String),
    /// It matches the control.
    #[error("the indicator `{0}` may not block: it matches message {1} of its control")]
    NotSilent(String, u64),
}

/// Documents that watch.
#[derive(Debug)]
pub struct Watcher {
    scanner: Arc<Scanner>,
    /// Those that may block, by document and indicator.
    enforced: BTreeSet<(usize, usize)>,
}

impl Watcher {
    /// Loads the documents of a policy that lies in `directory`.
    ///
    /// # Errors
    ///
    /// Returns an error when a document cannot be used, or an indicator shall block that may not.
    pub fn load(policy: &IndicatorPolicy, directory: &Path) -> Result<Option<Self>, WatchError> {
        let paths: Vec<PathBuf> = policy
            .documents
            .iter()
            .map(|path| directory.join(path))
            .collect();
        let mut builder = Scanner::builder();
        let mut any = false;
        for (name, text) in pack::DOCUMENTS {
            if !policy.is_without_pack
                && let Some(document) = parse_document(name, text)?
            {
                builder = builder.add(*name, document);
                any = true;
            }
        }
        let inputs = if paths.is_empty() {
            Vec::new()
        } else {
            collect(&paths, DOCUMENTS)?
        };
        for input in inputs {
            if let Some(document) = load_document(&input)? {
                builder = builder.add(input.name(), document);
                any = true;
            }
        }
        if !any {
            return Ok(None);
        }
        let scanner = Arc::new(builder.build()?);
        let mut enforced = BTreeSet::new();
        for entry in &policy.enforce {
            enforced.insert(earned(&scanner, entry, directory)?);
        }
        Ok(Some(Self { scanner, enforced }))
    }

    /// How many indicators there are.
    #[must_use]
    pub fn indicators(&self) -> usize {
        self.scanner.len()
    }

    /// How many of them may block.
    #[must_use]
    pub fn enforced(&self) -> usize {
        self.enforced.len()
    }

    pub(super) fn session(&self) -> ScanSession<'static> {
        self.scanner.shared_session()
    }

    /// What indicators found, as findings.
    pub(super) fn tell(
        &self,
        found: &[ScanFinding],
        from: MessageFrom,
        server: &str,
    ) -> Vec<GuardFinding> {
        let from_client = from == MessageFrom::Client;
        found
            .iter()
            .map(|one| {
                let documents = self.scanner.documents().nth(one.document);
                let (name, indicator) = documents.map_or(("", None), |(name, document)| {
                    (name, document.attack.indicators().get(one.indicator))
                });
                let id = indicator.and_then(|indicator| indicator.id.as_deref());
                let id = id.unwrap_or("");
                let may_block =
                    from_client && self.enforced.contains(&(one.document, one.indicator));
                let (code, decision, message, path) = match &one.outcome {
                    ScanOutcome::Matched(evidence) => (
                        FindingCode::IndicatorMatched,
                        if may_block {
                            GuardDecision::Block
                        } else {
                            GuardDecision::Log
                        },
                        format!("{name}: {}", shown(indicator, &evidence.text)),
                        Some(evidence.path.clone()),
                    ),
                    ScanOutcome::Error(error) => (
                        FindingCode::IndicatorFailed,
                        GuardDecision::Log,
                        format!("{name}: {error}"),
                        None,
                    ),
                };
                let mut finding = GuardFinding::new(code, decision, server, message).by(id);
                finding.path = path;
                finding
            })
            .collect()
    }
}

/// What is told of the words that matched. A finding goes where a secret does not belong.
fn shown(indicator: Option<&Indicator>, words: &str) -> String {
    let ours = indicator.and_then(|indicator| indicator.extensions.get(EXTENSION_FIELD));
    if ours.and_then(|ours| ours.get(MASKED)) == Some(&Value::Bool(true)) {
        let begin: String = words.chars().take(SHOWN_OF_SECRET).collect();
        return format!("{begin}…");
    }
    words.to_owned()
}

/// A document with indicators; controls have none.
fn load_document(input: &FileInput) -> Result<Option<Document>, WatchError> {
    let text = input
        .read(ReadLimits::default().max_bytes)
        .map_err(|error| WatchError::Unreadable {
            name: input.name(),
            error,
        })?;
    parse_document(&input.name(), &text)
}

fn parse_document(name: &str, text: &str) -> Result<Option<Document>, WatchError> {
    let mut document = match load_with(text, &ReadLimits::default()) {
        Ok(loaded) => loaded.document,
        Err(errors) => {
            return Err(WatchError::Unusable {
                name: name.to_owned(),
                reason: errors.first().map(ToString::to_string).unwrap_or_default(),
            });
        }
    };
    // Live traffic has no actors of a document.
    for indicator in document.attack.indicators.iter_mut().flatten() {
        indicator.actor = None;
    }
    Ok(Some(document).filter(|document| !document.attack.indicators().is_empty()))
}

/// The indicator that an entry names, if it may block.
fn earned(
    scanner: &Scanner,
    entry: &EnforcedIndicator,
    directory: &Path,
) -> Result<(usize, usize), WatchError> {
    let id = || entry.indicator.clone();
    let mut found = Vec::new();
    for (document_number, (name, document)) in scanner.documents().enumerate() {
        let is_named = entry
            .document
            .as_ref()
            .is_none_or(|wanted| Path::new(name).ends_with(wanted));
        let indicators = document.attack.indicators().iter().enumerate();
        let called =
            indicators.filter(|(_, indicator)| indicator.id.as_ref() == Some(&entry.indicator));
        if is_named {
            found.extend(called.map(|(number, indicator)| (document_number, number, indicator)));
        }
    }
    let (document, number, indicator) = match found.as_slice() {
        [one] => *one,
        [] => return Err(WatchError::Unknown(id())),
        _ => return Err(WatchError::Ambiguous(id())),
    };
    match indicator.tier {
        Some(Tier::LocalAction | Tier::BoundaryBreach) => {}
        other => return Err(WatchError::Tier(id(), other)),
    }
    if indicator.direction == Some(Direction::Response) {
        return Err(WatchError::Direction(id()));
    }
    if indicator
        .protocol
        .as_ref()
        .is_some_and(|protocol| ![Protocol::from("mcp"), Protocol::from("a2a")].contains(protocol))
    {
        return Err(WatchError::Protocol(id()));
    }
    check_control(scanner, (document, number), indicator, entry, directory)?;
    Ok((document, number))
}

/// Whether an indicator looks at its control and stays silent.
fn check_control(
    scanner: &Scanner,
    place: (usize, usize),
    indicator: &Indicator,
    entry: &EnforcedIndicator,
    directory: &Path,
) -> Result<(), WatchError> {
    let path = directory.join(&entry.control);
    let failed = |reason: String| WatchError::Control {
        indicator: entry.indicator.clone(),
        path: path.clone(),
        reason,
    };
    let file = File::open(&path).map_err(|error| failed(error.to_string()))?;
    let (_, messages) = open(file, None, &ImportOptions::default());
    let mut looked = 0_u64;
    for item in messages {
        let message = match item.map_err(|error| failed(error.to_string()))? {
            TraceItem::Message { message, .. } => message,
            _ => return Err(failed("a line of it cannot be read".to_owned())),
        };
        if message.direction == Some(Direction::Response)
            || dropped_by(indicator, &message).is_some()
        {
            continue;
        }
        looked += 1;
        let found = scanner.scan(&message).into_iter();
        let mut ours = found.filter(|one| (one.document, one.indicator) == place);
        if ours.next().is_some() {
            return Err(WatchError::NotSilent(
                entry.indicator.clone(),
                message.sequence,
            ));
        }
    }
    if looked == 0 {
        return Err(WatchError::Vacuous(entry.indicator.clone()));
    }
    Ok(())
}
