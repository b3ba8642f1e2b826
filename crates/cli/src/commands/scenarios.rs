//! `proofhouse scenarios`: the threat library that comes along, one document of it, and what it covers.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use clap::{Args, Subcommand, ValueEnum};
use proofhouse_campaign::library::{Scenario, attacks};
use proofhouse_oatf::{Category, Mode, did_you_mean};
use serde_json::{Value, json};

use crate::exit_code::Exit;
use crate::output::{CommandError, StdoutData};

/// Look into the threat library that comes along
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
    /// Only those of this category
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,

    /// Only those with an actor of this mode
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,

    /// Only those of this severity
    #[arg(long, value_name = "LEVEL")]
    severity: Option<String>,

    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// Only those that are an example of this entry of a framework, such as ASI01 or CWE-441
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,

    /// How to print them
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
            ScenariosFormat::Json => data.json(&found.iter().map(|it| as_json(it)).collect())?,
            ScenariosFormat::Human => {
                for it in found {
                    let (id, slug, severity) = (it.id(), it.slug(), it.severity());
                    data.line(&format!(
                        "{id}  {slug:<26}  {severity:<8}  {:<23}  {}",
                        it.category(),
                        it.name()
                    ))?;
                }
            }
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
    let near = did_you_mean(wanted, all.iter().copied());
    let hint = near.map_or_else(
        || {
            let there_are: BTreeSet<&str> = all.iter().copied().collect();
            let there_are: Vec<&str> = there_are.into_iter().collect();
            format!("; there are: {}", there_are.join(", "))
        },
        |near| format!(", did you mean {near}?"),
    );
    Err(CommandError::usage(format!(
        "no attack of the library has the {what} `{wanted}`{hint}"
    )))
}

fn entries(scenario: &Scenario) -> Vec<&str> {
    let mappings = scenario.mappings().iter();
    mappings.map(|mapping| mapping.id.as_str()).collect()
}

fn as_json(scenario: &Scenario) -> Value {
    let mappings = scenario.mappings().iter();
    json!({
        "id": scenario.id(),
        "slug": scenario.slug(),
        "name": scenario.name(),
        "path": scenario.path,
        "category": scenario.category(),
        "severity": scenario.severity(),
        "modes": scenario.modes(),
        "protocols": scenario.protocols(),
        "tags": scenario.tags(),
        "entries": mappings
            .map(|mapping| json!({"framework": mapping.framework, "id": mapping.id, "name": mapping.name}))
            .collect::<Vec<Value>>(),
        "prompt": scenario.prompt(),
    })
}

/// Print one document of the library
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scenarios show weather-key-theft\n  \
    proofhouse scenarios show PROOF-001 --twin > twin.yaml")]
struct Show {
    /// The id of the attack or the name of its file: PROOF-001 or weather-key-theft
    id: String,

    /// Print its benign twin instead: the same task without the payload
    #[arg(long)]
    twin: bool,
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
        let text = found.and_then(|it| if self.twin { it.twin() } else { Some(it.text) });
        let text = text.ok_or_else(|| CommandError::cannot_run("the document has no twin"))?;
        let mut data = StdoutData::new();
        data.write(text)?;
        data.finish()?;
        Ok(Exit::Success)
    }
}

/// Show which categories, modes and entries of frameworks the library covers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    proofhouse scenarios coverage\n  \
    proofhouse scenarios coverage --format json")]
struct Coverage {
    /// How to print it
    #[arg(long, value_enum, default_value_t = ScenariosFormat::Human)]
    format: ScenariosFormat,
}

/// An entry of a framework and the documents that are an example of it.
type Covered<'a> = BTreeMap<(&'a str, &'a str), (&'a str, Vec<&'a str>)>;

impl Coverage {
    fn run(self) -> Result<Exit, CommandError> {
        let all = attacks();
        let mut covered = Covered::new();
        for it in &all {
            for mapping in it.mappings() {
                let key = (mapping.framework.as_str(), mapping.id.as_str());
                let name = mapping.name.as_deref().unwrap_or_default();
                let (_, ids) = covered.entry(key).or_insert((name, Vec::new()));
                ids.push(it.id());
            }
        }
        let chains: Vec<&str> = all
            .iter()
            .filter(|it| it.protocols().len() > 1)
            .map(Scenario::id)
            .collect();
        let mut data = StdoutData::new();
        match self.format {
            ScenariosFormat::Json => data.json(&json!({
                "documents": all.len(),
                "cross_protocol": chains,
                "categories": Category::ALL.iter().map(|category| {
                    let modes = Mode::KNOWN.iter().map(|mode| {
                        (mode.to_string(), json!(ids(&all, category.as_str(), mode)))
                    });
                    json!({"category": category.as_str(), "modes": modes.collect::<serde_json::Map<_, _>>()})
                }).collect::<Vec<Value>>(),
                "entries": covered.iter().map(|((framework, id), (name, documents))| {
                    json!({"framework": framework, "id": id, "name": name, "documents": documents})
                }).collect::<Vec<Value>>(),
            }))?,
            ScenariosFormat::Human => {
                table(&mut data, &all)?;
                data.line(&format!("\n{} documents, {} across protocols", all.len(), chains.len()))?;
                let mut before = "";
                for ((framework, id), (name, documents)) in &covered {
                    if before != *framework {
                        data.line(&format!("\n{framework}"))?;
                        before = framework;
                    }
                    data.line(&format!("  {id:<14} {}", short(name)))?;
                    for some in documents.chunks(7) {
                        data.line(&format!("    {}", some.join(" ")))?;
                    }
                }
            }
        }
        data.finish()?;
        Ok(Exit::Success)
    }
}

/// A name that leaves room for the entry on a line of 80 letters.
fn short(name: &str) -> String {
    const ROOM: usize = 60;
    match name.char_indices().nth(ROOM) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

fn ids<'a>(all: &'a [Scenario], category: &str, mode: &Mode) -> Vec<&'a str> {
    all.iter()
        .filter(|it| it.category() == category && it.modes().contains(mode))
        .map(Scenario::id)
        .collect()
}

/// Categories by modes, with the number of documents.
fn table(data: &mut StdoutData, all: &[Scenario]) -> Result<(), CommandError> {
    // The names of modes have two parts, which stand above each other to keep the table narrow.
    let parts = Mode::NAMES
        .iter()
        .map(|mode| mode.rsplit_once('_').unwrap_or((mode, "")));
    let (mut protocols, mut sides) = (format!("{:<24}", ""), format!("{:<24}", ""));
    for (protocol, side) in parts {
        protocols.push_str(&format!(" {protocol:>7}"));
        sides.push_str(&format!(" {side:>7}"));
    }
    data.line(&protocols)?;
    data.line(&sides)?;
    for category in Category::ALL {
        let mut row = format!("{:<24}", category.as_str());
        for mode in Mode::KNOWN {
            row.push_str(&format!(" {:>7}", ids(all, category.as_str(), mode).len()));
        }
        data.line(&row)?;
    }
    Ok(())
}
