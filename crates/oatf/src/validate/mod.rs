//! `validate`: every rule of the format, one row each.
//!
//! The doc comment of a row is what `proofhouse explain CODE` prints. To add a rule, add a row and
//! the function it names; nothing else changes.

mod bindings;
mod execution;
mod expressions;
mod hints;
mod indicators;
mod metadata;
mod templates;
mod view;

use proofhouse_source::{Diagnostic, DiagnosticSeverity, ReadLimits};

use crate::error::ValidationError;
use crate::model::Document;
use crate::primitives::nests_deeper;
use view::ValidationPass;

/// What [`validate`] found.
///
/// ```
/// use proofhouse_oatf::{Document, Attack, validate};
/// let result = validate(&Document::new(Attack::default()));
/// assert!(!result.is_valid());
/// assert_eq!(result.errors[0].rule, "V-030");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ValidationResult {
    /// Violated rules, ordered by place.
    pub errors: Vec<ValidationError>,
    /// What is allowed but doubtful, ordered by place.
    pub warnings: Vec<Diagnostic>,
}

impl ValidationResult {
    /// Whether no rule is violated.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Checks every rule and reports every violation.
///
/// ```
/// let document = proofhouse_oatf::parse(r#"
/// oatf: "0.1"
/// attack:
///   version: 0
///   execution: {mode: mcp_server, state: {tools: []}}
///   indicators: []
/// "#).unwrap();
/// let result = proofhouse_oatf::validate(&document);
/// let rules: Vec<_> = result.errors.iter().map(|error| error.rule).collect();
/// assert_eq!(rules, ["V-035", "V-006"]);
/// ```
#[must_use]
pub fn validate(document: &Document) -> ValidationResult {
    let mut check = ValidationPass::new(document);
    if has_deep_values(&mut check) {
        // The rules walk through values by recursion.
        return check.finish();
    }
    for rule in RULES {
        check.begin(rule);
        (rule.check)(&mut check);
    }
    check.finish()
}

/// One row of the table.
pub(crate) struct ValidationRule {
    pub(crate) code: &'static str,
    pub(crate) severity: DiagnosticSeverity,
    pub(crate) spec_ref: &'static str,
    /// The doc comment, one line each.
    pub(crate) doc: &'static [&'static str],
    check: fn(&mut ValidationPass<'_>),
}

macro_rules! rules {
    ($( $(#[doc = $doc:literal])+ $code:literal $severity:ident $spec_ref:literal => $check:path; )+) => {
        /// Every rule, in the order of its code.
        pub(crate) static RULES: &[ValidationRule] = &[
            $(ValidationRule {
                code: $code,
                severity: DiagnosticSeverity::$severity,
                spec_ref: $spec_ref,
                doc: &[$($doc),+],
                check: $check,
            }),+
        ];
    };
}

/// What is over a limit of ours, found by the rules about small languages.
static OVER_LIMIT: ValidationRule = ValidationRule {
    code: "PH-105",
    severity: DiagnosticSeverity::Error,
    spec_ref: "own",
    doc: &[],
    check: by_parse,
};

/// What a program built and no reader would take.
static TOO_DEEP: ValidationRule = ValidationRule {
    code: "PH-006",
    severity: DiagnosticSeverity::Error,
    spec_ref: "own",
    doc: &[],
    check: by_parse,
};

/// Reports values that are nested deeper than the text of a document may be.
fn has_deep_values(check: &mut ValidationPass<'_>) -> bool {
    check.begin(&TOO_DEEP);
    let levels = ReadLimits::default().max_depth;
    let mut found = false;
    for (path, value) in check.document.values() {
        if nests_deeper(value, levels.saturating_sub(path.segments().len())) {
            check.report(&path, format!("nested deeper than {levels} levels"));
            found = true;
        }
    }
    found
}

/// For rules that only text can break; the reader has reported them.
fn by_parse(_: &mut ValidationPass<'_>) {}

rules! {
    /// `oatf` is present and names a supported version.
    ///
    /// The only supported version is "0.1". Quote it: without quotes YAML reads a number.
    "V-001" Error "format §11.1.2, SDK §2.2" => metadata::version;
    /// `oatf` is the first key of the document. Reported as the warning W-001.
    "V-002" Warning "format §11.1.2, SDK §2.2" => by_parse;
    /// There is exactly one `attack`, and it is a mapping.
    ///
    /// A file describes one attack; write one file for each.
    "V-003" Error "format §11.1.3, SDK §2.2" => by_parse;
    /// `attack.execution` is present.
    ///
    /// It is the only field an attack needs: it says what the attacking side does.
    "V-004" Error "format §11.1.4, SDK §2.3" => by_parse;
    /// Closed enumerations hold one of their members.
    ///
    /// Protocol, mode, surface and framework are open and checked by other rules. Inside protocol
    /// state this covers `elicitation_responses[].action` (accept, decline, cancel) and
    /// `elicitations[].mode` (form, url).
    "V-005" Error "format §11.1.5, SDK §2.20" => bindings::state_enums;
    /// `indicators`, if present, is not empty.
    ///
    /// Leave the key out for a document that only simulates.
    "V-006" Error "format §11.1.9, SDK §2.12" => indicators::not_empty;
    /// `execution.phases`, and the `phases` of each actor, are not empty.
    "V-007" Error "format §11.1.7 and §11.1.8, SDK §2.6" => execution::phases_not_empty;
    /// Each actor has at most one terminal phase, and it is the last.
    ///
    /// A phase without `trigger` is terminal: it lasts until the end, so nothing after it is
    /// ever reached.
    "V-008" Error "format §11.1.7, SDK §2.7" => execution::terminal_phase_last;
    /// The first phase of each actor has `state`.
    ///
    /// Later phases inherit the state of the phase before; the first has nothing to inherit.
    "V-009" Error "format §11.1.7, SDK §2.7" => execution::first_phase_has_state;
    /// Indicator ids that are written out are unique.
    "V-010" Error "format §11.1.10, SDK §2.12" => indicators::unique_ids;
    /// Phase names that are written out are unique within their actor.
    "V-011" Error "format §11.1.7, SDK §2.7" => execution::unique_phase_names;
    /// An indicator has exactly one of `pattern`, `expression` and `semantic`.
    "V-012" Error "format §11.1.11, SDK §2.12" => indicators::one_detection;
    /// Every regular expression compiles under RE2 syntax.
    ///
    /// RE2 matches in linear time and therefore has no look-around, no back-references and no
    /// possessive quantifiers. `\d`, `\w`, `\s` and `\b` are ASCII. Repetition counts end at
    /// 1000, those within each other multiplied. The constant patterns of `matches` in expressions count.
    "V-013" Error "format §6.2, SDK §5.3" => expressions::regexes;
    /// Every CEL expression parses.
    ///
    /// Expressions are plain CEL: what another implementation refuses to parse is refused here. A build without the
    /// feature `cel` cannot tell and warns.
    "V-014" Error "format §6.3, SDK §2.14" => expressions::cel;
    /// Every JSONPath parses (RFC 9535).
    "V-015" Error "format §5.5, SDK §5.6" => expressions::json_paths;
    /// Templates are closed: every `{{` has its `}}`.
    ///
    /// Write `\{{` for two braces that are not a template.
    "V-016" Error "format §5.6, SDK §5.5" => templates::closed;
    /// `severity.confidence` is from 0 to 100.
    "V-017" Error "format §4.3, SDK §2.4" => metadata::severity_confidence;
    /// `surface` names a known operation of the indicator's protocol.
    ///
    /// A warning only: protocols grow, and an operation that version 0.1 of the format does not
    /// list is still accepted. A surface that no message has makes an indicator that never
    /// matches.
    "V-018" Warning "format §7, SDK §2.21" => bindings::surfaces;
    /// `trigger.count` and `trigger.match` stand only beside `trigger.event`.
    "V-019" Error "format §5.3, SDK §2.8" => execution::trigger_needs_event;
    /// The YAML has no anchors, aliases, merge keys or custom tags.
    ///
    /// They hide what a document says from a reader and let a small file expand without bound.
    "V-020" Error "format §11.1.1" => by_parse;
    /// `indicator.target`, `pattern.target` and `semantic.target` are wildcard dot-paths.
    ///
    /// Segments of letters, digits, `_` and `-`, joined by dots, each optionally followed by
    /// `[*]`. The empty string is the whole message. For an index such as `[0]`, or a key with a
    /// dot, use a CEL expression.
    "V-021" Error "format §6.1, §6.2 and §6.4, SDK §5.1.2" => expressions::targets;
    /// `semantic.threshold`, if present, is from 0.0 to 1.0.
    "V-022" Error "format §6.4, SDK §2.15" => indicators::threshold;
    /// `attack.id` matches `^[A-Z][A-Z0-9-]*-[0-9]{3,}$`, for example ACME-001.
    "V-023" Error "format §4.2, SDK §2.3" => metadata::attack_id;
    /// Indicator ids extend the attack's id, for example ACME-001-01.
    ///
    /// With `attack.id` present, ids that are written out match
    /// `^[A-Z][A-Z0-9-]*-[0-9]{3,}-[0-9]{2,}$`, and what stands before the final number is that id.
    "V-024" Error "format §6.1, SDK §2.12" => indicators::id_format;
    /// `indicator.confidence`, if present, is from 0 to 100.
    "V-025" Error "format §6.1, SDK §2.12" => indicators::confidence;
    /// The values of `expression.variables` are simple dot-paths.
    "V-026" Error "format §6.3, SDK §5.1.1" => expressions::variable_paths;
    /// The keys of every match predicate are simple dot-paths.
    ///
    /// That is `trigger.match`, and `when` in every dispatch list. Wildcards and indices are not
    /// part of simple dot-paths.
    "V-027" Error "format §5.4, SDK §2.10" => expressions::predicate_paths;
    /// Without `execution.mode`, modes and protocols are written out.
    ///
    /// In multi-phase form every phase has the same `mode`; and, whatever the form, every
    /// indicator has `protocol`, because there is no one mode to take it from.
    "V-028" Error "format §5.1, SDK §2.7" => execution::explicit_modes;
    /// A trigger's event is one that the actor's mode can see.
    ///
    /// A warning only, and only for the five known modes. A phase that waits for an event that
    /// never comes does not end.
    "V-029" Warning "format §7, SDK §2.22" => bindings::events;
    /// Exactly one of `execution.state`, `.phases` and `.actors` is present; `state` needs `mode`.
    "V-030" Error "format §5.1, SDK §2.6" => execution::one_form;
    /// Actors have unique names of the form `[a-z][a-z0-9_]*`, a mode and at least one phase.
    ///
    /// There is at least one actor where there are `actors`.
    "V-031" Error "format §5.1, SDK §2.6a" => execution::actors;
    /// `{{actor.extractor}}` names an actor that exists.
    ///
    /// Without `actors` there is one actor, called `default`.
    "V-032" Error "format §5.5, SDK §5.5" => templates::actors_exist;
    /// A dispatch list has at most one entry without `when`.
    ///
    /// The entry without `when` is the fallback; a second one is never chosen.
    "V-033" Error "format §11.1.14, SDK §2.24" => bindings::one_fallback;
    /// Modes match `[a-z][a-z0-9_]*_(server|client)`, protocols match `[a-z][a-z0-9_]*`.
    "V-034" Error "format §5.1, SDK §2.20" => execution::mode_format;
    /// `attack.version` is at least 1.
    "V-035" Error "format §4.2, SDK §2.3" => metadata::document_version;
    /// `trigger.after` is a duration: `30s`, `5m`, `1h`, `2d`, or ISO 8601 such as PT1M30S.
    "V-036" Error "format §5.2, SDK §5.2" => execution::trigger_after;
    /// Extractor names match `[a-z][a-z0-9_]*`.
    "V-037" Error "format §5.5, SDK §2.9" => execution::extractor_names;
    /// `phase.extractors`, if present, is not empty.
    "V-038" Error "format §11.1.7, SDK §2.7" => execution::extractors_not_empty;
    /// The keys of `expression.variables` are CEL identifiers: `^[_a-zA-Z][_a-zA-Z0-9]*$`.
    "V-039" Error "format §11.1.15, SDK §2.14" => expressions::variable_names;
    /// A trigger has `event` or `after`.
    "V-040" Error "format §5.3, SDK §2.8" => execution::trigger_not_empty;
    /// An entry action has exactly one key besides `x-` ones.
    "V-041" Error "format §11.1.16, SDK §2.7a" => execution::one_action;
    /// A regex extractor's selector has a capture group, which is what it extracts.
    "V-042" Error "format §5.5, SDK §5.6" => expressions::capture_groups;
    /// `phase.on_enter`, if present, is not empty.
    "V-043" Error "format §5.2, SDK §2.7" => execution::on_enter_not_empty;
    /// With `actors`, a phase's `mode` equals its actor's.
    "V-044" Error "format §5.2, SDK §2.6a" => execution::phase_mode_matches;
    /// `attack.impact` has no duplicates.
    "V-045" Error "format §4.2, SDK §2.3" => metadata::unique_impact;
    /// `attack.grace_period` is a duration.
    "V-046" Error "format §4.2, SDK §5.2" => metadata::grace_period;
    /// `correlation` stands only beside `indicators`.
    "V-047" Error "SDK §2.3a" => indicators::correlation;
    /// `indicator.actor` names an actor of the document.
    ///
    /// Without `actors` there is one actor, called `default`.
    "V-048" Error "format §6.1, SDK §2.12" => indicators::actor_exists;
    /// `indicator.method`, if present, names the detection key that is present.
    "V-049" Error "format §6.1, SDK §2.12" => indicators::method_matches;
    /// `oatf` is not the first key of the document.
    ///
    /// Readers and tools look for the version first.
    "W-001" Warning "SDK §2.2" => by_parse;
    /// A mode is well-formed but not one of the five that version 0.1 binds.
    ///
    /// Tools skip actors whose mode they do not know.
    "W-002" Warning "SDK §2.20" => bindings::unknown_modes;
    /// An indicator's protocol is well-formed but not one that version 0.1 binds.
    "W-003" Warning "SDK §2.20" => bindings::unknown_protocols;
    /// A template names an extractor that its actor does not declare.
    ///
    /// At run time it becomes the empty string. The same code is reported at run time for any
    /// reference that does not resolve.
    "W-004" Warning "SDK §5.5" => templates::extractors_declared;
    /// An indicator looks at a protocol that no actor speaks, so it never matches.
    "W-005" Warning "SDK §2.12" => bindings::protocols_spoken;
    /// A `synthesize` block is present; it is reserved and needs a generation provider.
    "W-006" Warning "SDK §2.23" => bindings::synthesize;
    /// A semantic indicator is present; its outcome depends on the evaluator in use.
    "W-007" Warning "SDK §6.2" => indicators::semantic;
    /// Protocol state is a mapping.
    ///
    /// Of a document that a program built, what is read of it can be read, too: the entries of dispatch lists.
    "PH-101" Error "SDK §2.7" => hints::state_is_mapping;
    /// `trigger.count` is at least 1.
    "PH-102" Error "SDK §2.8" => hints::count_positive;
    /// A list or mapping that must hold something is empty: `impact`, `any_of`, `examples`.
    "PH-103" Error "SDK §2" => hints::not_empty;
    /// A pattern has a condition, and a condition has an operator such as `contains`.
    ///
    /// Of a document that a program built, a mapping to be equal to has no key of that name: written, it would be read as
    /// operators.
    "PH-104" Error "SDK §2.11" => hints::pattern_has_condition;
    /// Something well-formed is over a limit of this implementation.
    ///
    /// Regular expressions: 16 KiB, groups 100 deep, 2 MiB when compiled, 200 large ones in a document. Expressions: 16 KiB,
    /// 64 levels, 8192 parts. JSONPaths: 4 KiB, 32 levels, 4 descendant segments, and
    /// neither `match` nor `search`: their patterns would not be RE2 and have no time limit. Dot-paths: 64 segments; the
    /// specification recommends that. CEL: no messages such as `Type{…}`.
    "PH-105" Error "own" => by_parse;
    /// A key has nothing behind it and counts as absent.
    ///
    /// `trigger:` with an empty value makes a phase terminal, which is rarely what was meant.
    "PH-201" Warning "own" => by_parse;
    /// An indicator can only match what the document itself sends.
    ///
    /// Direction is the protocol role: on a server actor the response is ours, on a client actor
    /// the request is. Such an indicator shows that the attack was delivered, not that the agent
    /// complied: with `correlation: any` it makes an agent that resists look exploited. Look at the
    /// other side. Give it `tier: ingested` only where delivery itself is to be told, beside others
    /// under `correlation: all`.
    "PH-202" Warning "own" => hints::matches_own_traffic;
    /// `execution.mode` has no effect beside `actors`; each actor has its own.
    "PH-203" Warning "own" => hints::mode_beside_actors;
    /// A mapping looks like a condition with a mistyped operator and is compared for equality.
    "PH-204" Warning "own" => by_parse;
}
