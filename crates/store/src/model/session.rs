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
