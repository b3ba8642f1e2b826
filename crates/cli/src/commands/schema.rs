//! `proofhouse schema`: JSON Schemas for editors.

use clap::{Args, ValueEnum};

use crate::exit_code::Exit;
use crate::output::{CommandError, Data};

/// Print a JSON Schema, for editors
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse schema oatf > oatf.schema.json\n  \
    proofhouse schema tool > tool.schema.json\n  \
    proofhouse schema result > result.schema.json\n  \
    proofhouse schema agent > agent.schema.json\n  \
    proofhouse schema trigger > trigger.schema.json\n  \
    proofhouse schema schedule > schedule.schema.json\n  \
    proofhouse schema config > config.schema.json")]
pub(crate) struct Schema {
    /// Which schema
    #[arg(value_enum)]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
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
}

impl Schema {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        let schema = match self.kind {
            Kind::Oatf => proofhouse_oatf::json_schema(),
            Kind::Tool => proofhouse_manifest::json_schema(),
            Kind::Result => proofhouse_campaign::report::json_schema(),
            Kind::Agent => proofhouse_manifest::agent_json_schema(),
            Kind::Trigger => proofhouse_manifest::trigger_json_schema(),
            Kind::Schedule => proofhouse_manifest::schedule_json_schema(),
            Kind::Config => proofhouse_campaign::config::json_schema(),
        };
        let mut data = Data::new();
        data.json(&schema)?;
        data.finish()?;
        Ok(Exit::Success)
    }
}
