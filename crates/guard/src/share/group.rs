//! Sessions of one process that share what they learn, such as those of the servers that one agent under test uses.

use std::sync::{Arc, Mutex, Weak};

use proofhouse_wire::sync::lock;

use super::SharedFact;
use crate::engine::GuardSession;

type MemberSession = Arc<Mutex<GuardSession>>;

/// Sessions that know what each other learned. It keeps none of them alive.
///
/// Whoever holds the group may lock a session, and never the other way round.
#[derive(Clone, Default)]
pub struct SessionGroup {
    members: Arc<Mutex<Vec<Weak<Mutex<GuardSession>>>>>,
    hub: Option<MemberSession>,
}

impl SessionGroup {
    /// A group that shares what its sessions learn with the guards of other servers: `hub` is a session without messages of its
    /// own, which knows all and is told to them.
    pub(crate) fn with_hub(hub: MemberSession) -> Self {
        Self {
            members: Arc::default(),
            hub: Some(hub),
        }
    }

    /// A session takes part from now on, and knows what the others know.
    pub fn join(&self, session: &MemberSession) {
        let mut members = lock(&self.members);
        members.retain(|member| member.strong_count() > 0);
        // Each knows what all know, so one is enough.
        let known = self.hub.clone();
        let known = known.or_else(|| members.iter().find_map(Weak::upgrade));
        let known = known.map(|other| with(&other, |other| other.all_facts()));
        with(session, |session| {
            session.share();
            session.learn(&known.unwrap_or_default());
        });
        members.push(Arc::downgrade(session));
    }

    /// Tells the others what a session learned since this was called last. They know it when this returns.
    pub fn tell(&self, session: &MemberSession) {
        let members = lock(&self.members);
        let facts = with(session, GuardSession::take_facts);
        if facts.is_empty() {
            return;
        }
        let others = members.iter().filter_map(Weak::upgrade);
        for other in others.filter(|other| !Arc::ptr_eq(other, session)) {
            with(&other, |other| other.learn(&facts));
        }
        if let Some(hub) = &self.hub {
            with(hub, |hub| hub.relay(facts));
        }
    }

    /// The guard of another server learned something.
    pub(crate) fn learn(&self, facts: &[SharedFact]) {
        let members = lock(&self.members);
        let others = members.iter().filter_map(Weak::upgrade);
        for member in others.chain(self.hub.clone()) {
            with(&member, |member| member.learn(facts));
        }
    }
}

fn with<T>(session: &MemberSession, work: impl FnOnce(&mut GuardSession) -> T) -> T {
    work(&mut lock(session))
}
