//! `proofhouse scenarios`: the built-in threat library, one document of it, and what it covers.

use std::collections::BTreeSet;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::library::{Scenario, attacks};
use proofhouse_oatf::{Mode, did_you_mean};
use proofhouse_report::coverage::{LibraryCoverage, scenario_line, scenario_value};
use serde_json::Value;

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};

/// Browse the built-in threat library
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scenarios list --mode a2a_server\n  \
    proofhouse scenarios show weather-key-theft > attack.yaml\n  \
    proofhouse scenarios coverage")]
pub(crate) struct Scenarios {
    #[command(subcommand)]
    command: ScenariosCommand,
}

#[derive(Debug, Subcommand)]
enum ScenariosCommand {
    List(ScenariosList),
    Show(Show),
    Coverage(Coverage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScenariosFormat {
    Human,
    Json,
}

impl Scenarios {
    pub(crate) fn run(self) -> Result<Exit, CommandError> {
        match self.command {
            ScenariosCommand::List(command) => command.run(),
            ScenariosCommand::Show(command) => command.run(),
            ScenariosCommand::Coverage(command) => command.run(),
        }
    }
}

/// List the attacks of the library
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scenarios list --category oversight_bypass\n  \
    proofhouse scenarios list --entry ASI07 --format json")]
struct ScenariosList {
    /// Only attacks of this category
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,

    /// Only attacks in which the attacker plays this mode, such as mcp_server
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,

    /// Only attacks of this severity
    #[arg(long, value_name = "LEVEL")]
    severity: Option<String>,

    /// Only attacks with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// Only attacks that map to this framework entry, such as ASI01 (OWASP) or CWE-441
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,

    /// The output format
    #[arg(long, value_enum, default_value_t = ScenariosFormat::Human)]
    format: ScenariosFormat,
}

impl ScenariosList {
    fn run(self) -> Result<Exit, CommandError> {
        let all = attacks();
        let any =
            |tell: fn(&Scenario) -> Vec<&str>| -> Vec<&str> { all.iter().flat_map(tell).collect() };
        known(
            "category",
            self.category.as_deref(),
            &any(|it| vec![it.category()]),
        )?;
        known(
            "mode",
            self.mode.as_deref(),
            &any(|it| it.modes().into_iter().map(Mode::as_str).collect()),
        )?;
        known(
            "severity",
            self.severity.as_deref(),
            &any(|it| vec![it.severity()]),
        )?;
        known(
            "tag",
            self.tag.as_deref(),
            &any(|it| it.tags().iter().map(String::as_str).collect()),
        )?;
        known("entry", self.entry.as_deref(), &any(entries))?;
        let fits = |wanted: &Option<String>, has: &[&str]| {
            wanted
                .as_deref()
                .is_none_or(|wanted| has.iter().any(|has| has.eq_ignore_ascii_case(wanted)))
        };
        let found: Vec<&Scenario> = all
            .iter()
            .filter(|it| {
                let tags: Vec<&str> = it.tags().iter().map(String::as_str).collect();
                let modes: Vec<&str> = it.modes().into_iter().map(Mode::as_str).collect();
                fits(&self.category, &[it.category()])
                    && fits(&self.mode, &modes)
                    && fits(&self.severity, &[it.severity()])
                    && fits(&self.tag, &tags)
                    && fits(&self.entry, &entries(it))
            })
            .collect();
        let mut data = StdoutData::new();
        match self.format {
            ScenariosFormat::Json => {
                let found: Vec<Value> = found.iter().map(|it| scenario_value(it)).collect();
                data.json(&found.into())?;
            }
            ScenariosFormat::Human => found
                .iter()
                .try_for_each(|it| data.line(&scenario_line(it)))?,
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}

/// Refuses what no document has, rather than finding nothing.
fn known(what: &str, wanted: Option<&str>, all: &[&str]) -> Result<(), CommandError> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    if all.iter().any(|one| one.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    let part = wanted.to_lowercase();
    let near = did_you_mean(wanted, all.iter().copied()).or_else(|| {
        let mut all = all.iter().copied();
        all.find(|one| part.len() > 2 && one.to_lowercase().contains(&part))
    });
    let near = near.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
    let there_are: BTreeSet<&str> = all.iter().copied().collect();
    let there_are: Vec<&str> = there_are.into_iter().collect();
    // The ids are more than anybody reads in an error.
    let hint = match what {
        "id" => "`proofhouse scenarios list` prints them all".to_owned(),
        _ => format!("there are: {}", there_are.join(", ")),
    };
    Err(CommandError::usage(format!(
        "no attack in the library has the {what} `{wanted}`{near}; {hint}"
    )))
}

fn entries(scenario: &Scenario) -> Vec<&str> {
    let mappings = scenario.mappings().iter();
    mappings.map(|mapping| mapping.id.as_str()).collect()
}

/// Print one threat document of the library
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scenarios show weather-key-theft\n  \
    proofhouse scenarios show PROOF-001 --control > control.yaml")]
struct Show {
    /// The id or the file name of the attack, such as PROOF-001 or weather-key-theft
    id: String,

    /// Print its control instead: the same task without the payload
    #[arg(long, alias = "twin")]
    control: bool,
}

impl Show {
    fn run(self) -> Result<Exit, CommandError> {
        let all = attacks();
        let ids: Vec<&str> = all.iter().flat_map(|it| [it.id(), it.slug()]).collect();
        known("id", Some(&self.id), &ids)?;
        let is_meant = |it: &&Scenario| {
            let names = [it.id(), it.slug()];
            names.iter().any(|name| name.eq_ignore_ascii_case(&self.id))
        };
        let found = all.iter().find(is_meant);
        let text = found.and_then(|it| {
            if self.control {
                it.twin()
            } else {
                Some(it.text)
            }
        });
        let text = text.ok_or_else(|| CommandError::cannot_run("the document has no control"))?;
        let mut data = StdoutData::new();
        data.write(text)?;
        data.finish()?;
        Ok(Exit::Success)
    }
}

/// Show which attack categories, modes and framework entries the library covers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scenarios coverage\n  \
    proofhouse scenarios coverage --format json")]
struct Coverage {
    /// The output format
    #[arg(long, value_enum, default_value_t = ScenariosFormat::Human)]
    format: ScenariosFormat,
}

impl Coverage {
    fn run(self) -> Result<Exit, CommandError> {
        let all = attacks();
        let coverage = LibraryCoverage::new(&all);
        let mut data = StdoutData::new();
        match self.format {
            ScenariosFormat::Json => data.json(&coverage.json())?,
            ScenariosFormat::Human => data.write(&coverage.text())?,
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}
