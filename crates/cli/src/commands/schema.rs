//! `proofhouse schema`: JSON Schemas for editors.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use proofhouse_lsp::formats::FormatKind;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};

/// Print a JSON Schema, for editors
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse schema oatf > oatf.schema.json\n  \
    proofhouse schema tool > tool.schema.json\n  \
    proofhouse schema result > result.schema.json\n  \
    proofhouse schema agent > agent.schema.json\n  \
    proofhouse schema trigger > trigger.schema.json\n  \
    proofhouse schema schedule > schedule.schema.json\n  \
    proofhouse schema config > config.schema.json\n  \
    proofhouse schema operator > operator.schema.json\n  \
    proofhouse schema cases > cases.schema.json\n  \
    proofhouse schema policy > policy.schema.json\n  \
    proofhouse schema config --reference > keys.md")]
pub(crate) struct Schema {
    /// Which schema
    #[arg(value_parser = kinds())]
    kind: FormatKind,

    /// Print the keys as a page in Markdown instead, for people
    #[arg(long)]
    reference: bool,
}

/// The formats by name, with what they are for.
fn kinds() -> impl TypedValueParser<Value = FormatKind> {
    let values = FormatKind::ALL.iter();
    let values = values.map(|kind| PossibleValue::new(kind.name()).help(kind.about()));
    PossibleValuesParser::new(values).map(|name| {
        let mut kinds = FormatKind::ALL.iter().copied();
        kinds
            .find(|kind| kind.name() == name)
            .unwrap_or(FormatKind::Oatf)
    })
}

impl Schema {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let mut data = StdoutData::new();
        if self.reference {
            let page = self.kind.reference().ok_or_else(|| {
                CommandError::usage("results are not written by people; there is no such page")
            })?;
            data.write(&page)?;
        } else {
            data.json(&self.kind.schema())?;
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}
