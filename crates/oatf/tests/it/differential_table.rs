//! The differences to the public crate, each with its reason and the sentence of the specification behind it.

/// A class of differences, why we differ, and what the specification says.
pub(crate) struct Difference {
    pub(crate) class: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) sentence: &'static str,
}

/// Every class of differences that there is.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        class: "expression: Error here, NotMatched there",
        reason: "`size` of a number: CEL has no such overload, so it is an error that is passed on; they get an answer",
        sentence: "§4.3: If the evaluator returns an error, propagate it as `Err(EvaluationError)`",
    },
    Difference {
        class: "only they refuse: V-013",
        reason: "they ask the syntax of the `regex` crate, where `{{` is an error; in RE2 it is text",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only we refuse: PH-009 in classification",
        reason: "they pass over unknown keys of a classification; the schema has none, not even `x-` ones",
        sentence: "§2.5 lists no extension fields, unlike §2.3, §2.6, §2.7 and §2.12",
    },
    Difference {
        class: "only we refuse: PH-009 in correlation",
        reason: "they pass over unknown keys of a correlation, so that a misspelled `logic` is `any`",
        sentence: "§2.3a lists `logic` and no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in expression",
        reason: "they pass over unknown keys of an expression",
        sentence: "§2.14 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in references",
        reason: "they pass over unknown keys of a reference",
        sentence: "§2.17 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in severity",
        reason: "they pass over unknown keys of a severity",
        sentence: "§2.4 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-014",
        reason: "they take any text as a date",
        sentence: "§2.3: `created` and `modified` are DateTime or Date",
    },
];

/// Those in documents with whole subtrees changed.
pub(crate) const OF_SUBTREES: &[Difference] = &[
    Difference {
        class: "expression: Error here, NotMatched there",
        reason: "`size` of a number: CEL has no such overload, so it is an error that is passed on; they get an answer",
        sentence: "§4.3: If the evaluator returns an error, propagate it as `Err(EvaluationError)`",
    },
    Difference {
        class: "normal form: `id` differs",
        reason: "a generated id that another indicator has already is not given twice",
        sentence: "§4.5: `indicator_verdicts` maps indicator IDs to their individual verdicts",
    },
    Difference {
        class: "only we refuse: PH-009 in classification",
        reason: "they pass over unknown keys of a classification",
        sentence: "§2.5 lists no extension fields, unlike §2.3, §2.6, §2.7 and §2.12",
    },
    Difference {
        class: "only we refuse: PH-009 in correlation",
        reason: "they pass over unknown keys of a correlation, so that a misspelled `logic` is `any`",
        sentence: "§2.3a lists `logic` and no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in mappings",
        reason: "they pass over unknown keys of a framework mapping",
        sentence: "§2.18 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in pattern",
        reason: "they pass over unknown keys of a pattern, so that a misspelled operator looks at nothing",
        sentence: "§2.13 lists `target`, `condition` and the operators, and no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in references",
        reason: "they pass over unknown keys of a reference",
        sentence: "§2.17 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-009 in severity",
        reason: "they pass over unknown keys of a severity",
        sentence: "§2.4 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-010 for responses",
        reason: "they pass over a dispatch list that is no list",
        sentence: "§2.24: dispatch lists are of `ResponseEntry`; §5.7: `entries: List<ResponseEntry>`",
    },
    Difference {
        class: "only we refuse: PH-010 for task_responses",
        reason: "they pass over a dispatch list that is no list",
        sentence: "§2.24: dispatch lists are of `ResponseEntry`; §5.7: `entries: List<ResponseEntry>`",
    },
    Difference {
        class: "only we refuse: PH-014",
        reason: "they take any text as a date",
        sentence: "§2.3: `created` and `modified` are DateTime or Date",
    },
    Difference {
        class: "other ids",
        reason: "a generated id that another indicator has already is not given twice",
        sentence: "§4.5: `indicator_verdicts` maps indicator IDs to their individual verdicts",
    },
];

/// Those in random regular expressions.
pub(crate) const OF_REGEXES: &[Difference] = &[
    Difference {
        class: "expression: Matched here, Error there",
        reason: "their `matches` is that of the `regex` crate, which knows no `\\p{^Lu}`, `\\Q…\\E` or `\\101`",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "expression: Matched here, NotMatched there",
        reason: "in RE2 `\\W`, `\\d`, `\\b` and the like are about ASCII; theirs are about all of Unicode",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "expression: NotMatched here, Error there",
        reason: "their `matches` is that of the `regex` crate, which refuses RE2's `{,2}`, `[[]` and `\\Q…\\E`",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "expression: NotMatched here, Matched there",
        reason: "in RE2 `\\<` and `\\>` are the characters; theirs are the ends of words, and `\\w` is all of Unicode",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: Unicode property not found",
        reason: "RE2 negates properties with `\\p{^Lu}`",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: backreferences are not supported",
        reason: "`\\101` is a character by its octal number",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: repetition operator missing expression",
        reason: "`{` that begins no repetition is a character",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: repetition quantifier expects a valid decimal",
        reason: "`{,2}` is text",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: unclosed character class",
        reason: "`[` within a class is a character",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: unclosed counted repetition",
        reason: "`{` that begins no repetition is a character",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-013: unrecognized escape sequence",
        reason: "RE2 quotes with `\\Q…\\E`, and any byte with `\\C`",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
    Difference {
        class: "only they refuse: V-042",
        reason: "`(?<n>a)` is a group, too; they look for `(` and `(?P<`",
        sentence: "V-042: a regex extractor's selector has a capture group; §5.6: \"at least one capture group\"",
    },
    Difference {
        class: "only we refuse: V-013 in CEL",
        reason: "they do not look at the patterns of `matches`",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "only we refuse: V-013: Unicode property value not found",
        reason: "RE2 has general categories and scripts, and no properties such as `Alphabetic`",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "only we refuse: V-013: character range in wrong order",
        reason: "`[a--b]` is a difference of classes in theirs, and a wrong range in RE2",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "only we refuse: V-013: repetition count above",
        reason: "RE2 repeats 1,000 times at most",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "only we refuse: V-013: repetition operators cannot be stacked; RE has no possessive quantifiers",
        reason: "`a**` and `a++` are repetitions of repetitions in theirs",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "only we refuse: V-013: unknown escape",
        reason: "RE2 has no `\\u0061`, `\\G` and the like",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "only we refuse: V-013: unknown flag",
        reason: "RE2 has the flags `i`, `m`, `s` and `U`",
        sentence: "§5.3: SDKs MUST reject patterns with features outside the RE2 subset during `validate`",
    },
    Difference {
        class: "pattern: NotMatched here, Matched there",
        reason: "in RE2 `\\<` and `\\>` are the characters; theirs are the ends of words, and `\\w` is all of Unicode",
        sentence: "§5.3: Patterns MUST be compiled with RE2 semantics",
    },
];

/// Those in texts that were spoiled.
pub(crate) const OF_TEXTS: &[Difference] = &[
    Difference {
        class: "normal form: `max_tier` differs",
        reason: "`no` is a text in YAML 1.2; they read it as YAML 1.1, as `false`",
        sentence: "§2.1: Value is a JSON-like value; the format is YAML 1.2, whose core schema knows `true` and `false` only",
    },
    Difference {
        class: "only they refuse: parse: custom YAML tags are not allowed in OATF documents",
        reason: "`!!str` and its like are tags of the core schema, and mean what YAML says",
        sentence: "V-020 (§11.1.1) forbids custom tags",
    },
    Difference {
        class: "only they refuse: parse: line  column : cannot deserialize null into string; use Option<String>",
        reason: "`~: 1` in a state: a key is its text as written, as `1` and `true` are, which they take",
        sentence: "§2.1: Value is a map of String to Value",
    },
    Difference {
        class: "only we refuse: PH-001",
        reason: "they read a NUL byte, which no YAML text may hold",
        sentence: "§2.1: String is a UTF-8 string; YAML 1.2, section 5.1, has no NUL among its characters",
    },
    Difference {
        class: "only we refuse: PH-005",
        reason: "they read U+007F, which is not printable and so not in YAML",
        sentence: "§2.1: the text is YAML 1.2, whose section 5.1 ends ASCII at U+007E",
    },
    Difference {
        class: "only we refuse: PH-009 in mappings",
        reason: "they pass over unknown keys of a framework mapping",
        sentence: "§2.18 lists no extension fields",
    },
    Difference {
        class: "only we refuse: PH-010 for impact",
        reason: "they read `{name: null}` as the member `name`",
        sentence: "§2.3: `impact` is a list of `Impact`, and §2.20 gives its members as strings",
    },
    Difference {
        class: "only we refuse: PH-010 for url",
        reason: "they read the number `.inf` as a text",
        sentence: "§2.17: `url` is a String",
    },
    Difference {
        class: "only we refuse: PH-012",
        reason: "they read `.nan` as null",
        sentence: "§2.1: Value is JSON-like, and JSON has no such number",
    },
    Difference {
        class: "only we refuse: V-020",
        reason: "`!` alone is no tag of the core schema; they pass over it where a space follows",
        sentence: "V-020 (§11.1.1) forbids custom tags",
    },
];
