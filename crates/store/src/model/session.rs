//! Sessions: what a browser shows to be known again, and for what.

text_enum! {
    /// What something that a browser holds is good for.
    SessionKind {
        /// Somebody signed in to the dashboard.
        Dashboard = "dashboard",
        /// Somebody went to an identity provider to sign in, and is expected back once.
        SignIn = "sign_in",
    }
}

/// How often somebody may try something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptQuota {
    /// At once.
    pub burst: i64,
    /// The time after which there is another attempt, in milliseconds.
    pub period_ms: super::Millis,
}
