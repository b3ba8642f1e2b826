//! The flags that say where the actors of a document meet the agent under test.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};

use clap::Args;
use proofhouse_oatf::{Actor, Document, did_you_mean};
use proofhouse_range::{DRIVERS, Endpoint};
use proofhouse_subjects::headers::Header;
use proofhouse_wire::Spawn;

use crate::environment::environment;
use crate::output::{CommandError, printable_line, talk};

/// Where actors meet the agent, by mode or by name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Endpoints")]
pub(crate) struct EndpointOptions {
    /// Serve MCP here: an address such as 127.0.0.1:8080, or `stdio`
    #[arg(long, value_name = "ADDR")]
    mcp_server: Option<String>,

    /// Start this MCP server and attack it over its standard input and output
    #[arg(long, value_name = "COMMAND", conflicts_with = "mcp_client_url")]
    mcp_client_command: Option<String>,

    /// Attack the MCP server at this URL
    #[arg(long, value_name = "URL")]
    mcp_client_url: Option<String>,

    /// Serve A2A here: an address such as 127.0.0.1:8081
    #[arg(long, value_name = "ADDR")]
    a2a_server: Option<String>,

    /// Attack the A2A agent at this URL
    #[arg(long, value_name = "URL")]
    a2a_client_url: Option<String>,

    /// Attack the AG-UI agent at this URL
    #[arg(long, value_name = "URL")]
    ag_ui_url: Option<String>,

    /// The endpoint of one actor, by its name: an address, `stdio`, a URL or a command
    #[arg(long = "endpoint", value_name = "ACTOR=ENDPOINT")]
    endpoints: Vec<String>,

    /// A header that requests carry, such as `Authorization: Bearer …`; its value stays out of
    /// everything that is written
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
}

impl EndpointOptions {
    /// The endpoint of every actor that was given one. Flags that fit no actor are mistakes.
    pub(crate) fn of(
        &self,
        document: &Document,
    ) -> Result<HashMap<String, Endpoint>, CommandError> {
        let actors = document.attack.execution.actors();
        let mut endpoints = HashMap::new();
        let by_mode = [
            ("--mcp-server", "mcp_server", &self.mcp_server),
            (
                "--mcp-client-command",
                "mcp_client",
                &self.mcp_client_command,
            ),
            ("--mcp-client-url", "mcp_client", &self.mcp_client_url),
            ("--a2a-server", "a2a_server", &self.a2a_server),
            ("--a2a-client-url", "a2a_client", &self.a2a_client_url),
            ("--ag-ui-url", "ag_ui_client", &self.ag_ui_url),
        ];
        let named: Vec<(&Actor, &str)> = self
            .endpoints
            .iter()
            .map(|text| find_actor(text, actors))
            .collect::<Result<_, _>>()?;
        for (flag, mode, text) in by_mode {
            let Some(text) = text else { continue };
            let fitting = actors.iter().filter(|actor| actor.mode == mode);
            let open: Vec<&Actor> = fitting
                .filter(|actor| named.iter().all(|(other, _)| other.name != actor.name))
                .collect();
            match open.as_slice() {
                [actor] => {
                    endpoints.insert(actor.name.clone(), read(flag, actor, text)?);
                }
                [] => {
                    return Err(CommandError::usage(format!(
                        "{flag}: the document has no actor of mode {mode} without an endpoint"
                    )));
                }
                several => {
                    let names: Vec<&str> = several.iter().map(|actor| &*actor.name).collect();
                    return Err(CommandError::usage(format!(
                        "{flag}: several actors have mode {mode}; name them with --endpoint: {}",
                        names.join(", ")
                    )));
                }
            }
        }
        for (actor, text) in named {
            endpoints.insert(actor.name.clone(), read("--endpoint", actor, text)?);
        }
        for actor in actors {
            let driver = DRIVERS.iter().find(|driver| driver.mode() == actor.mode);
            if driver.is_none_or(|driver| driver.default_endpoint().is_some())
                || endpoints.contains_key(&actor.name)
            {
                continue;
            }
            let fitting = by_mode.iter().filter(|(_, mode, _)| *mode == actor.mode);
            let mut flags: Vec<&str> = fitting.map(|(flag, ..)| *flag).collect();
            if flags.is_empty() {
                flags.push("--endpoint");
            }
            return Err(CommandError::usage(format!(
                "actor `{}` has no endpoint: say where the agent is with {}",
                actor.name,
                flags.join(" or ")
            )));
        }
        for (name, endpoint) in &endpoints {
            if let Endpoint::Listen(address) = endpoint
                && !address.ip().is_loopback()
            {
                talk(&format!(
                    "warning: actor `{name}` listens on {address}, where others may reach it"
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
                Header::read(header)
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

/// What a text means for an actor of this mode.
fn read(flag: &str, actor: &Actor, text: &str) -> Result<Endpoint, CommandError> {
    if text == "stdio" && !flag.starts_with("--mcp-client") {
        return Ok(Endpoint::Stdio);
    }
    if actor.mode.ends_with("_server") {
        return address(text).map(Endpoint::Listen).ok_or_else(|| {
            CommandError::usage(format!(
                "{flag} {text}: write an address such as 127.0.0.1:8080 (port 0 takes a free one)"
            ))
        });
    }
    let takes_command = match flag {
        "--mcp-client-command" => true,
        "--endpoint" => actor.mode == "mcp_client" && !text.contains("://"),
        _ => false,
    };
    if takes_command {
        return command(flag, text);
    }
    if is_url(text) {
        return Ok(Endpoint::Url(text.to_owned()));
    }
    Err(CommandError::usage(format!(
        "{flag} {text}: write a URL that begins with http:// or https://"
    )))
}

fn command(flag: &str, text: &str) -> Result<Endpoint, CommandError> {
    if is_url(text) {
        return Err(CommandError::usage(format!(
            "{flag} {text}: write a command; for a URL there is --mcp-client-url"
        )));
    }
    let words = shlex::split(text).ok_or_else(|| {
        CommandError::usage(format!(
            "{flag} {text}: a quote or a backslash is not closed"
        ))
    })?;
    match words.split_first() {
        Some((program, arguments)) if !program.is_empty() => Ok(Endpoint::Command(Spawn {
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

    #[test]
    fn flags_find_their_actors() {
        let options = EndpointOptions {
            mcp_server: Some(":0".to_owned()),
            mcp_client_command: Some("python 'my server.py'".to_owned()),
            endpoints: vec!["peer=http://127.0.0.1:1/".to_owned()],
            a2a_client_url: Some("http://127.0.0.1:2/".to_owned()),
            ..EndpointOptions::default()
        };
        let endpoints = options.of(&document()).unwrap();
        let shown = |name: &str| endpoints[name].to_string();
        assert_eq!(shown("tools"), "127.0.0.1:0");
        assert_eq!(shown("peer"), "http://127.0.0.1:1/");
        assert_eq!(
            shown("other"),
            "http://127.0.0.1:2/",
            "the one that is left"
        );
        let Endpoint::Command(spawn) = &endpoints["probe"] else {
            panic!("not a command");
        };
        assert_eq!(spawn.arguments, ["my server.py"]);
    }

    #[test]
    fn mistakes_are_told() {
        let with = |change: fn(&mut EndpointOptions)| {
            let mut options = EndpointOptions::default();
            change(&mut options);
            options.of(&document()).unwrap_err().message
        };
        for (message, expected) in [
            (
                with(|o| o.ag_ui_url = Some("http://x/".into())),
                "no actor of mode ag_ui_client",
            ),
            (
                with(|o| o.a2a_client_url = Some("http://x/".into())),
                "peer, other",
            ),
            (
                with(|o| o.endpoints = vec!["tolls=:0".into()]),
                "did you mean `tools`",
            ),
            (
                with(|o| o.endpoints = vec!["tools".into()]),
                "ACTOR=ENDPOINT",
            ),
            (
                with(|o| o.mcp_server = Some("here".into())),
                "an address such as",
            ),
            (
                with(|o| o.endpoints = vec!["peer=cmd".into()]),
                "begins with http://",
            ),
            (
                with(|o| o.mcp_client_url = Some("touch /tmp/x".into())),
                "begins with http://",
            ),
            (
                with(|o| o.mcp_client_url = Some("http://".into())),
                "begins with http://",
            ),
            (
                with(|o| o.endpoints = vec!["probe=ftp://x/".into()]),
                "begins with http://",
            ),
            (
                with(|o| o.mcp_client_command = Some("http://x/".into())),
                "--mcp-client-url",
            ),
            (
                with(|o| o.mcp_client_command = Some(" ".into())),
                "the command is empty",
            ),
            (
                with(|o| o.mcp_client_command = Some("a 'b".into())),
                "is not closed",
            ),
            (
                with(|o| o.mcp_client_url = Some("http://x/".into())),
                "actor `peer` has no endpoint: say where the agent is with --a2a-client-url",
            ),
            (
                with(|o| o.endpoints = vec!["peer=http://x/".into()]),
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
            let options = EndpointOptions {
                headers: vec![header.to_owned()],
                ..EndpointOptions::default()
            };
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
