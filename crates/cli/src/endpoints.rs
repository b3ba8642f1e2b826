//! The flags that say where the actors of a document meet the agent under test.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use proofhouse_oatf::{Actor, Document, did_you_mean};
use proofhouse_range::{ActorEndpoint, BuiltInMode, EndpointFlag, EndpointForm};
use proofhouse_subjects::headers::RequestHeader;
use proofhouse_wire::Spawn;

use crate::environment::environment;
use crate::output::{CommandError, printable_line, talk};

/// Where actors meet the agent, by mode or by name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Endpoints")]
pub(crate) struct EndpointOptions {
    #[command(flatten)]
    by_mode: ModeFlags,

    /// The endpoint of one actor of the document, by name: an address, `stdio`, a URL or a command
    #[arg(long = "endpoint", value_name = "ACTOR=ENDPOINT")]
    endpoints: Vec<String>,

    /// An HTTP header to send with requests, such as `Authorization: Bearer …`. Its value never appears in output
    /// or files
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

/// The flags of the modes that can be driven, with what was written behind them. They come from the drivers.
#[derive(Debug, Clone, Default)]
struct ModeFlags(Vec<(BuiltInMode, EndpointFlag, String)>);

/// Every flag of every mode.
fn mode_flags() -> impl Iterator<Item = (BuiltInMode, &'static EndpointFlag)> {
    BuiltInMode::ALL.iter().flat_map(|mode| {
        let flags = mode.driver().endpoint_flags().iter();
        flags.map(move |flag| (*mode, flag))
    })
}

impl Args for ModeFlags {
    fn augment_args(command: Command) -> Command {
        mode_flags().fold(command, |command, (mode, flag)| {
            let value = match flag.form {
                EndpointForm::Address => "ADDR",
                EndpointForm::Command => "COMMAND",
                EndpointForm::Url => "URL",
            };
            let all = mode.driver().endpoint_flags().iter();
            let others = all.filter(|other| other.name != flag.name);
            command.arg(
                Arg::new(flag.name)
                    .long(flag.name)
                    .value_name(value)
                    .help(flag.help)
                    .conflicts_with_all(others.map(|other| other.name)),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ModeFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = mode_flags().filter_map(|(mode, flag)| {
            let text = matches.get_one::<String>(flag.name)?;
            Some((mode, *flag, text.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl EndpointOptions {
    /// The endpoint of every actor that was given one. Flags that fit no actor are mistakes.
    pub(crate) fn of(
        &self,
        document: &Document,
    ) -> Result<HashMap<String, ActorEndpoint>, CommandError> {
        let actors = document.attack.execution.actors();
        let mut endpoints = HashMap::new();
        let named: Vec<(&Actor, &str)> = self
            .endpoints
            .iter()
            .map(|text| find_actor(text, actors))
            .collect::<Result<_, _>>()?;
        for (mode, flag, text) in &self.by_mode.0 {
            let mode = mode.mode();
            let fitting = actors.iter().filter(|actor| actor.mode == mode);
            let open: Vec<&Actor> = fitting
                .filter(|actor| named.iter().all(|(other, _)| other.name != actor.name))
                .collect();
            match open.as_slice() {
                [actor] => {
                    endpoints.insert(actor.name.clone(), read(Some(flag), actor, text)?);
                }
                [] => {
                    return Err(CommandError::usage(format!(
                        "--{}: the document has no actor of mode {mode}, or all of them have an endpoint already",
                        flag.name
                    )));
                }
                several => {
                    let names: Vec<&str> = several.iter().map(|actor| &*actor.name).collect();
                    return Err(CommandError::usage(format!(
                        "--{}: several actors have mode {mode}; name them with --endpoint: {}",
                        flag.name,
                        names.join(", ")
                    )));
                }
            }
        }
        for (actor, text) in named {
            endpoints.insert(actor.name.clone(), read(None, actor, text)?);
        }
        for actor in actors {
            let Some(driver) = BuiltInMode::of(&actor.mode).map(BuiltInMode::driver) else {
                continue;
            };
            if driver.default_endpoint().is_some() || endpoints.contains_key(&actor.name) {
                continue;
            }
            let flags = driver.endpoint_flags().iter();
            let mut flags: Vec<String> = flags.map(|flag| format!("--{}", flag.name)).collect();
            if flags.is_empty() {
                flags.push("--endpoint".to_owned());
            }
            return Err(CommandError::usage(format!(
                "actor `{}` has no endpoint: say where your agent is with {}",
                actor.name,
                flags.join(" or ")
            )));
        }
        for (name, endpoint) in &endpoints {
            if let ActorEndpoint::Listen(address) = endpoint
                && !address.ip().is_loopback()
            {
                talk(&format!(
                    "warning: actor `{name}` listens on {address}, which other machines can reach"
                ));
            }
        }
        Ok(endpoints)
    }

    /// The headers, taken apart.
    pub(crate) fn headers(&self) -> Result<Vec<(String, String)>, CommandError> {
        self.headers
            .iter()
            .map(|header| {
                RequestHeader::read(header)
                    .and_then(|header| header.resolve(&environment()))
                    .map_err(|error| {
                        CommandError::usage(printable_line(&format!("--header: {error}")))
                    })
            })
            .collect()
    }
}

fn find_actor<'d, 't>(
    text: &'t str,
    actors: &'d [Actor],
) -> Result<(&'d Actor, &'t str), CommandError> {
    let (name, endpoint) = text
        .split_once('=')
        .ok_or_else(|| CommandError::usage(format!("--endpoint {text}: write ACTOR=ENDPOINT")))?;
    let Some(actor) = actors.iter().find(|actor| actor.name == name) else {
        let names = actors.iter().map(|actor| actor.name.as_str());
        let help = did_you_mean(name, names)
            .map(|near| format!("; did you mean `{near}`?"))
            .unwrap_or_default();
        return Err(CommandError::usage(format!(
            "--endpoint: the document has no actor `{name}`{help}"
        )));
    };
    Ok((actor, endpoint))
}

/// What a text means for an actor: behind the flag of its mode, or behind `--endpoint`.
fn read(
    flag: Option<&EndpointFlag>,
    actor: &Actor,
    text: &str,
) -> Result<ActorEndpoint, CommandError> {
    let name = flag.map_or("endpoint", |flag| flag.name);
    let name = &format!("--{name}");
    let driver = BuiltInMode::of(&actor.mode).map(BuiltInMode::driver);
    let flags = driver.map_or(&[][..], |driver| driver.endpoint_flags());
    let starts_commands = flags.iter().any(|flag| flag.form == EndpointForm::Command);
    if text == "stdio" && (flag.is_none() || !starts_commands) {
        return Ok(ActorEndpoint::Stdio);
    }
    if actor.mode.is_server() {
        return address(text).map(ActorEndpoint::Listen).ok_or_else(|| {
            CommandError::usage(format!(
                "{name} {text}: write an address such as 127.0.0.1:8080 (port 0 picks a free port)"
            ))
        });
    }
    let takes_command = match flag {
        Some(flag) => flag.form == EndpointForm::Command,
        None => starts_commands && !text.contains("://"),
    };
    if takes_command {
        let at_url = flags.iter().find(|flag| flag.form == EndpointForm::Url);
        return command(name, text, at_url.map(|flag| flag.name));
    }
    if is_url(text) {
        return Ok(ActorEndpoint::Url(text.to_owned()));
    }
    Err(CommandError::usage(format!(
        "{name} {text}: write a URL that begins with http:// or https://"
    )))
}

fn command(flag: &str, text: &str, at_url: Option<&str>) -> Result<ActorEndpoint, CommandError> {
    if is_url(text) {
        let other = at_url.map(|other| format!("; for a URL there is --{other}"));
        return Err(CommandError::usage(format!(
            "{flag} {text}: write a command{}",
            other.unwrap_or_default()
        )));
    }
    let words = shlex::split(text).ok_or_else(|| {
        CommandError::usage(format!(
            "{flag} {text}: a quote or a backslash is not closed"
        ))
    })?;
    match words.split_first() {
        Some((program, arguments)) if !program.is_empty() => Ok(ActorEndpoint::Command(Spawn {
            program: program.clone(),
            arguments: arguments.to_vec(),
            ..Spawn::default()
        })),
        _ => Err(CommandError::usage(format!("{flag}: the command is empty"))),
    }
}

/// Whether a text is a URL with a host.
fn is_url(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let rest = lower
        .strip_prefix("http://")
        .or_else(|| lower.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        !rest.starts_with(['/', '?', '#', ':'])
            && !rest.is_empty()
            && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
    })
}

fn address(text: &str) -> Option<SocketAddr> {
    let full = if text.starts_with(':') {
        format!("127.0.0.1{text}")
    } else {
        text.to_owned()
    };
    full.parse()
        .ok()
        .or_else(|| full.to_socket_addrs().ok()?.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_oatf::load;

    fn document() -> Document {
        load(
            r#"
oatf: "0.1"
attack:
  execution:
    actors:
      - {name: tools, mode: mcp_server, phases: [{state: {}}]}
      - {name: probe, mode: mcp_client, phases: [{state: {}}]}
      - {name: peer, mode: a2a_client, phases: [{state: {}}]}
      - {name: other, mode: a2a_client, phases: [{state: {}}]}
"#,
        )
        .unwrap()
        .document
    }

    fn options(flags: &[&str]) -> EndpointOptions {
        let command = EndpointOptions::augment_args(Command::new("attack"));
        let words = std::iter::once("attack").chain(flags.iter().copied());
        EndpointOptions::from_arg_matches(&command.get_matches_from(words)).unwrap()
    }

    #[test]
    fn flags_find_their_actors() {
        let options = options(&[
            "--mcp-server=:0",
            "--mcp-client-command=python 'my server.py'",
            "--endpoint=peer=http://127.0.0.1:1/",
            "--a2a-client-url=http://127.0.0.1:2/",
        ]);
        let endpoints = options.of(&document()).unwrap();
        let shown = |name: &str| endpoints[name].to_string();
        assert_eq!(shown("tools"), "127.0.0.1:0");
        assert_eq!(shown("peer"), "http://127.0.0.1:1/");
        assert_eq!(
            shown("other"),
            "http://127.0.0.1:2/",
            "the one that is left"
        );
        let ActorEndpoint::Command(spawn) = &endpoints["probe"] else {
            panic!("not a command");
        };
        assert_eq!(spawn.arguments, ["my server.py"]);
    }

    #[test]
    fn mistakes_are_told() {
        let with = |flag: &str| options(&[flag]).of(&document()).unwrap_err().message;
        for (message, expected) in [
            (
                with("--ag-ui-url=http://x/"),
                "no actor of mode ag_ui_client",
            ),
            (with("--a2a-client-url=http://x/"), "peer, other"),
            (with("--endpoint=tolls=:0"), "did you mean `tools`"),
            (with("--endpoint=tools"), "ACTOR=ENDPOINT"),
            (with("--mcp-server=here"), "an address such as"),
            (with("--endpoint=peer=cmd"), "begins with http://"),
            (with("--mcp-client-url=touch /tmp/x"), "begins with http://"),
            (with("--mcp-client-url=http://"), "begins with http://"),
            (with("--endpoint=probe=ftp://x/"), "begins with http://"),
            (with("--mcp-client-command=http://x/"), "--mcp-client-url"),
            (with("--mcp-client-command= "), "the command is empty"),
            (with("--mcp-client-command=a 'b"), "is not closed"),
            (
                with("--mcp-client-url=http://x/"),
                "actor `peer` has no endpoint: say where your agent is with --a2a-client-url",
            ),
            (
                with("--endpoint=peer=http://x/"),
                "--mcp-client-command or --mcp-client-url",
            ),
        ] {
            assert!(message.contains(expected), "{message}");
        }
        for header in [
            "sk-secret",
            ": sk-secret",
            "a b: sk-secret",
            "a: sk-secret\n",
            "a: sk-secret\r\nb: c",
            "a: sk-secreté",
            "Host: sk-secret",
            "content-length: 3",
            "Transfer-Encoding: chunked",
        ] {
            let options = options(&[&format!("--header={header}")]);
            match options.headers() {
                Err(error) => {
                    assert_eq!(error.exit.code(), 64);
                    assert!(!error.message.contains("sk-secret"), "{header}");
                }
                // What stands around a value is no part of it.
                Ok(headers) => assert_eq!(headers, [("a".to_owned(), "sk-secret".to_owned())]),
            }
        }
    }
}
