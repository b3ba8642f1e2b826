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
