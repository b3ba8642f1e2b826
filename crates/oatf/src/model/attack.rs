//! The document, the attack envelope and what describes an attack.

use std::sync::Arc;

use proofhouse_source::{Diagnostic, DocPath, PathSegment, Source, Span};

use super::{
    Category, CorrelationLogic, DateOrDateTime, DurationText, Execution, Extensions, Framework,
    Impact, Indicator, Relationship, SeverityLevel, Status,
};

/// A threat document.
///
/// Two documents are equal when they say the same; where they came from does not matter.
#[derive(Debug, Clone)]
pub struct Document {
    /// The version of the specification the document declares.
    pub oatf: String,
    /// `$schema`, kept but not used.
    pub schema: Option<String>,
    /// The attack.
    pub attack: Attack,
    pub(crate) source: Option<Arc<Source>>,
    pub(crate) notes: Vec<Diagnostic>,
}

impl Document {
    /// A document for the supported version of the specification, made without source text.
    ///
    /// ```
    /// use proofhouse_oatf::{Attack, Document};
    /// let document = Document::new(Attack::default());
    /// assert_eq!(document.oatf, "0.1");
    /// ```
    #[must_use]
    pub fn new(attack: Attack) -> Self {
        Self {
            oatf: crate::SUPPORTED_VERSION.to_owned(),
            schema: None,
            attack,
            source: None,
            notes: Vec::new(),
        }
    }

    /// The text the document was parsed from.
    #[must_use]
    pub fn source_text(&self) -> Option<&str> {
        self.source.as_deref().map(Source::text)
    }

    /// Where the indicator at `index` stands in the source text.
    ///
    /// Normalization keeps the order of indicators, so this holds before and after it.
    #[must_use]
    pub fn indicator_span(&self, index: usize) -> Option<Span> {
        self.indicator_field_span(index, &[])
    }

    /// Where a field of the indicator at `index` stands in the source text, or the nearest one
    /// around it that does.
    ///
    /// ```
    /// let text = "oatf: \"0.1\"\nattack:\n  execution: {mode: mcp_server, state: {}}\n  indicators:\n    \
    ///     - target: a\n      pattern: {contains: x}\n";
    /// let document = proofhouse_oatf::load(text).unwrap().document;
    /// let span = document.indicator_field_span(0, &["pattern", "contains"]).unwrap();
    /// assert_eq!((span.line, &text[span.range()]), (6, "x"));
    /// ```
    #[must_use]
    pub fn indicator_field_span(&self, index: usize, field: &[&str]) -> Option<Span> {
        self.span_below(
            &[PathSegment::Key("indicators"), PathSegment::Index(index)],
            field,
        )
    }

    /// Where a field of the attack stands in the source text, or the nearest one around it that does.
    #[must_use]
    pub fn attack_field_span(&self, field: &[&str]) -> Option<Span> {
        self.span_below(&[], field)
    }

    /// Where what a path below the attack leads to stands in the source text, or the nearest one around it that does.
    #[must_use]
    pub fn attack_path_span(&self, path: &[PathSegment<'_>]) -> Option<Span> {
        self.span_below(path, &[])
    }

    fn span_below(&self, place: &[PathSegment<'_>], field: &[&str]) -> Option<Span> {
        let mut path = DocPath::default();
        path.push(PathSegment::Key("attack"));
        place.iter().for_each(|segment| path.push(*segment));
        field
            .iter()
            .for_each(|key| path.push(PathSegment::Key(key)));
        self.source.as_deref().map(|source| source.span_of(&path))
    }
}

impl PartialEq for Document {
    fn eq(&self, other: &Self) -> bool {
        self.oatf == other.oatf && self.schema == other.schema && self.attack == other.attack
    }
}

/// The attack envelope and everything in it.
///
/// After [`normalize`](crate::normalize), `name`, `version` and `status` are always present.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attack {
    /// A stable identifier such as `ACME-001`; needed for publication.
    pub id: Option<String>,
    /// A name for people.
    pub name: Option<String>,
    /// The version of the document, from 1.
    pub version: Option<i64>,
    /// The life of the document.
    pub status: Option<Status>,
    /// When it was first published.
    pub created: Option<DateOrDateTime>,
    /// When it last changed.
    pub modified: Option<DateOrDateTime>,
    /// Who wrote it.
    pub author: Option<String>,
    /// What the attack does and why it matters.
    pub description: Option<String>,
    /// How long to go on observing after the last terminal phase.
    pub grace_period: Option<DurationText>,
    /// How bad it is; absent when not assessed.
    pub severity: Option<Severity>,
    /// What harm it does.
    pub impact: Option<Vec<Impact>>,
    /// Taxonomy and framework mappings.
    pub classification: Option<Classification>,
    /// Where to read more.
    pub references: Option<Vec<Reference>>,
    /// What the attacking side does.
    pub execution: Execution,
    /// How compliance is recognised; absent when the document only simulates.
    pub indicators: Option<Vec<Indicator>>,
    /// How indicator verdicts combine.
    pub correlation: Option<Correlation>,
    /// `x-` fields.
    pub extensions: Extensions,
}

impl Attack {
    /// The indicators, or none.
    #[must_use]
    pub fn indicators(&self) -> &[Indicator] {
        self.indicators.as_deref().unwrap_or_default()
    }

    /// The correlation logic that holds, written or by default.
    #[must_use]
    pub fn correlation_logic(&self) -> CorrelationLogic {
        self.correlation
            .as_ref()
            .and_then(|c| c.logic)
            .unwrap_or(CorrelationLogic::Any)
    }
}

/// How indicator verdicts combine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Correlation {
    /// `any` when absent.
    pub logic: Option<CorrelationLogic>,
}

/// How bad an attack is, and how sure its author is of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Severity {
    /// The level.
    pub level: SeverityLevel,
    /// 0 to 100; 50 when absent.
    pub confidence: Option<i64>,
}

/// The level alone, as the short form says it.
impl From<SeverityLevel> for Severity {
    fn from(level: SeverityLevel) -> Self {
        Self {
            level,
            confidence: None,
        }
    }
}

/// Taxonomy and framework mappings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classification {
    /// The format's own taxonomy.
    pub category: Option<Category>,
    /// Entries of external frameworks.
    pub mappings: Option<Vec<FrameworkMapping>>,
    /// Free tags, lower case and hyphenated after normalization.
    pub tags: Option<Vec<String>>,
}

/// An entry of an external framework.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameworkMapping {
    /// The framework; open, for example `atlas`, `owasp_llm`, `cwe`.
    pub framework: Framework,
    /// The entry.
    pub id: String,
    /// The entry's name.
    pub name: Option<String>,
    /// A permanent link.
    pub url: Option<String>,
    /// `primary` when absent.
    pub relationship: Option<Relationship>,
}

/// Where to read more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// The address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// What is to be found there.
    pub description: Option<String>,
}
