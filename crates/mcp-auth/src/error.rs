//! Why there is no token.

use proofhouse_wire::client::ClientError;

use crate::vault::VaultError;

/// Why a client could not be authorized. Shows no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizationError {
    /// The egress policy does not allow an address.
    #[error("{host}: {reason}")]
    EgressDenied {
        /// Whose address.
        host: String,
        /// Why not.
        reason: String,
    },
    /// A server did not answer, or not in full.
    #[error("{host} does not answer: {reason}")]
    Unavailable {
        /// Which.
        host: String,
        /// What went wrong.
        reason: String,
        /// How far it came.
        reached: EndpointReached,
    },
    /// What servers say about themselves cannot be used.
    #[error("{place}: {reason}")]
    Metadata {
        /// Where it was found.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// Something has to be configured.
    #[error("{0}")]
    Configuration(String),
    /// A person has to agree first.
    #[error("{0} wants a person to agree; run `proofhouse tool login` once")]
    NeedsConsent(String),
    /// The person, or the server that they were sent to, did not agree.
    #[error("no consent: {0}")]
    NoConsent(String),
    /// The answer of the authorization endpoint may come from somebody else.
    #[error("the authorization response is not accepted: {0}")]
    ForgedResponse(&'static str),
    /// A token endpoint refused, or a registration endpoint.
    #[error("{host} refuses: HTTP {status}{}", said(.error.as_deref(), .description.as_deref()))]
    Refused {
        /// Who.
        host: String,
        /// With which status.
        status: u16,
        /// Its code for it.
        error: Option<String>,
        /// What it says to people.
        description: Option<String>,
    },
    /// An answer is not what the endpoint has to answer.
    #[error("the answer of {host} cannot be used: {reason}")]
    Answer {
        /// Whose.
        host: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// The system gives no random numbers, or a key does not sign.
    #[error("this machine cannot sign or draw random numbers")]
    Machine,
    /// Tokens cannot be kept, or what was kept cannot be opened.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// How far a request came that got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointReached {
    /// There was no connection.
    Never,
    /// There was no answer in time.
    TooSlowly,
    /// The answer broke off, or was larger than it may be.
    InPart,
}

fn said(error: Option<&str>, description: Option<&str>) -> String {
    let parts = error.into_iter().chain(description);
    parts.map(|part| format!(", {part}")).collect()
}

impl AuthorizationError {
    /// The error of a request.
    pub(crate) fn of_request(host: &str, error: &ClientError) -> Self {
        let host = host.to_owned();
        match error {
            ClientError::Denied(denied) => Self::EgressDenied {
                host,
                reason: denied.clone(),
            },
            other => Self::Unavailable {
                host,
                reason: reason_of(other),
                reached: match other {
                    ClientError::Connect { .. } => EndpointReached::Never,
                    ClientError::TooSlow => EndpointReached::TooSlowly,
                    ClientError::Setup(_)
                    | ClientError::Url { .. }
                    | ClientError::Denied(_)
                    | ClientError::Broken(_)
                    | ClientError::TooLarge { .. }
                    | ClientError::EventTooLarge(_)
                    | ClientError::TooManyEvents { .. } => EndpointReached::InPart,
                },
            },
        }
    }

    /// Whether the same might work later without anybody doing anything.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
            Self::EgressDenied { .. }
            | Self::Metadata { .. }
            | Self::Configuration(_)
            | Self::NeedsConsent(_)
            | Self::NoConsent(_)
            | Self::ForgedResponse(_)
            | Self::Answer { .. }
            | Self::Machine
            | Self::Vault(_) => false,
        }
    }
}

/// What went wrong, without the URL: its query may hold a secret.
fn reason_of(error: &ClientError) -> String {
    match error {
        ClientError::Connect { reason, .. } | ClientError::Url { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}
