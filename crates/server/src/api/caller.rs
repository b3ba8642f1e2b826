//! Callers: who asks, what they may, and in which namespaces.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use http::{header, request::Parts};
use proofhouse_store::Store;
use proofhouse_store::model::{ApiKey, SessionKind};
use serde_json::{Value, json};

use super::audit_note::AuditNote;
use super::sessions::{SessionOwner, form_token};
use super::{Api, store_problem};
use crate::keys::{self, KeyScope, TenantNamespaces};
use crate::problem::Problem;
use proofhouse_wire::peer;

/// The cookie of the dashboard.
pub(crate) const COOKIE: &str = "proofhouse_session";
/// Letters of the id of a key, which its hash begins with.
const ID_LETTERS: usize = 12;

/// Someone who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of the key, of the person who signed in with an identity provider, or `open` where nobody is asked.
    pub key: String,
    /// What people call the key, or the person.
    name: String,
    /// What stays the same when a key is replaced by its successor.
    principal: String,
    /// The person, if it is known which.
    holder: Option<String>,
    groups: Vec<String>,
    scopes: Vec<KeyScope>,
    namespaces: TenantNamespaces,
    proof: CallerCredential,
    note: AuditNote,
}

/// How it is known who asks.
#[derive(Debug, Clone)]
enum CallerCredential {
    /// Nobody is asked for a key.
    None,
    /// A key, of which this is the hash, and the hash of the first of its family.
    Key { hash: String, family: String },
    /// A session of the dashboard, by what the browser holds.
    Session(String),
}

impl Caller {
    /// Whoever asks may do all, because the server was started that way.
    fn anyone() -> Self {
        Self {
            key: "open".to_owned(),
            name: "anyone".to_owned(),
            principal: "key:open".to_owned(),
            holder: None,
            groups: Vec::new(),
            scopes: vec![KeyScope::Admin],
            namespaces: TenantNamespaces::All,
            proof: CallerCredential::None,
            note: AuditNote::default(),
        }
    }

    /// The holder of a key.
    fn of_key(key: ApiKey, hash: String) -> Self {
        let family = key.family.unwrap_or_else(|| hash.clone());
        let first: String = family.chars().take(ID_LETTERS).collect();
        Self {
            key: key.id,
            name: key.name,
            principal: format!("key:{first}"),
            holder: key.holder,
            groups: Vec::new(),
            scopes: key
                .scopes
                .iter()
                .filter_map(|name| name.parse().ok())
                .collect(),
            namespaces: TenantNamespaces::of(key.namespaces),
            proof: CallerCredential::Key { hash, family },
            note: AuditNote::default(),
        }
    }

    /// Whom tasks are for that say nothing else, and who has begun and said what this caller has: the person, or the key
    /// with its successors.
    pub(crate) fn person(&self) -> &str {
        self.holder.as_deref().unwrap_or(&self.principal)
    }

    /// The key with its successors, or the person who signed in.
    pub(crate) fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether a name in a manifest or of a task means this caller.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let name = name.strip_prefix("user:").unwrap_or(name);
        let own = [self.principal.as_str(), self.person()];
        let key = name.strip_prefix("key:").is_some_and(|id| id == self.key);
        key || own.contains(&name)
    }

    /// Whether this is a group that the caller is in.
    pub(crate) fn is_in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether nobody is asked who they are.
    pub(crate) fn is_anyone(&self) -> bool {
        matches!(self.proof, CallerCredential::None)
    }

    /// What is remembered of a caller who was let in: the hash of the key or of the session, and nothing where nobody is asked.
    pub(crate) fn hash(&self) -> String {
        match &self.proof {
            CallerCredential::None => String::new(),
            CallerCredential::Key { hash, .. } => hash.clone(),
            CallerCredential::Session(held) => keys::digest(held),
        }
    }

    /// What tells the repeated requests of this caller from those of others. It is no secret of a key, but nobody else knows it.
    pub(crate) fn repeats(&self) -> &str {
        match &self.proof {
            CallerCredential::Key { family, .. } => family,
            CallerCredential::None | CallerCredential::Session(_) => &self.principal,
        }
    }

    /// The namespaces that the caller may see and use.
    pub(crate) fn namespaces(&self) -> &TenantNamespaces {
        &self.namespaces
    }

    /// What is noted about the request.
    pub(crate) fn note(&self) -> &AuditNote {
        &self.note
    }

    /// What shows that a form comes from a page of ours; nothing where there is no session.
    pub(crate) fn form_token(&self) -> Option<String> {
        match &self.proof {
            CallerCredential::Session(cookie) => Some(form_token(cookie)),
            CallerCredential::None | CallerCredential::Key { .. } => None,
        }
    }

    /// The caller in an entry of the audit log.
    fn shown(&self) -> Value {
        let kind = match &self.proof {
            CallerCredential::None => "open",
            CallerCredential::Key { .. } => "key",
            CallerCredential::Session(_) => "session",
        };
        json!({"kind": kind, "id": self.key, "name": self.name, "person": self.person()})
    }

    /// The same caller, with the paper of the request.
    pub(crate) fn noted(mut self, note: AuditNote) -> Self {
        note.actor(self.shown());
        self.note = note;
        self
    }

    /// Insists that what let the caller in still does: keys are revoked and expire, and people sign out.
    ///
    /// # Errors
    ///
    /// Returns 401 when it does not, and another problem when that cannot be found out.
    pub(crate) async fn is_still_let_in(&self, api: &Api) -> Result<(), Problem> {
        match &self.proof {
            CallerCredential::None => Ok(()),
            CallerCredential::Key { hash, .. } => {
                holder(api.store.as_ref(), hash.clone()).await.map(drop)
            }
            CallerCredential::Session(cookie) => signed_in(api, cookie).await.map(drop),
        }
    }

    /// Insists on a scope.
    ///
    /// # Errors
    ///
    /// Returns a problem that names the scope which is missing.
    pub(crate) fn needs(&self, scope: KeyScope) -> Result<(), Problem> {
        if scope.is_in(&self.scopes) {
            Ok(())
        } else {
            Err(Problem::forbidden(format!(
                "the key lacks the scope `{scope}`"
            )))
        }
    }

    /// Insists that the caller is bound to no namespaces, for what belongs to the whole server.
    pub(crate) fn needs_all_namespaces(&self) -> Result<(), Problem> {
        match self.namespaces {
            TenantNamespaces::All => Ok(()),
            TenantNamespaces::Only(_) => Err(Problem::forbidden(
                "the key is bound to namespaces, and this belongs to the whole server",
            )),
        }
    }

    pub(crate) fn may(&self, scope: KeyScope) -> bool {
        scope.is_in(&self.scopes)
    }
}

/// Who holds this key.
pub(crate) async fn recognise(store: &Store, key: &str) -> Result<Caller, Problem> {
    let hash = keys::hash(key).ok_or_else(unknown)?;
    holder(store, hash).await
}

fn unknown() -> Problem {
    Problem::unauthorized("the key is not known, or not valid any more")
}

/// Who holds the key with this hash.
async fn holder(store: &Store, hash: String) -> Result<Caller, Problem> {
    let found = store.api_key(&hash).await.map_err(store_problem)?;
    let found = found.ok_or_else(unknown)?;
    let now = store.now().await.map_err(store_problem)?;
    let over = found.revoked_at.is_some() || found.expires_at.is_some_and(|end| end <= now);
    if over {
        return Err(unknown());
    }
    Ok(Caller::of_key(found, hash))
}

/// Who signed in at the dashboard and holds this cookie.
pub(crate) async fn signed_in(api: &Api, cookie: &str) -> Result<Caller, Problem> {
    let found = api
        .store
        .session(SessionKind::Dashboard, &keys::digest(cookie))
        .await
        .map_err(store_problem)?;
    let owner = found.and_then(SessionOwner::read).ok_or_else(unknown)?;
    let caller = match owner {
        SessionOwner::Key { hash } => holder(api.store.as_ref(), hash).await?,
        SessionOwner::Person(person) => Caller {
            key: person.principal.clone(),
            name: person.name,
            principal: person.principal,
            holder: person.email,
            groups: person.groups,
            scopes: person
                .scopes
                .iter()
                .filter_map(|name| name.parse().ok())
                .collect(),
            namespaces: TenantNamespaces::of(person.namespaces),
            proof: CallerCredential::None,
            note: AuditNote::default(),
        },
    };
    Ok(Caller {
        proof: CallerCredential::Session(cookie.to_owned()),
        ..caller
    })
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let caller = match bearer(parts) {
            Some(key) => match recognise(api.store.as_ref(), key).await {
                Ok(caller) => caller,
                Err(problem) => return Err(counted(problem, parts, api)),
            },
            None if api.config.open => Self::anyone(),
            None => {
                let cookie = session(parts).ok_or_else(|| {
                    Problem::unauthorized(
                        "send `Authorization: Bearer KEY`; `proofhouse keys create` makes one",
                    )
                })?;
                signed_in(api, cookie).await?
            }
        };
        take_request(api, &caller)?;
        let note = parts.extensions.get::<AuditNote>().cloned();
        Ok(caller.noted(note.unwrap_or_default()))
    }
}

/// Counts a request of somebody who is known.
///
/// # Errors
///
/// Returns 429 when they asked too much.
pub(crate) fn take_request(api: &Api, caller: &Caller) -> Result<(), Problem> {
    let taken = api.rate.take(&caller.key);
    taken.map_err(|wait| Problem::too_many(wait.as_secs().max(1)))
}

/// What whoever sent a wrong key is told. A right key is never held up by the wrong ones that others behind the same
/// proxy send, so that they are counted after they are looked up.
fn counted(problem: Problem, parts: &Parts, api: &Api) -> Problem {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let Some(ConnectInfo(peer)) = peer.filter(|_| problem.status == 401) else {
        return problem;
    };
    let peer = peer::of(peer.ip()).to_string();
    match api.wrong_keys.take(&peer) {
        Ok(()) => problem,
        Err(wait) => Problem {
            detail: "too many wrong keys; try again later".to_owned(),
            ..Problem::too_many(wait.as_secs().max(1))
        },
    }
}

pub(super) fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Whoever signed in at the dashboard. The cookie alone is only good for looking: a page elsewhere that makes a browser
/// send something must not get anywhere. Forms carry a token beside it.
fn session(parts: &Parts) -> Option<&str> {
    if parts.method != http::Method::GET && parts.method != http::Method::HEAD {
        return None;
    }
    cookie(parts, COOKIE)
}

pub(crate) fn cookie<'p>(parts: &'p Parts, wanted: &str) -> Option<&'p str> {
    let all = parts.headers.get_all(header::COOKIE);
    let pairs = all.iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == wanted).then_some(value)
    })
}

/// A scope as a type, so that it is asked for before anything else of a request is read.
pub(crate) trait ScopeNeeded {
    /// The scope.
    const SCOPE: KeyScope;
}

macro_rules! needed {
    ($($name:ident = $scope:ident),+ $(,)?) => {
        $(
            #[doc = concat!("Needs `KeyScope::", stringify!($scope), "`.")]
            #[derive(Debug)]
            pub(crate) enum $name {}
            impl ScopeNeeded for $name {
                const SCOPE: KeyScope = KeyScope::$scope;
            }
        )+
    };
}

needed! {
    ReadTasks = TasksRead,
    BeginTasks = TasksBegin,
    ApproveTasks = TasksApprove,
    OperateTasks = TasksOperate,
    ReadEvents = EventsRead,
    ReplayEvents = EventsWrite,
    ReadManifests = ManifestsRead,
    ReadAudit = AuditRead,
    ReadCampaigns = CampaignsRead,
    OperateCampaigns = CampaignsWrite,
}

/// A caller who may do what needs a scope.
#[derive(Debug)]
pub(crate) struct May<S>(pub Caller, pub PhantomData<S>);

impl<S: ScopeNeeded> FromRequestParts<Arc<Api>> for May<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, api).await?;
        caller.needs(S::SCOPE)?;
        Ok(Self(caller, PhantomData))
    }
}
