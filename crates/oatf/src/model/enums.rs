//! The closed enumerations. The open ones (protocol, mode, surface, framework) are in `open.rs`.

use std::fmt;

/// A string that is not a member of a closed enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariant {
    /// What was found.
    pub found: String,
    /// What would have been accepted.
    pub expected: &'static [&'static str],
}

impl fmt::Display for UnknownVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not one of {}",
            self.found,
            self.expected.join(", ")
        )
    }
}

impl std::error::Error for UnknownVariant {}

/// Declares an enumeration whose members have one canonical string each.
macro_rules! closed_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident => $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $name {
            /// Every member's canonical string, in the order of the specification.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// Every member, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The canonical string.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::UnknownVariant;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $( $text => Ok(Self::$variant), )+
                    _ => Err($crate::model::UnknownVariant {
                        found: text.to_owned(),
                        expected: Self::NAMES,
                    }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use closed_enum;

closed_enum! {
    /// How far an attack got, from least to most; the order is the specification's.
    pub enum Tier {
        /// The payload entered the model's context.
        Ingested => "ingested",
        /// The agent acted on it within its own boundary.
        LocalAction => "local_action",
        /// The agent's action crossed a trust boundary.
        BoundaryBreach => "boundary_breach",
    }
}

closed_enum! {
    /// How bad an attack is.
    pub enum SeverityLevel {
        /// An observation only.
        Informational => "informational",
        /// Little harm.
        Low => "low",
        /// Some harm.
        Medium => "medium",
        /// Much harm.
        High => "high",
        /// Full compromise.
        Critical => "critical",
    }
}

closed_enum! {
    /// A category of harm.
    pub enum Impact {
        /// The agent behaves as the attacker wants.
        BehaviorManipulation => "behavior_manipulation",
        /// Data leaves.
        DataExfiltration => "data_exfiltration",
        /// Data is changed.
        DataTampering => "data_tampering",
        /// The agent does what nobody allowed.
        UnauthorizedActions => "unauthorized_actions",
        /// Information is revealed.
        InformationDisclosure => "information_disclosure",
        /// Credentials are taken.
        CredentialTheft => "credential_theft",
        /// The service suffers.
        ServiceDisruption => "service_disruption",
        /// The attacker gains rights.
        PrivilegeEscalation => "privilege_escalation",
    }
}

closed_enum! {
    /// The type of an attack, whatever protocol carries it.
    pub enum Category {
        /// Tools, skills or prompts are described falsely.
        CapabilityPoisoning => "capability_poisoning",
        /// Answers are made up.
        ResponseFabrication => "response_fabrication",
        /// The conversation or state is tampered with.
        ContextManipulation => "context_manipulation",
        /// A person's control is avoided.
        OversightBypass => "oversight_bypass",
        /// The behaviour changes over time.
        TemporalManipulation => "temporal_manipulation",
        /// Resources are exhausted.
        AvailabilityDisruption => "availability_disruption",
        /// One protocol is used to reach another.
        CrossProtocolChain => "cross_protocol_chain",
    }
}

closed_enum! {
    /// The life of a document.
    pub enum Status {
        /// Being written.
        Draft => "draft",
        /// Being tried.
        Experimental => "experimental",
        /// To be relied on.
        Stable => "stable",
        /// To be replaced.
        Deprecated => "deprecated",
    }
}

closed_enum! {
    /// How indicator verdicts combine.
    pub enum CorrelationLogic {
        /// One match is enough.
        Any => "any",
        /// Every indicator must match.
        All => "all",
    }
}

closed_enum! {
    /// The outcome of one indicator.
    pub enum IndicatorResult {
        /// The indicator saw what it looks for.
        Matched => "matched",
        /// It did not.
        NotMatched => "not_matched",
        /// It could not be evaluated because something failed.
        Error => "error",
        /// It was not evaluated.
        Skipped => "skipped",
    }
}

closed_enum! {
    /// The outcome of one attack.
    pub enum AttackResult {
        /// The agent complied.
        Exploited => "exploited",
        /// The agent did not comply.
        NotExploited => "not_exploited",
        /// Some but not all indicators matched, and all had to.
        Partial => "partial",
        /// There is no trustworthy answer.
        Error => "error",
    }
}

closed_enum! {
    /// Which side of an exchange an extractor reads; protocol roles, not network direction.
    pub enum ExtractorSource {
        /// The request.
        Request => "request",
        /// The response.
        Response => "response",
    }
}

closed_enum! {
    /// How an extractor finds its value.
    pub enum ExtractorType {
        /// By an RFC 9535 JSONPath.
        JsonPath => "json_path",
        /// By the first capture group of a regular expression.
        Regex => "regex",
    }
}

closed_enum! {
    /// A hint for engines that classify intents.
    pub enum SemanticIntentClass {
        /// Instructions smuggled into data.
        PromptInjection => "prompt_injection",
        /// Data to be carried out.
        DataExfiltration => "data_exfiltration",
        /// Rights to be gained.
        PrivilegeEscalation => "privilege_escalation",
        /// A person or model to be talked into something.
        SocialEngineering => "social_engineering",
        /// Earlier instructions to be set aside.
        InstructionOverride => "instruction_override",
    }
}

closed_enum! {
    /// How closely a mapping fits.
    pub enum Relationship {
        /// The attack implements the entry.
        Primary => "primary",
        /// The attack is associated with the entry.
        Related => "related",
    }
}

closed_enum! {
    /// The level of a `log` action.
    pub enum LogLevel {
        /// For information.
        Info => "info",
        /// Worth a look.
        Warn => "warn",
        /// Something is wrong.
        Error => "error",
    }
}

closed_enum! {
    /// How an elicitation asks.
    pub enum ElicitationMode {
        /// With a form.
        Form => "form",
        /// With a link.
        Url => "url",
    }
}

closed_enum! {
    /// Which side of an operation an indicator looks at.
    pub enum Direction {
        /// The request.
        Request => "request",
        /// The response.
        Response => "response",
    }
}

closed_enum! {
    /// How an indicator is evaluated.
    pub enum IndicatorMethod {
        /// By a pattern.
        Pattern => "pattern",
        /// By a CEL expression.
        Expression => "expression",
        /// By meaning.
        Semantic => "semantic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_members_agree() {
        assert_eq!(Tier::NAMES.len(), Tier::ALL.len());
        for tier in Tier::ALL {
            assert_eq!(tier.as_str().parse::<Tier>(), Ok(*tier));
        }
        let error = "huge".parse::<SeverityLevel>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`huge` is not one of informational, low, medium, high, critical"
        );
    }

    #[test]
    fn tiers_are_ordered() {
        assert!(Tier::Ingested < Tier::LocalAction && Tier::LocalAction < Tier::BoundaryBreach);
    }
}
