//! Decodes the document and the attack envelope.

use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment, YamlScalar};

use super::{DocumentDecoder, DocumentFields};
use crate::fields;
use crate::model::{
    Attack, Classification, Correlation, DateOrDateTime, Document, FrameworkMapping, Reference,
    Severity,
};

impl<'s> DocumentDecoder<'s> {
    /// Decodes a whole document. Without a usable `attack` there is none.
    pub(crate) fn document(&mut self, node: NodeRef<'s>) -> Option<Document> {
        if node.entries().is_none() {
            let message = format!("a document must be a mapping, not {}", node.describe());
            self.error("PH-007", message, None);
            return None;
        }
        let mut fields = self.fields(node, &fields::DOCUMENT)?;
        let oatf = fields.read("oatf", Self::version);
        let schema = fields.text("$schema");
        let attack = fields.read("attack", |decoder, node| {
            if node.items().is_some() {
                let message = "`attack` must be one mapping, not a sequence".to_owned();
                let help = Some("write one document per attack".to_owned());
                decoder.error("V-003", message, help);
                return None;
            }
            decoder.attack(node)
        })?;
        let mut document = Document::new(attack);
        document.oatf = oatf.unwrap_or_default();
        document.schema = schema;
        Some(document)
    }

    fn version(&mut self, node: NodeRef<'s>) -> Option<String> {
        match node.scalar() {
            Some(YamlScalar::Text(text)) => Some(text.to_owned()),
            _ => {
                let message = format!("`oatf` must be a string, not {}", node.describe());
                let help = Some("write `oatf: \"0.1\"`".to_owned());
                self.error("V-001", message, help);
                None
            }
        }
    }

    pub(crate) fn attack(&mut self, node: NodeRef<'s>) -> Option<Attack> {
        let mut fields = self.fields(node, &fields::ATTACK)?;
        Some(Attack {
            id: fields.name("id"),
            name: fields.text("name"),
            version: fields.integer("version"),
            status: fields.choice("status"),
            created: fields.read("created", Self::date),
            modified: fields.read("modified", Self::date),
            author: fields.text("author"),
            description: fields.text("description"),
            grace_period: fields.duration("grace_period"),
            severity: fields.read("severity", Self::severity),
            impact: fields.list("impact", Self::choice),
            classification: fields.read("classification", Self::classification),
            references: fields.list("references", Self::reference),
            execution: fields
                .read("execution", Self::execution)
                .unwrap_or_default(),
            indicators: fields.list("indicators", Self::indicator),
            correlation: fields.read("correlation", Self::correlation),
            extensions: fields.kept_extensions(),
        })
    }

    fn date(&mut self, node: NodeRef<'s>) -> Option<DateOrDateTime> {
        let text = self.text(node)?;
        let date = DateOrDateTime::parse(&text);
        if date.is_none() {
            let shown: String = text.chars().take(40).collect();
            let message = format!("`{shown}` is neither a date nor a date-time with a time zone");
            let help = Some("write `2026-01-15` or `2026-01-15T10:30:00Z`".to_owned());
            self.error("PH-014", message, help);
        }
        date
    }

    pub(crate) fn severity(&mut self, node: NodeRef<'s>) -> Option<Severity> {
        if node.entries().is_none() {
            let level = self.choice(node)?;
            return Some(Severity {
                level,
                confidence: None,
            });
        }
        let mut fields = self.fields(node, &fields::SEVERITY)?;
        let level = fields.choice("level");
        let confidence = fields.integer("confidence");
        Some(Severity {
            level: level?,
            confidence,
        })
    }

    pub(crate) fn classification(&mut self, node: NodeRef<'s>) -> Option<Classification> {
        let mut fields = self.fields(node, &fields::CLASSIFICATION)?;
        Some(Classification {
            category: fields.choice("category"),
            mappings: fields.list("mappings", Self::mapping),
            tags: fields.texts("tags"),
        })
    }

    pub(crate) fn mapping(&mut self, node: NodeRef<'s>) -> Option<FrameworkMapping> {
        let mut fields = self.fields(node, &fields::MAPPING)?;
        Some(FrameworkMapping {
            framework: fields.open("framework").unwrap_or_default(),
            id: fields.text("id").unwrap_or_default(),
            name: fields.text("name"),
            url: fields.text("url"),
            relationship: fields.choice("relationship"),
        })
    }

    pub(crate) fn reference(&mut self, node: NodeRef<'s>) -> Option<Reference> {
        let mut fields = self.fields(node, &fields::REFERENCE)?;
        Some(Reference {
            url: fields.text("url").unwrap_or_default(),
            title: fields.text("title"),
            description: fields.text("description"),
        })
    }

    pub(crate) fn correlation(&mut self, node: NodeRef<'s>) -> Option<Correlation> {
        let mut fields = self.fields(node, &fields::CORRELATION)?;
        Some(Correlation {
            logic: fields.choice("logic"),
        })
    }

    /// Whether the first key of the document is `oatf`, for W-001.
    pub(crate) fn note_key_order(&mut self, node: NodeRef<'s>) {
        let first = node
            .entries()
            .and_then(|mut entries| entries.next())
            .map(|(key, _)| key);
        if first.is_some_and(|key| key != "oatf") && node.get("oatf").is_some() {
            self.within(PathSegment::Key("oatf"), |decoder| {
                decoder.note(
                    "W-001",
                    "`oatf` should be the first key of the document".to_owned(),
                    Some("move it to the top".to_owned()),
                );
            });
        }
    }
}
