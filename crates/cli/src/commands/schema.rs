//! `proofhouse schema`: JSON Schemas for editors.

use clap::{Args, ValueEnum};

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
    proofhouse schema config --reference > keys.md")]
pub(crate) struct Schema {
    /// Which schema
    #[arg(value_enum)]
    kind: SchemaKind,

    /// Print the keys as a page in Markdown instead, for people
    #[arg(long)]
    reference: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SchemaKind {
    /// Threat documents
    Oatf,
    /// Tool manifests
    Tool,
    /// Results of campaigns
    Result,
    /// Agent manifests
    Agent,
    /// Trigger manifests
    Trigger,
    /// Schedule manifests
    Schedule,
    /// The configuration of a project, proofhouse.yaml
    Config,
    /// What the operator configures
    Operator,
    /// Labelled cases of threat documents
    Cases,
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

impl SchemaKind {
    fn schema(self) -> serde_json::Value {
        match self {
            Self::Oatf => proofhouse_oatf::json_schema(),
            Self::Tool => proofhouse_manifest::json_schema(),
            Self::Result => proofhouse_report::json_schema(),
            Self::Agent => proofhouse_manifest::agent_json_schema(),
            Self::Trigger => proofhouse_manifest::trigger_json_schema(),
            Self::Schedule => proofhouse_manifest::schedule_json_schema(),
            Self::Config => proofhouse_campaign::config::json_schema(),
            Self::Operator => proofhouse_tools::operator::json_schema(),
            Self::Cases => proofhouse_campaign::cases::json_schema(),
        }
    }

    /// The page, for what people write.
    fn reference(self) -> Option<String> {
        match self {
            Self::Oatf => Some(proofhouse_oatf::reference()),
            Self::Tool => Some(proofhouse_manifest::reference()),
            Self::Result => None,
            Self::Agent => Some(proofhouse_manifest::agent_reference()),
            Self::Trigger => Some(proofhouse_manifest::trigger_reference()),
            Self::Schedule => Some(proofhouse_manifest::schedule_reference()),
            Self::Config => Some(proofhouse_campaign::config::reference()),
            Self::Operator => Some(proofhouse_tools::operator::reference()),
            Self::Cases => Some(proofhouse_campaign::cases::reference()),
        }
    }
}
