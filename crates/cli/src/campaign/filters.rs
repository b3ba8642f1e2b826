//! Which documents take part, and what to say of filters that nothing fits.

use proofhouse_campaign::document::CampaignDocument;
use proofhouse_campaign::plan::Filter;
use proofhouse_campaign::result::DocumentInfo;
use proofhouse_source::did_you_mean;

use crate::output::{CommandError, printable_line, talk};

/// Known values that a message names; a library has more ids than fit on a screen.
const MAX_NAMED: usize = 20;

/// Leaves the documents that fit.
pub(crate) fn apply(
    filter: &Filter,
    documents: Vec<CampaignDocument>,
) -> Result<Vec<CampaignDocument>, CommandError> {
    if documents.is_empty() {
        return Err(CommandError::usage(
            "this binary carries no threat library; name documents to run",
        ));
    }
    let infos: Vec<DocumentInfo> = documents.iter().map(|one| one.info.clone()).collect();
    let idle = idle(filter, &infos);
    let fitting = documents.into_iter();
    let fitting: Vec<_> = fitting.filter(|one| filter.fits(&one.info)).collect();
    if fitting.is_empty() {
        return Err(CommandError::usage(match idle.is_empty() {
            true => format!(
                "each filter fits some of {} documents, and none fits them all",
                infos.len()
            ),
            false => printable_line(&idle.join("; ")),
        }));
    }
    for line in idle {
        talk(&printable_line(&format!("warning: {line}")));
    }
    Ok(fitting)
}

/// A line for every value of a filter that no document has.
fn idle(filter: &Filter, documents: &[DocumentInfo]) -> Vec<String> {
    type Values = fn(&DocumentInfo) -> Vec<String>;
    type Place = fn(&mut Filter) -> &mut Vec<String>;
    let filters: [(&str, &[String], Place, Values); 5] = [
        (
            "--id",
            &filter.ids,
            |filter| &mut filter.ids,
            |one| vec![one.id.clone()],
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
            |one| one.protocols.iter().map(ToString::to_string).collect(),
        ),
    ];
    let mut lines = Vec::new();
    for (flag, wanted, place, values) in filters {
        for value in wanted {
            let mut alone = Filter::default();
            place(&mut alone).push(value.clone());
            if documents.iter().any(|one| alone.fits(one)) {
                continue;
            }
            let mut known: Vec<String> = documents.iter().flat_map(values).collect();
            known.sort();
            known.dedup();
            let near = did_you_mean(value, known.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
            let more = match known.len() > MAX_NAMED {
                true => ", …",
                false => "",
            };
            let known = known.get(..MAX_NAMED).unwrap_or(&known).join(", ");
            lines.push(format!(
                "{flag} {value}: no document has it{near}; there are {known}{more}"
            ));
        }
    }
    lines
}
