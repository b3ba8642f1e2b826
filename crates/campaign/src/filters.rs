//! Which documents take part, and what to say of filters that nothing fits.

use std::fmt;

use proofhouse_source::did_you_mean;

use crate::document::CampaignDocument;
use crate::document::slug;
use crate::plan::DocumentFilter;
use crate::result::DocumentInfo;

/// Known values that a message names; a library has more ids than fit on a screen.
const MAX_NAMED: usize = 20;

/// A value of a filter that no document has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleFilter {
    /// The flag of the filter.
    pub flag: &'static str,
    /// The value.
    pub value: String,
    /// What may have been meant.
    pub near: Option<String>,
    /// The values that documents have, sorted.
    pub known: Vec<String>,
}

impl fmt::Display for IdleFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flag, value, .. } = self;
        write!(f, "{flag} {value}: no attack has it")?;
        if let Some(near) = &self.near {
            write!(f, " (did you mean {near}?)")?;
        }
        let named = self.known.get(..MAX_NAMED).unwrap_or(&self.known);
        let more = if self.known.len() > MAX_NAMED {
            ", …"
        } else {
            ""
        };
        write!(f, "; choose from: {}{more}", named.join(", "))
    }
}

/// Why no document takes part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// There are none at all.
    #[error("this build has no threat library; name the documents to run")]
    NoLibrary,
    /// Filters have values that no document has.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Idle(Vec<IdleFilter>),
    /// No document fits all filters.
    #[error(
        "no attack matches all filters; each filter alone matches some of the {documents} attacks"
    )]
    NoneFitsAll {
        /// How many there are.
        documents: usize,
    },
}

/// Leaves the documents that fit, and says which values of the filter no document has.
///
/// # Errors
///
/// Returns an error when none is left.
pub fn apply(
    filter: &DocumentFilter,
    documents: Vec<CampaignDocument>,
) -> Result<(Vec<CampaignDocument>, Vec<IdleFilter>), FilterError> {
    if documents.is_empty() {
        return Err(FilterError::NoLibrary);
    }
    let infos: Vec<DocumentInfo> = documents.iter().map(|one| one.info.clone()).collect();
    let idle = idle(filter, &infos);
    let fitting = documents.into_iter();
    let fitting: Vec<_> = fitting.filter(|one| filter.fits(&one.info)).collect();
    match (fitting.is_empty(), idle.is_empty()) {
        (false, _) => Ok((fitting, idle)),
        (true, false) => Err(FilterError::Idle(idle)),
        (true, true) => Err(FilterError::NoneFitsAll {
            documents: infos.len(),
        }),
    }
}

/// Every value of a filter that no document has.
fn idle(filter: &DocumentFilter, documents: &[DocumentInfo]) -> Vec<IdleFilter> {
    type Values = fn(&DocumentInfo) -> Vec<String>;
    type Place = fn(&mut DocumentFilter) -> &mut Vec<String>;
    let filters: [(&str, &[String], Place, Values); 5] = [
        (
            "--id",
            &filter.ids,
            |filter| &mut filter.ids,
            |one| vec![one.id.clone(), slug(&one.path).to_owned()],
        ),
        (
            "--tag",
            &filter.tags,
            |filter| &mut filter.tags,
            |one| one.tags.clone(),
        ),
        (
            "--category",
            &filter.categories,
            |filter| &mut filter.categories,
            |one| one.category.iter().cloned().collect(),
        ),
        (
            "--severity",
            &filter.severities,
            |filter| &mut filter.severities,
            |one| one.severity.iter().cloned().collect(),
        ),
        (
            "--protocol",
            &filter.protocols,
            |filter| &mut filter.protocols,
            |one| {
                let protocols = one.protocols.iter().map(ToString::to_string);
                // As the help writes it; both are understood.
                protocols.map(|name| name.replace('_', "-")).collect()
            },
        ),
    ];
    let mut idle = Vec::new();
    for (flag, wanted, place, values) in filters {
        for value in wanted {
            let mut alone = DocumentFilter::default();
            place(&mut alone).push(value.clone());
            if documents.iter().any(|one| alone.fits(one)) {
                continue;
            }
            let mut known: Vec<String> = documents.iter().flat_map(values).collect();
            known.sort();
            known.dedup();
            let near = did_you_mean(value, known.iter().map(String::as_str));
            idle.push(IdleFilter {
                flag,
                value: value.clone(),
                near: near.map(str::to_owned),
                known,
            });
        }
    }
    idle
}
