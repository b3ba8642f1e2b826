//! What the guard tells of: a finding is data, and every output is made from it.

use proofhouse_source::printable_line;
use serde::Serialize;

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardDecision {
    /// It passed.
    Allow,
    /// It passed, and was written down.
    Log,
    /// It passed without a part of it.
    Redact,
    /// Somebody is asked.
    Ask,
    /// It did not pass.
    Block,
}

impl GuardDecision {
    /// All of them, from the mildest.
    pub const ALL: &'static [Self] =
        &[Self::Allow, Self::Log, Self::Redact, Self::Ask, Self::Block];

    /// Its word in policies and findings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Log => "log",
            Self::Redact => "redact",
            Self::Ask => "ask",
            Self::Block => "block",
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// For the record.
    Info,
    /// Somebody should look at it.
    Medium,
    /// Somebody should look at it now.
    High,
}

impl FindingSeverity {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Its number in OCSF.
    #[must_use]
    pub const fn ocsf(self) -> u8 {
        match self {
            Self::Info => 1,
            Self::Medium => 3,
            Self::High => 4,
        }
    }
}

/// Declares the codes of findings: the word, how bad it is, and what it means, which the documentation prints.
macro_rules! codes {
    ($( $(#[doc = $doc:literal])+ $name:ident = $word:literal $severity:ident, )+) => {
        /// What was found.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum FindingCode {
            $( $(#[doc = $doc])+ $name, )+
        }

        impl FindingCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$( Self::$name, )+];

            /// Its word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => $word, )+ }
            }

            /// How bad it is.
            #[must_use]
            pub const fn severity(self) -> FindingSeverity {
                match self { $( Self::$name => FindingSeverity::$severity, )+ }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$name => concat!($($doc),+), )+ }
            }
        }
    };
}

codes! {
    /// A definition is there that was not approved.
    PinAdded = "pin_added" High,
    /// A definition that was approved is gone.
    PinRemoved = "pin_removed" Medium,
    /// A definition is not what was approved.
    PinChanged = "pin_changed" High,
    /// A server was seen for the first time, and its definitions were recorded.
    PinRecorded = "pin_recorded" Info,
    /// The lock could not be read or written.
    PinFailed = "pin_failed" High,
    /// A definition has characters that cannot be seen, or that change the order of others; or its name has control
    /// characters, or white space at its ends.
    HiddenText = "hidden_text" High,
    /// A name looks like another one, or mixes letters that look alike.
    LookalikeName = "lookalike_name" High,
    /// Another server has a tool of this name.
    ShadowedName = "shadowed_name" Medium,
    /// A list of definitions did not end, so its definitions are neither recorded nor missed.
    PinUnfinished = "pin_unfinished" Medium,
    /// A server lists a name twice.
    DuplicateName = "duplicate_name" High,
    /// A call of a tool whose definition is withheld.
    WithheldCall = "withheld_call" High,
    /// A call of a tool whose definition was not compared with the lock in this session, or a message to an agent whose card was not found.
    UncomparedCall = "uncompared_call" Medium,
    /// A rule of the policy matched.
    RuleMatched = "rule_matched" Medium,
    /// A rule of the policy could not be evaluated.
    RuleFailed = "rule_failed" Medium,
    /// Somebody was asked, and allowed it.
    AskAllowed = "ask_allowed" Info,
    /// Somebody was asked and said no, nobody answered in time, or nobody could be asked.
    AskDenied = "ask_denied" Medium,
    /// An indicator of a threat document matched.
    IndicatorMatched = "indicator_matched" Medium,
    /// An indicator of a threat document could not be evaluated.
    IndicatorFailed = "indicator_failed" Info,
    /// A message is not JSON-RPC that can be judged.
    Malformed = "malformed" Medium,
    /// A message is longer than what is judged.
    TooLong = "too_long" Medium,
    /// The server redirects to an address past the guard.
    Redirected = "redirected" Medium,
    /// A server answered what nobody asked, or used an id of the guard.
    Unasked = "unasked" Medium,
    /// Not all of a result is followed, because the budget is used up.
    TaintBudget = "taint_budget" Info,
    /// The server ended while answers were due.
    ServerEnded = "server_ended" Medium,
    /// The guard of another server shares the session.
    PartnerJoined = "partner_joined" Info,
    /// The guard of another server left the session; what it saw stays known.
    PartnerLeft = "partner_left" Info,
    /// The guard of another server does not answer; values are not followed from one to the other.
    PartnerLost = "partner_lost" Medium,
    /// Guards of other servers cannot be reached, so values are followed within this server alone.
    SessionAlone = "session_alone" Medium,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardFinding {
    /// What.
    pub code: FindingCode,
    /// How bad it is.
    pub severity: FindingSeverity,
    /// What became of the message.
    pub decision: GuardDecision,
    /// The server.
    pub server: String,
    /// The tool, prompt, template or method that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Where in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The rule of the policy, or the indicator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What was found, for people.
    pub message: String,
    /// The message of the session, from 1; the number it has in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
}

impl GuardFinding {
    /// A finding with nothing but what every finding has.
    #[must_use]
    pub fn new(
        code: FindingCode,
        decision: GuardDecision,
        server: &str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity: code.severity(),
            decision,
            server: server.to_owned(),
            item: None,
            path: None,
            rule: None,
            message: message.into(),
            sequence: None,
        }
    }

    /// The finding on one line, for people.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = format!("{}: {}", self.decision.as_str(), self.server);
        if let Some(item) = &self.item {
            line.push_str(&format!("/{item}"));
        }
        line.push_str(&format!(": {} [{}", self.message, self.code.as_str()));
        if let Some(rule) = &self.rule {
            line.push_str(&format!(" {rule}"));
        }
        line.push(']');
        printable_line(&line)
    }

    /// The same about a tool, prompt, template or method.
    #[must_use]
    pub fn about(mut self, item: impl Into<String>) -> Self {
        self.item = Some(item.into());
        self
    }

    /// The same at a place in it.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same by a rule or an indicator.
    #[must_use]
    pub fn by(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }
}
