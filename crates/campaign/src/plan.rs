//! The plan: which document meets which subject, how often, in which order.

use std::collections::HashSet;
use std::sync::Arc;

use proofhouse_subjects::Subject;

use proofhouse_oatf::{Mode, Protocol};

use proofhouse_wire::fnv;

use crate::document::{CampaignDocument, slug};
use crate::result::{DocumentInfo, SubjectInfo};

/// Runs of one campaign. More would not fit into a result that people can open.
pub const MAX_RUNS: usize = 100_000;

/// What a campaign will do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The documents.
    pub documents: Vec<CampaignDocument>,
    /// Attack runs per document and subject.
    pub repeats: u32,
    /// The random seed.
    pub seed: u64,
    /// The runs.
    pub runs: Vec<PlannedRun>,
}

/// One run to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Names the run in the campaign: document, subject, number, and `twin` for a twin.
    pub id: String,
    /// Which of the documents, from 0.
    pub document: usize,
    /// Which of the subjects, from 0.
    pub subject: usize,
    /// Which of the repeats, from 1.
    pub repeat: u32,
    /// Whether it is the benign twin.
    pub twin: bool,
    /// Where the run's chance comes from.
    pub seed: u64,
}

impl PlannedRun {
    /// The run of a document and a subject, each with its number. Its name and its chance follow from them and from the
    /// seed of the campaign.
    #[must_use]
    pub fn new(
        (place, document): (usize, &DocumentInfo),
        (number, subject): (usize, &SubjectInfo),
        repeat: u32,
        twin: bool,
        seed: u64,
    ) -> Self {
        let id = run_id(document, subject, repeat, twin);
        // With a guard, chance is the same as without.
        let plain = match &subject.guard {
            Some(guard) => named_id(document, &guard.subject, repeat, twin),
            None => id.clone(),
        };
        Self {
            seed: mix(seed, &plain),
            id,
            document: place,
            subject: number,
            repeat,
            twin,
        }
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two documents cannot be told apart.
    #[error("two documents have the id `{id}`: {one} and {other}")]
    SameId {
        /// The id.
        id: String,
        /// One file.
        one: String,
        /// The other.
        other: String,
    },
    /// Two subjects cannot be told apart.
    #[error("two subjects have the name `{0}`")]
    SameSubject(String),
    /// There is nothing to do.
    #[error("nothing to run: {0}")]
    Nothing(&'static str),
    /// No attack fits a subject.
    #[error(
        "no attack fits this agent: each of the {0} has a part that cannot reach it. Say where it connects \
         (--mcp-listen, --a2a-listen) or where it listens (--ag-ui-url, --a2a-url, --mcp-url; for a command: --serves)"
    )]
    NoneFits(usize),
    /// It is too much.
    #[error("{0} runs are more than the {MAX_RUNS} one campaign may have")]
    TooMany(usize),
}

impl Plan {
    /// How many attacks and how many controls are to be run.
    #[must_use]
    pub fn kinds(&self) -> (usize, usize) {
        let controls = self.runs.iter().filter(|run| run.twin).count();
        (self.runs.len() - controls, controls)
    }

    /// Plans a campaign: every document and its twin once against every subject, then all the attacks
    /// again, so that what is known after a part of the time is known about everything.
    ///
    /// # Errors
    ///
    /// Returns an error when documents or subjects cannot be told apart, or there are none, or too many.
    pub fn new(
        documents: Vec<CampaignDocument>,
        subjects: &[SubjectInfo],
        repeats: u32,
        seed: u64,
    ) -> Result<Self, PlanError> {
        for (index, document) in documents.iter().enumerate() {
            let same = |other: &&CampaignDocument| other.info.id == document.info.id;
            if let Some(other) = documents[..index].iter().find(same) {
                return Err(PlanError::SameId {
                    id: document.info.id.clone(),
                    one: other.info.path.clone(),
                    other: document.info.path.clone(),
                });
            }
        }
        let mut names = HashSet::new();
        if let Some(twice) = subjects.iter().find(|subject| !names.insert(&subject.name)) {
            return Err(PlanError::SameSubject(twice.name.clone()));
        }
        if documents.is_empty() {
            return Err(PlanError::Nothing("no document is left"));
        }
        if subjects.is_empty() || repeats == 0 {
            return Err(PlanError::Nothing("no subject, or no repeat"));
        }
        let per_repeat = documents.len().saturating_mul(subjects.len());
        let total = per_repeat.saturating_mul(repeats as usize + 1);
        if total > MAX_RUNS {
            return Err(PlanError::TooMany(total));
        }
        let mut runs = Vec::new();
        for repeat in 1..=repeats {
            for (place, document) in documents.iter().enumerate() {
                for (number, subject) in subjects.iter().enumerate() {
                    let mut add = |twin: bool| {
                        let (document, subject) = ((place, &document.info), (number, subject));
                        runs.push(PlannedRun::new(document, subject, repeat, twin, seed));
                    };
                    // What an attack comes to is settled by its control.
                    if repeat == 1 && document.twin.is_some() {
                        add(true);
                    }
                    add(false);
                }
            }
        }
        Ok(Self {
            documents,
            repeats,
            seed,
            runs,
        })
    }

    /// The same without the runs of subjects that the actors of a document cannot meet. What is left out of each
    /// subject is told, by number of documents.
    ///
    /// # Errors
    ///
    /// Returns an error when nothing is left.
    pub fn meetable(self, subjects: &[Arc<dyn Subject>]) -> Result<(Self, Vec<usize>), PlanError> {
        let meets = |number: usize, mode: &Mode| {
            let subject = subjects.get(number);
            subject.is_none_or(|subject| subject.meets(mode))
        };
        self.only_where(subjects.len(), meets)
    }

    /// The same without runs behind a guard of documents that have no server for it to stand in front of. What to say about
    /// those is returned, where there are some.
    ///
    /// # Errors
    ///
    /// Returns an error when no document can be guarded.
    pub fn guardable(
        mut self,
        subjects: &[SubjectInfo],
    ) -> Result<(Self, Option<String>), PlanError> {
        if subjects.iter().all(|subject| subject.guard.is_none()) {
            return Ok((self, None));
        }
        let documents = self.documents.iter();
        let (guarded, others): (Vec<_>, Vec<_>) =
            documents.partition(|document| document.info.is_guardable());
        if guarded.is_empty() {
            return Err(PlanError::Nothing(
                "no document has a server that the guard can stand in front of",
            ));
        }
        let note = match others.len() {
            0 => None,
            count => Some(format!(
                "Not guarded: {count} attack{} without an MCP server that the guard could stand in front of. The report lists them.",
                if count == 1 { "" } else { "s" }
            )),
        };
        self.runs.retain(|run| {
            let subject = subjects.get(run.subject);
            subject.is_none_or(|subject| subject.guard.is_none())
                || self.documents[run.document].info.is_guardable()
        });
        Ok((self, note))
    }

    /// The same without the runs of subjects that the actors of a document cannot meet, by the number of the
    /// subject and the mode of an actor. What is left out of each subject is told, by number of documents.
    ///
    /// # Errors
    ///
    /// Returns an error when nothing is left.
    pub fn only_where(
        mut self,
        subjects: usize,
        meets: impl Fn(usize, &Mode) -> bool,
    ) -> Result<(Self, Vec<usize>), PlanError> {
        let fits = |plan: &Self, run: &PlannedRun| {
            let document = plan.documents.get(run.document);
            let actors = document.map(|document| document.info.actors.as_slice());
            let mut actors = actors.unwrap_or_default().iter();
            actors.all(|actor| meets(run.subject, &actor.mode))
        };
        let (mut left_out, mut kept) = (vec![HashSet::new(); subjects], Vec::new());
        for run in std::mem::take(&mut self.runs) {
            if fits(&self, &run) {
                kept.push(run);
            } else {
                let of_subject = left_out.get_mut(run.subject);
                of_subject.map(|documents| documents.insert(run.document));
            }
        }
        if kept.is_empty() {
            return Err(PlanError::NoneFits(self.documents.len()));
        }
        self.runs = kept;
        Ok((self, left_out.iter().map(HashSet::len).collect()))
    }
}

pub(crate) fn run_id(
    document: &DocumentInfo,
    subject: &SubjectInfo,
    repeat: u32,
    twin: bool,
) -> String {
    named_id(document, &subject.name, repeat, twin)
}

fn named_id(document: &DocumentInfo, subject: &str, repeat: u32, twin: bool) -> String {
    let twin = if twin { "/twin" } else { "" };
    format!("{}/{subject}/{repeat}{twin}", document.id)
}

/// Chance for one run: a hash of the seed and the name, the same everywhere.
fn mix(seed: u64, id: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(id.bytes());
    fnv::hash_64(bytes)
}

/// Which documents take part. An empty list asks for nothing; of a list, one must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Ids, or names of files without their ending; `*` stands for anything.
    pub ids: Vec<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// Severity levels.
    pub severities: Vec<String>,
    /// Protocols: `mcp`, `a2a`, `ag_ui`; every actor of a document speaks one of them.
    pub protocols: Vec<String>,
}

impl DocumentFilter {
    /// Whether a document takes part.
    ///
    /// ```
    /// use proofhouse_campaign::plan::DocumentFilter;
    /// use proofhouse_campaign::result::DocumentInfo;
    ///
    /// let document = DocumentInfo { id: "PROOF-001".into(), tags: vec!["rug-pull".into()], ..Default::default() };
    /// let filter = DocumentFilter { ids: vec!["PROOF-0*".into()], ..DocumentFilter::default() };
    /// assert!(filter.fits(&document));
    /// let filter = DocumentFilter { tags: vec!["other".into()], ..filter };
    /// assert!(!filter.fits(&document));
    /// ```
    #[must_use]
    pub fn fits(&self, document: &DocumentInfo) -> bool {
        let any = |wanted: &[String], has: &dyn Fn(&str) -> bool| {
            wanted.is_empty() || wanted.iter().any(|wanted| has(wanted))
        };
        let is = |value: &Option<String>, wanted: &str| {
            value
                .as_deref()
                .is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        any(&self.ids, &|wanted| {
            globs(wanted, &document.id) || globs(wanted, slug(&document.path))
        }) && any(&self.tags, &|wanted| {
            document
                .tags
                .iter()
                .any(|tag| tag.eq_ignore_ascii_case(wanted))
        }) && any(&self.categories, &|wanted| is(&document.category, wanted))
            && any(&self.severities, &|wanted| is(&document.severity, wanted))
            && self.speaks_only_these(document)
    }
}

impl DocumentFilter {
    /// Whether every actor of a document speaks one of the protocols: a subject of one protocol cannot play the others.
    fn speaks_only_these(&self, document: &DocumentInfo) -> bool {
        let wanted = self.protocols.iter();
        let wanted: Vec<Protocol> = wanted
            .map(|wanted| Protocol::from(wanted.replace('-', "_").to_ascii_lowercase()))
            .collect();
        let mut spoken = document.protocols.iter();
        wanted.is_empty() || spoken.all(|protocol| wanted.contains(protocol))
    }
}

/// Whether a text fits a pattern in which `*` stands for anything. Large and small letters are the same.
#[must_use]
pub fn globs(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// What to say about documents that were left out, by subject: how many, and how they can take part.
#[must_use]
pub fn left_out_notes(subjects: &[Arc<dyn Subject>], left_out: &[usize]) -> Vec<String> {
    let counted = subjects.iter().zip(left_out);
    counted
        .filter(|(_, count)| **count > 0)
        .map(|(subject, count)| {
            let (name, plural) = (subject.info().name, if *count == 1 { "" } else { "s" });
            format!(
                "Skipped {count} attack{plural} that `{name}` cannot receive. Add --serves, a URL or --mcp-listen to include them."
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::CampaignDocument;

    fn document(id: &str, twin: bool) -> CampaignDocument {
        let ours = if twin {
            "x-proofhouse: {twin: t.twin.yaml}"
        } else {
            ""
        };
        let text = format!(
            "oatf: \"0.1\"\nattack:\n  id: {id}\n  {ours}\n  execution: {{mode: mcp_server, state: {{tools: [{{name: weather, \
             description: w}}]}}}}\n  indicators:\n    - {{target: a, pattern: {{contains: x}}}}\n"
        );
        let load = |text: &str| proofhouse_oatf::load(text).unwrap().document;
        CampaignDocument::new("a.yaml", load(&text), None, |_| Ok(load(&text))).unwrap()
    }

    fn subject(name: &str) -> SubjectInfo {
        SubjectInfo {
            name: name.to_owned(),
            kind: "sim".to_owned(),
            simulation: true,
            description: String::new(),
            digest: None,
            guard: None,
        }
    }

    #[test]
    fn everything_comes_once_before_anything_comes_twice() {
        let documents = vec![document("A-001", true), document("A-002", false)];
        let plan = Plan::new(documents, &[subject("one"), subject("two")], 2, 7).unwrap();
        let ids: Vec<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "A-001/one/1/twin",
                "A-001/one/1",
                "A-001/two/1/twin",
                "A-001/two/1",
                "A-002/one/1",
                "A-002/two/1",
                "A-001/one/2",
                "A-001/two/2",
                "A-002/one/2",
                "A-002/two/2",
            ]
        );
        let seeds: HashSet<u64> = plan.runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds.len(), plan.runs.len(), "each its own chance");
        assert_eq!(
            plan.documents[0].info.prompt.as_deref(),
            Some("Please use weather for me and tell me what it says.")
        );
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let twice = Plan::new(
            vec![document("A-001", false), document("A-001", false)],
            &[subject("one")],
            1,
            0,
        );
        assert!(matches!(twice, Err(PlanError::SameId { .. })));
        let one = || vec![document("A-001", false)];
        let twice = Plan::new(one(), &[subject("x"), subject("x")], 1, 0);
        assert!(matches!(twice, Err(PlanError::SameSubject(_))));
        let none = Plan::new(Vec::new(), &[subject("x")], 1, 0);
        assert!(matches!(none, Err(PlanError::Nothing(_))));
        let many = Plan::new(one(), &[subject("x")], u32::MAX, 0);
        assert!(matches!(many, Err(PlanError::TooMany(_))));
    }

    #[test]
    fn a_protocol_excludes_documents_that_also_speak_others() {
        let filter = |protocols: &[&str]| DocumentFilter {
            protocols: protocols.iter().map(|one| (*one).to_owned()).collect(),
            ..DocumentFilter::default()
        };
        let both = DocumentInfo {
            protocols: vec![Protocol::Mcp, Protocol::AgUi],
            ..DocumentInfo::default()
        };
        assert!(!filter(&["mcp"]).fits(&both));
        assert!(filter(&["mcp", "ag-ui"]).fits(&both));
        assert!(filter(&[]).fits(&both));
    }

    #[test]
    fn patterns() {
        for (pattern, text, fits) in [
            ("a", "A", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("a*a", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(globs(pattern, text), fits, "{pattern} {text}");
        }
    }
}
