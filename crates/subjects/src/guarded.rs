//! A subject with the guard between it and the servers of a document, so that a campaign can be run with and without it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use proofhouse_guard::engine::GuardProtocol;
use proofhouse_guard::pins::{CardKind, FILE as LOCK, LockFile, PinKind, by_name, canonical_card};
use proofhouse_guard::record::{GuardRecorder, SharedRecorder};
use proofhouse_guard::share::SessionGroup;
use proofhouse_guard::{
    FindingCode, GuardAsks, GuardDecision, GuardFinding, GuardOpenError, ListeningGuard,
    OpenedGuard, OpenedPolicy,
};
use proofhouse_oatf::Mode;
use proofhouse_range::{ActorEndpoint, BoxFuture, ListeningServer};
use proofhouse_wire::sync::lock;
use proofhouse_wire::{CancellationToken, DropGuard, ProxySettings, fnv};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::subject::{
    GuardCounts, GuardInfo, LiveSubject, Pace, RunContext, Shutdown, Subject, SubjectAnswer,
    SubjectError, SubjectInfo,
};

/// The word for the policy that the program carries.
pub const STOCK_POLICY: &str = "stock";

/// How many findings of a run are kept.
const MAX_FINDINGS: usize = 10;

/// Whether the guard can stand in front of a server of this mode.
#[must_use]
pub fn is_guardable(mode: &Mode) -> bool {
    protocol_of(mode).is_some()
}

/// What the guard speaks with servers of this mode, if it does.
fn protocol_of(mode: &Mode) -> Option<GuardProtocol> {
    match mode {
        Mode::McpServer => Some(GuardProtocol::Mcp),
        Mode::A2aServer => Some(GuardProtocol::A2a),
        _ => None,
    }
}

/// A subject that reaches its servers through the guard.
pub struct GuardedSubject {
    inner: Arc<dyn Subject>,
    policy: OpenedPolicy,
    info: GuardInfo,
}

impl GuardedSubject {
    /// The same subjects behind the guard, each with a name of its own. `policy` is a file, or [`STOCK_POLICY`]. Where
    /// `approves_controls`, the lock has the definitions of the control when a run begins: the guard knows its servers
    /// from before the attack.
    ///
    /// # Errors
    ///
    /// Returns an error when the policy, or something that it names, cannot be used.
    pub fn all(
        subjects: &[Arc<dyn Subject>],
        policy: &Path,
        approves_controls: bool,
    ) -> Result<Vec<Arc<dyn Subject>>, GuardOpenError> {
        let is_stock = policy == Path::new(STOCK_POLICY);
        let opened = OpenedPolicy::open((!is_stock).then_some(policy))?;
        let digest = format!("{:016x}", fnv::hash_64(opened.text().bytes()));
        let guarded = subjects.iter().map(|inner| -> Arc<dyn Subject> {
            Arc::new(Self {
                inner: Arc::clone(inner),
                policy: opened.clone(),
                info: GuardInfo {
                    subject: inner.info().name,
                    policy: policy.display().to_string(),
                    digest: digest.clone(),
                    approves_controls,
                },
            })
        });
        Ok(guarded.collect())
    }

    /// Starts guards in front of the servers, and says where they are.
    async fn guards(
        &self,
        run: &RunContext,
    ) -> Result<(RunGuards, Vec<ListeningServer>), SubjectError> {
        let counts = Arc::new(Mutex::new(GuardCounts::default()));
        let heard = Arc::clone(&counts);
        let recorder = GuardRecorder::default().with_listener(Box::new(move |finding| {
            count(&mut lock(&heard), finding);
        }));
        let cancel = CancellationToken::new();
        // The subject cannot reach the lock: its own directory is another one.
        let directory = tempfile::tempdir().map_err(SubjectError::of)?;
        let mut guards = RunGuards {
            serving: JoinSet::new(),
            counts,
            recorder: recorder.shared(),
            stop: cancel.clone().drop_guard(),
            directory,
            group: SessionGroup::default(),
        };
        if self.info.approves_controls {
            guards.approve(run)?;
        }
        let mut servers = Vec::new();
        let mut places: HashMap<&Mode, u16> = HashMap::new();
        for server in &run.servers {
            let Some(protocol) = protocol_of(&server.mode) else {
                servers.push(server.clone());
                continue;
            };
            let place = places.entry(&server.mode).or_default();
            let guard = self.guard(&guards, server, (protocol, *place)).await?;
            *place += 1;
            servers.push(ListeningServer {
                address: guard.url().to_owned(),
                ..server.clone()
            });
            guards.serving.spawn(guard.serve(cancel.clone()));
        }
        Ok((guards, servers))
    }

    /// The guard in front of one server, which speaks a protocol and is the `place`th that does.
    async fn guard(
        &self,
        guards: &RunGuards,
        server: &ListeningServer,
        (protocol, place): (GuardProtocol, u16),
    ) -> Result<ListeningGuard, SubjectError> {
        let opened = OpenedGuard::new(
            self.policy.clone(),
            server.actor.clone(),
            server.address.clone(),
            Some(guards.lock()),
            guards.recorder.clone(),
        );
        let opened = Arc::new(opened.of_protocol(protocol));
        // A subject that looks for its servers at fixed places finds the guards there.
        let mut listen = match self.inner.listen(&server.mode) {
            Some(address) => address,
            None => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        };
        if listen.port() != 0 {
            listen.set_port(listen.port().saturating_add(place));
        }
        let asks = Some(GuardAsks::Nobody);
        let guard = ListeningGuard::new(
            &opened,
            &server.address,
            listen,
            asks,
            ProxySettings::default(),
            Some(guards.group.clone()),
        );
        let guard = guard.await;
        guard.map_err(|error| SubjectError(format!("the guard cannot start: {error}")))
    }
}

impl Subject for GuardedSubject {
    fn info(&self) -> SubjectInfo {
        let info = self.inner.info();
        SubjectInfo {
            name: format!("{}+guard", info.name),
            description: format!(
                "{}, behind the guard with the policy {}",
                info.description, self.info.policy
            ),
            guard: Some(self.info.clone()),
            ..info
        }
    }

    fn pace(&self) -> Pace {
        self.inner.pace()
    }

    fn listen(&self, mode: &Mode) -> Option<SocketAddr> {
        // There, the guard listens.
        self.inner.listen(mode).filter(|_| !is_guardable(mode))
    }

    fn meets(&self, mode: &Mode) -> bool {
        self.inner.meets(mode)
    }

    fn start_hints(&self) -> Vec<String> {
        self.inner.start_hints()
    }

    fn at_a_time(&self) -> Option<usize> {
        self.inner.at_a_time()
    }

    fn alone_with(&self) -> Option<String> {
        self.inner.alone_with()
    }

    fn headers(&self) -> Vec<(String, String)> {
        self.inner.headers()
    }

    fn secrets(&self) -> Vec<String> {
        self.inner.secrets()
    }

    fn start<'a>(
        &'a self,
        run: &'a RunContext,
    ) -> BoxFuture<'a, Result<Box<dyn LiveSubject>, SubjectError>> {
        Box::pin(async move {
            let (guards, servers) = self.guards(run).await?;
            let context = RunContext {
                servers,
                ..run.clone()
            };
            let live = self.inner.start(&context).await?;
            let guarded: Box<dyn LiveSubject> = Box::new(LiveGuarded { live, guards });
            Ok(guarded)
        })
    }
}

/// The guards of one run. They end when this is dropped.
struct RunGuards {
    serving: JoinSet<()>,
    counts: Arc<Mutex<GuardCounts>>,
    recorder: SharedRecorder,
    stop: DropGuard,
    directory: TempDir,
    /// The subject carries values from one server to another.
    group: SessionGroup,
}

impl RunGuards {
    fn lock(&self) -> LockFile {
        LockFile::new(self.directory.path().join(LOCK))
    }

    /// Writes the definitions that the servers have without the attack into the lock.
    fn approve(&self, run: &RunContext) -> Result<(), SubjectError> {
        let approved = self.lock().update(|lock| {
            for (actor, tools) in &run.benign.tools {
                let pins = lock.servers.entry(actor.clone()).or_default();
                let tools = by_name(PinKind::Tool, tools);
                pins.items.insert(PinKind::Tool, tools);
            }
            for server in &run.servers {
                if let Some(card) = run.benign.cards.get(&server.actor) {
                    let pins = lock.servers.entry(server.actor.clone()).or_default();
                    let card = canonical_card(&card.at(&server.address));
                    pins.cards.insert(CardKind::Public, card);
                }
            }
        });
        approved.map_err(SubjectError::of)?;
        Ok(())
    }
}

struct LiveGuarded {
    live: Box<dyn LiveSubject>,
    guards: RunGuards,
}

impl LiveSubject for LiveGuarded {
    fn endpoint(&self, mode: &Mode) -> Option<ActorEndpoint> {
        self.live.endpoint(mode)
    }

    fn prompt<'a>(
        &'a mut self,
        text: &'a str,
    ) -> BoxFuture<'a, Result<SubjectAnswer, SubjectError>> {
        self.live.prompt(text)
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, Shutdown> {
        Box::pin(async move {
            let Self { live, mut guards } = *self;
            let mut shutdown = live.end().await;
            drop(guards.stop);
            while guards.serving.join_next().await.is_some() {}
            let counts = lock(&guards.counts);
            shutdown.guard = Some(counts.clone());
            shutdown
        })
    }
}

fn count(counts: &mut GuardCounts, finding: &GuardFinding) {
    let counter = match (finding.code, finding.decision) {
        // It follows an ask that is counted already.
        (FindingCode::AskDenied | FindingCode::AskAllowed, _) | (_, GuardDecision::Allow) => return,
        (_, GuardDecision::Log) => {
            counts.logged += 1;
            return;
        }
        (_, GuardDecision::Ask) => &mut counts.asked,
        (_, GuardDecision::Block) => &mut counts.blocked,
        (_, GuardDecision::Redact) => &mut counts.redacted,
    };
    *counter += 1;
    if counts.findings.len() < MAX_FINDINGS {
        counts.findings.push(finding.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_counted_by_what_became_of_the_message() {
        let mut counts = GuardCounts::default();
        for (code, decision) in [
            (FindingCode::RuleMatched, GuardDecision::Ask),
            (FindingCode::AskDenied, GuardDecision::Block),
            (FindingCode::WithheldCall, GuardDecision::Block),
            (FindingCode::RuleMatched, GuardDecision::Redact),
            (FindingCode::PinRecorded, GuardDecision::Log),
            (FindingCode::RuleMatched, GuardDecision::Allow),
        ] {
            count(&mut counts, &GuardFinding::new(code, decision, "s", "m"));
        }
        let GuardCounts {
            asked,
            blocked,
            redacted,
            logged,
            findings,
        } = counts;
        assert_eq!(
            (asked, blocked, redacted, logged, findings.len()),
            (1, 1, 1, 1, 3)
        );
    }
}
