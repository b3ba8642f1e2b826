//! The revisions of MCP. One row each: this is the place that a new one is added to.

use super::error;

names! {
    /// A revision of MCP, which is named by its date. Later ones are greater.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpRevision;
    ///
    /// let asked = McpRevision::parse("2025-06-18").unwrap();
    /// assert!(asked.has_sessions() && asked < McpRevision::LATEST);
    /// assert_eq!(asked.to_string(), "2025-06-18");
    /// assert_eq!(McpRevision::parse("2025-06-19"), None);
    /// ```
    pub enum McpRevision {
        /// The first that was published; HTTP with two endpoints.
        V2024_11_05 = "2024-11-05",
        /// Streamable HTTP, and batches.
        V2025_03_26 = "2025-03-26",
        /// The version header, structured results and elicitation; no batches any more.
        V2025_06_18 = "2025-06-18",
        /// Tasks, elicitation by URL, and streams that begin with an empty event.
        V2025_11_25 = "2025-11-25",
        /// No handshake and no sessions: every request says itself what it is.
        V2026_07_28 = "2026-07-28",
    }
}

impl McpRevision {
    /// The newest.
    pub const LATEST: Self = Self::ALL[Self::ALL.len() - 1];

    /// The first whose requests stand alone.
    pub const FIRST_STATELESS: Self = Self::V2026_07_28;

    /// The newest with a handshake, and what a server answers to a handshake that asks for one that it does not know.
    pub const LATEST_WITH_SESSIONS: Self = Self::V2025_11_25;

    /// What a server must assume when a request of a session does not say its revision in a header.
    pub const WITHOUT_HEADER: Self = Self::V2025_03_26;

    /// Which of the two ways to speak it belongs to.
    #[must_use]
    pub const fn era(self) -> McpEra {
        if self.is_stateless() {
            McpEra::Modern
        } else {
            McpEra::Legacy
        }
    }

    /// Whether a conversation begins with `initialize` and belongs to a session.
    #[must_use]
    pub const fn has_sessions(self) -> bool {
        !self.is_stateless()
    }

    /// Whether every request stands alone.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        self as usize >= Self::FIRST_STATELESS as usize
    }

    /// Whether one message may be a list of messages.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }

    /// Whether clients say the revision in the header `MCP-Protocol-Version`.
    #[must_use]
    pub const fn has_version_header(self) -> bool {
        self as usize >= Self::V2025_06_18 as usize
    }

    /// Whether results of tools may have `structuredContent`.
    #[must_use]
    pub const fn has_structured_content(self) -> bool {
        self as usize >= Self::V2025_06_18 as usize
    }

    /// Whether wrong arguments of a tool are told in the result of the call, where models read it, and not by an error
    /// of the protocol.
    #[must_use]
    pub const fn has_input_errors_in_results(self) -> bool {
        self as usize >= Self::V2025_11_25 as usize
    }

    /// Whether clients know that an event stream may begin with an event that has an id and no data, so that it can
    /// be resumed. Those of earlier revisions would read it as a message.
    #[must_use]
    pub const fn primes_streams(self) -> bool {
        self as usize >= Self::V2025_11_25 as usize
    }

    /// Whether headers of a request repeat what its body says.
    #[must_use]
    pub const fn mirrors_in_headers(self) -> bool {
        self.is_stateless()
    }

    /// The code of the error for a resource that is not there.
    #[must_use]
    pub const fn resource_not_found_code(self) -> i64 {
        self.era().resource_not_found_code()
    }

    /// The revisions with a handshake, the newest last.
    pub fn all_with_sessions() -> impl DoubleEndedIterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|revision| revision.has_sessions())
    }

    /// The revisions whose requests stand alone, the newest last.
    pub fn all_stateless() -> impl DoubleEndedIterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|revision| revision.is_stateless())
    }

    /// The revision that a server agrees to in a handshake: the one that is asked for if it has handshakes, else the
    /// newest that has. A client that asks for a stateless one with a handshake gets the latter, for one that is both
    /// would confuse it.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpRevision;
    ///
    /// for (asked, agreed) in [
    ///     ("2025-03-26", McpRevision::V2025_03_26),
    ///     ("2026-07-28", McpRevision::V2025_11_25),
    ///     ("1999-01-01", McpRevision::V2025_11_25),
    /// ] {
    ///     assert_eq!(McpRevision::negotiate(asked), agreed);
    /// }
    /// ```
    #[must_use]
    pub fn negotiate(asked: &str) -> Self {
        let known = Self::parse(asked).filter(|revision| revision.has_sessions());
        known.unwrap_or(Self::LATEST_WITH_SESSIONS)
    }
}

/// The two ways to speak MCP. Which revision is meant matters less often than which of these it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McpEra {
    /// Up to 2025-11-25: a handshake and a session.
    Legacy,
    /// From 2026-07-28: every request stands alone.
    Modern,
}

impl McpEra {
    /// The era of a version that a peer names; dates after the last revision with sessions are modern, whether we
    /// know them or not. `None` for what is not a date, or not one of the protocol.
    ///
    /// ```
    /// use proofhouse_protocol::mcp::McpEra;
    ///
    /// assert_eq!(McpEra::of_version("2025-11-25"), Some(McpEra::Legacy));
    /// assert_eq!(McpEra::of_version("2031-01-01"), Some(McpEra::Modern));
    /// assert_eq!(McpEra::of_version("2020-01-01"), None);
    /// assert_eq!(McpEra::of_version("newest"), None);
    /// ```
    #[must_use]
    pub fn of_version(version: &str) -> Option<Self> {
        if let Some(known) = McpRevision::parse(version) {
            return Some(known.era());
        }
        let last = McpRevision::LATEST_WITH_SESSIONS.as_str();
        let is_date = version.len() == last.len() && version.is_ascii();
        let is_later = is_date && version.starts_with("20") && version > last;
        is_later.then_some(Self::Modern)
    }

    /// The newest revision of it.
    #[must_use]
    pub const fn latest(self) -> McpRevision {
        match self {
            Self::Legacy => McpRevision::LATEST_WITH_SESSIONS,
            Self::Modern => McpRevision::LATEST,
        }
    }

    /// The code of the error for a resource that is not there.
    #[must_use]
    pub const fn resource_not_found_code(self) -> i64 {
        match self {
            Self::Legacy => error::RESOURCE_NOT_FOUND,
            Self::Modern => crate::rpc::INVALID_PARAMS,
        }
    }
}

/// The stateless version to speak of those that a server offers: the newest that is known here, else the first of
/// those to come. `None` when it offers none.
///
/// ```
/// use proofhouse_protocol::mcp::newest_offered;
///
/// assert_eq!(newest_offered(["2025-11-25", "2026-07-28"]), Some("2026-07-28"));
/// assert_eq!(newest_offered(["2031-01-01"]), Some("2031-01-01"));
/// assert_eq!(newest_offered(["2025-11-25"]), None);
/// ```
#[must_use]
pub fn newest_offered<'v>(versions: impl IntoIterator<Item = &'v str>) -> Option<&'v str> {
    let modern: Vec<&str> = versions
        .into_iter()
        .filter(|version| McpEra::of_version(version) == Some(McpEra::Modern))
        .collect();
    let known = McpRevision::all_stateless()
        .rev()
        .find_map(|known| modern.iter().find(|version| **version == known.as_str()));
    known.or(modern.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_in_the_order_of_their_dates() {
        let dates: Vec<&str> = McpRevision::ALL
            .iter()
            .map(|known| known.as_str())
            .collect();
        assert!(dates.is_sorted(), "{dates:?}");
        for known in McpRevision::ALL {
            assert_eq!(McpRevision::parse(known.as_str()), Some(*known));
            assert_eq!(McpEra::of_version(known.as_str()), Some(known.era()));
            assert_ne!(known.has_sessions(), known.is_stateless());
        }
        let last = McpRevision::all_with_sessions().next_back();
        assert_eq!(last, Some(McpRevision::LATEST_WITH_SESSIONS));
        let first = McpRevision::all_stateless().next();
        assert_eq!(first, Some(McpRevision::FIRST_STATELESS));
    }

    #[test]
    fn only_stateless_versions_are_chosen() {
        for (offered, expected) in [
            (&["2027-01-01", "2026-07-28"][..], Some("2026-07-28")),
            (&["zzz", "zzzzzzzzzz", "20ä5-11-2"], None),
            (&[], None),
        ] {
            assert_eq!(newest_offered(offered.iter().copied()), expected);
        }
    }
}
