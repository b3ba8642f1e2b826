//! Where a schema and `validate` differ, and why: an unlisted difference fails the test.

/// What a schema accepts and `validate` refuses.
pub(super) struct SemanticRule {
    /// The code of the finding.
    pub(super) code: &'static str,
    /// The last keys of the places where it may be; none is anywhere.
    pub(super) keys: &'static [&'static str],
    /// Why the schema does not say it.
    pub(super) why: &'static str,
}

const fn rule(code: &'static str, why: &'static str) -> SemanticRule {
    SemanticRule {
        code,
        keys: &[],
        why,
    }
}

const fn at(code: &'static str, keys: &'static [&'static str], why: &'static str) -> SemanticRule {
    SemanticRule { code, keys, why }
}

/// The rules that the schemas do not state.
pub(super) const SEMANTIC: &[SemanticRule] = &[
    // Manifests.
    rule("TM-009", "the syntax and the variables of CEL"),
    rule("TM-010", "the syntax of JSONPath"),
    rule("TM-012", "references name what is there"),
    rule("TM-013", "how a URL with templates begins"),
    rule(
        "TM-014",
        "which headers may be set, and none twice in other letters",
    ),
    rule("TM-015", "no name is there twice, and the bytes of a text"),
    rule("TM-016", "one duration beside another"),
    rule("TM-017", "settings that are there"),
    rule("TM-020", "agents and tools of other manifests"),
    rule("TM-023", "steps that need a task"),
    rule("TM-029", "the syntax of cron, and the names of time zones"),
    rule(
        "TM-005",
        "a key of an action may stand in the shared block instead",
    ),
    // Project configuration.
    at(
        "PC-005",
        &[
            "endpoint",
            "environment",
            "name",
            "command",
            "ready",
            "allow",
            "until",
        ],
        "addresses, networks, programs, names of variables, and days that a month has",
    ),
    rule("PC-007", "the syntax of variables"),
    rule("PC-008", "what is probably a secret"),
    rule("PC-013", "which keys go together"),
    rule("PC-011", "files that are there"),
    rule("PC-012", "names differ between subjects"),
    // What the operator configures: every text may be a variable.
    rule("OC-004", "what a grant or a scheme needs"),
    rule("OC-007", "the syntax of variables"),
    rule("OC-012", "keys that are names of tools"),
    // Labelled cases.
    rule("LC-007", "which results a kind of case may have"),
    // Policies.
    rule("GP-007", "the syntax of CEL and of regular expressions"),
    rule("GP-009", "ids differ between rules"),
];

/// What a schema could say, at least in part, and does not say yet.
pub(super) const UNSTATED: &[SemanticRule] = &[rule(
    "OC-005",
    "durations, ports and schemes that are no variables",
)];

/// What a schema refuses although `validate` only warns, by the code of the warning.
pub(super) const WARNED: &[(&str, &str)] = &[
    ("TM-002", "a manifest of another kind is not ours to judge"),
    ("TM-018", "nothing behind a key counts as absent"),
    ("GP-006", "nothing behind a key counts as absent"),
    ("LC-006", "nothing behind a key counts as absent"),
    ("OC-010", "nothing behind a key counts as absent"),
    ("PC-010", "nothing behind a key counts as absent"),
];

/// What a schema refuses and `validate` accepts without a word: the format, the last key, and the reason.
pub(super) const SCHEMA_ONLY: &[(&str, &str, &str)] = &[
    ("cases", "name", "the reader takes empty names"),
    (
        "policy",
        "id",
        "the reader does not look at the letters of ids",
    ),
    (
        "policy",
        "decides",
        "the reader takes empty names of arguments",
    ),
    ("policy", "tool", "the reader takes empty names of tools"),
    (
        "policy",
        "free_text",
        "the reader takes empty names of fields",
    ),
    ("policy", "effects", "the reader takes empty words"),
];
