//! Whether what was found could be started: the program is there, and so are the packages that it needs. Code of the project
//! is not run for that.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::frameworks::{FrameworkUse, ProjectLanguage};

/// How long the interpreter may take to look for packages.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether it is done.
const LOOK: Duration = Duration::from_millis(20);

/// Interpreters of Python in a project, in the order in which they are tried.
const PYTHONS: [&str; 4] = [
    ".venv/bin/python",
    "venv/bin/python",
    ".venv/Scripts/python.exe",
    "venv/Scripts/python.exe",
];

/// Names the modules among its arguments that cannot be found, and the packages that are too new (`mcp<2`). Finding a module runs
/// no code of it but that of its parents.
const FIND_MODULES: &str = "import importlib.metadata as m, importlib.util as u, sys\n\
    def there(name):\n    \
        package, _, below = name.partition('<')\n    \
        try: return int(m.version(package).split('.')[0]) < int(below) if below else u.find_spec(name) is not None\n    \
        except Exception: return False\n\
    print(' '.join(name for name in sys.argv[1:] if not there(name)))";

/// Programs that read a configuration of MCP servers of a project: the file, the client, the program, and how it is
/// started for one prompt. `{servers}` stands for the tools of the servers.
const MCP_CLIENTS: [McpClientRow; 3] = [
    McpClientRow {
        file: ".mcp.json",
        client: "Claude Code",
        program: Some("claude"),
        command: "claude -p {prompt} --mcp-config {mcp_config} --strict-mcp-config --allowedTools {servers}",
        reads_project: false,
        permission: None,
    },
    McpClientRow {
        file: ".cursor/mcp.json",
        client: "Cursor",
        program: Some("cursor-agent"),
        // It trusts no directory that it has not seen, and every copy is a new one.
        command: "cursor-agent -p {prompt} --trust --approve-mcps",
        reads_project: true,
        permission: Some((".cursor/cli.json", "Mcp({server}:*)")),
    },
    McpClientRow {
        file: ".vscode/mcp.json",
        client: "VS Code",
        program: None,
        command: "",
        reads_project: true,
        permission: None,
    },
];

struct McpClientRow {
    file: &'static str,
    client: &'static str,
    /// The program that does one task without a window, if there is one.
    program: Option<&'static str>,
    command: &'static str,
    /// Whether it only reads the file in the directory that it works in.
    reads_project: bool,
    /// The file that says which tools it may call without asking, and what that file has to allow for a server.
    permission: Option<(&'static str, &'static str)>,
}

/// Where programs are: the project, and the directories that the system searches.
#[derive(Debug)]
pub struct ProjectPrograms<'a> {
    /// The directory of the project.
    pub project: &'a Path,
    /// The value of `PATH`.
    pub path: Option<String>,
}

/// A subject that could be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Startable {
    /// What it is, for people.
    pub what: String,
    /// The command, with placeholders.
    pub command: String,
    /// A file that has to be written for it, and its text.
    pub adapter: Option<(String, String)>,
    /// The configuration of MCP servers that it reads.
    pub mcp_config: Option<String>,
    /// Whether it needs a copy of the project for every run, because it looks for its configuration there.
    pub copies_project: bool,
    /// What to know about it.
    pub notes: Vec<String>,
}

/// Why something that was found cannot be started, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStartable {
    /// The file has nothing that an adapter could run.
    #[error(
        "{missing}. Add one, or name the command that starts your agent: proofhouse init --command '…'"
    )]
    NoObject {
        /// What is missing where.
        missing: String,
    },
    /// A program is not there.
    #[error(
        "{what} needs `{program}`, which is not installed or not in PATH. Install it, and run proofhouse init again"
    )]
    NoProgram {
        /// What needs it.
        what: String,
        /// The program.
        program: String,
    },
    /// Packages are not there.
    #[error(
        "{what} needs packages that {program} cannot find. Install them, and run proofhouse init again: {install}"
    )]
    NoPackages {
        /// What needs them.
        what: String,
        /// Who looked for them.
        program: String,
        /// How to install them.
        install: String,
    },
    /// The interpreter could not look for packages.
    #[error("{program} could not list its packages")]
    NoAnswer {
        /// The interpreter.
        program: String,
    },
    /// A client has no command that does one task.
    #[error(
        "{client} ({file}) cannot be started from the command line. Start its agent yourself with the attack as a server: \
         proofhouse attack DOC --mcp-server 127.0.0.1:8080, and http://127.0.0.1:8080/mcp in {file}"
    )]
    NoCommand {
        /// The client.
        client: String,
        /// Its configuration.
        file: String,
    },
}

impl ProjectPrograms<'_> {
    /// Where a program is: a file of the project, or one that the system finds.
    #[must_use]
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains(['/', '\\']) {
            let file = self.project.join(program);
            return file.is_file().then_some(file);
        }
        let path = self.path.as_deref()?;
        let mut directories = std::env::split_paths(path);
        directories.find_map(|directory| {
            let ends = if cfg!(windows) {
                &[".exe", ".cmd", ""][..]
            } else {
                &[""]
            };
            let files = ends
                .iter()
                .map(|end| directory.join(format!("{program}{end}")));
            files.into_iter().find(|file| file.is_file())
        })
    }

    /// How an agent of a framework is started.
    ///
    /// # Errors
    ///
    /// Returns what is missing.
    pub fn framework(&self, found: &FrameworkUse) -> Result<Startable, NotStartable> {
        let framework = found.framework();
        let adapter = found.adapter().ok_or_else(|| NotStartable::NoObject {
            missing: found.missing(),
        })?;
        let what = format!(
            "{} of {} ({})",
            found.object.as_deref().unwrap_or_default(),
            found.file,
            framework.name
        );
        let program = match framework.language {
            ProjectLanguage::Python => self.python(&what)?,
            ProjectLanguage::JavaScript => self.program(&what, "node")?,
        };
        let missing = match framework.language {
            ProjectLanguage::Python => self.missing_modules(&program, found)?,
            ProjectLanguage::JavaScript => self.missing_packages(found),
        };
        if !missing.is_empty() {
            let installer = match framework.language {
                ProjectLanguage::Python => format!("{program} -m pip install"),
                ProjectLanguage::JavaScript => "npm install".to_owned(),
            };
            let packages: Vec<String> = missing.iter().map(|one| format!("'{one}'")).collect();
            return Err(NotStartable::NoPackages {
                what,
                program,
                install: format!("{installer} {}", packages.join(" ")),
            });
        }
        let file = found.adapter_file();
        let other_agent = framework.takes_model_only().then(|| {
            format!(
                "the adapter tests `{}` in a standard agent of {}, not the agent that you build with it: to test that \
                 one, build it in {file}, where the comment says so",
                found.object.as_deref().unwrap_or_default(),
                framework.name
            )
        });
        let on_import = found.runs_on_import.then(|| {
            format!(
                "{} runs its agent when it is imported, so every test would run it once more: move that below \
                 `if __name__ == \"__main__\":`",
                found.file
            )
        });
        Ok(Startable {
            what,
            command: format!("{program} {file} {{prompt}}"),
            adapter: Some((file.to_owned(), adapter)),
            mcp_config: None,
            copies_project: false,
            notes: other_agent.into_iter().chain(on_import).collect(),
        })
    }

    /// How the client is started that reads a configuration of MCP servers; `None` when nobody is known to read it.
    ///
    /// # Errors
    ///
    /// Returns what is missing.
    pub fn mcp_client(
        &self,
        file: &str,
        servers: &[String],
    ) -> Option<Result<Startable, NotStartable>> {
        let row = MCP_CLIENTS.iter().find(|row| row.file == file)?;
        let what = format!("{} with the servers of {file}", row.client);
        let Some(program) = row.program else {
            return Some(Err(NotStartable::NoCommand {
                client: row.client.to_owned(),
                file: file.to_owned(),
            }));
        };
        let found = self.program(&what, program);
        Some(found.map(|_| {
            let is_plain = |name: &&String| {
                name.bytes()
                    .all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c))
            };
            let servers: Vec<&String> = servers.iter().filter(is_plain).collect();
            let tools: Vec<String> = servers.iter().map(|name| format!("mcp__{name}")).collect();
            let note = row.permission.map(|(permissions, rule)| {
                let rules = servers.iter().map(|name| rule.replace("{server}", name));
                let rules: Vec<String> = rules.map(|rule| format!("\"{rule}\"")).collect();
                format!(
                    "{} refuses calls of tools that no rule allows: add [{}] to `permissions.allow` in {permissions}",
                    row.client,
                    rules.join(", ")
                )
            });
            Startable {
                what,
                command: row.command.replace("{servers}", &tools.join(",")),
                adapter: None,
                mcp_config: Some(file.to_owned()),
                copies_project: row.reads_project,
                notes: note.into_iter().collect(),
            }
        }))
    }

    fn program(&self, what: &str, program: &str) -> Result<String, NotStartable> {
        let found = self.find(program).map(|_| program.to_owned());
        found.ok_or_else(|| NotStartable::NoProgram {
            what: what.to_owned(),
            program: program.to_owned(),
        })
    }

    fn python(&self, what: &str) -> Result<String, NotStartable> {
        let own = PYTHONS
            .iter()
            .find(|file| self.project.join(file).is_file());
        if let Some(own) = own {
            return Ok((*own).to_owned());
        }
        let named = ["python3", "python"].into_iter();
        let mut named = named.filter(|name| self.find(name).is_some());
        let found = named.next().map(str::to_owned);
        found.ok_or_else(|| NotStartable::NoProgram {
            what: what.to_owned(),
            program: "python3".to_owned(),
        })
    }

    /// The packages whose modules an interpreter does not find.
    fn missing_modules(
        &self,
        python: &str,
        found: &FrameworkUse,
    ) -> Result<Vec<&'static str>, NotStartable> {
        let no_answer = || NotStartable::NoAnswer {
            program: python.to_owned(),
        };
        let program = self.find(python).ok_or_else(no_answer)?;
        let needs = found.framework().needs;
        let mut child = Command::new(program)
            .args(["-c", FIND_MODULES])
            .args(needs.iter().map(|(module, _)| module))
            .current_dir(self.project)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|_| no_answer())?;
        let started = Instant::now();
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status.success(),
                Ok(None) if started.elapsed() < PATIENCE => std::thread::sleep(LOOK),
                Ok(None) | Err(_) => break false,
            }
        };
        if !ended {
            let _ = child.kill();
            let _ = child.wait();
            return Err(no_answer());
        }
        // What it prints is a few names, which fit into the pipe.
        let output = child.wait_with_output().map_err(|_| no_answer())?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let missing: Vec<&str> = told.split_whitespace().collect();
        let needs = needs.iter().filter(|(module, _)| missing.contains(module));
        let mut packages: Vec<&'static str> = needs.map(|(_, package)| *package).collect();
        packages.dedup();
        Ok(packages)
    }

    /// The packages of Node that are not installed in the project or above it.
    fn missing_packages(&self, found: &FrameworkUse) -> Vec<&'static str> {
        let project = self.project.canonicalize();
        let project = project.unwrap_or_else(|_| self.project.to_owned());
        let is_there = |package: &str| {
            let file = Path::new("node_modules").join(package).join("package.json");
            project
                .ancestors()
                .any(|directory| directory.join(&file).is_file())
        };
        let needs = found.framework().needs.iter();
        let needs = needs.filter(|(package, _)| !is_there(package));
        needs.map(|(_, package)| *package).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::detect;

    fn programs(project: &Path) -> ProjectPrograms<'_> {
        ProjectPrograms {
            project,
            path: Some(project.join("bin").display().to_string()),
        }
    }

    #[cfg(unix)]
    fn program(project: &Path, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = project.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn what_is_missing_is_named_with_how_to_get_it() {
        let directory = tempfile::tempdir().unwrap();
        let project = directory.path();
        std::fs::write(
            project.join("agent.py"),
            "from agents import Agent\nagent = Agent()\n",
        )
        .unwrap();
        let found = detect(project);
        let programs = programs(project);
        let error = programs.framework(&found.frameworks[0]).unwrap_err();
        assert!(
            matches!(&error, NotStartable::NoProgram { program, .. } if program == "python3"),
            "{error}"
        );
        program(project, ".venv/bin/python", "echo agents");
        let error = programs.framework(&found.frameworks[0]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(".venv/bin/python -m pip install 'openai-agents'"),
            "{error}"
        );
        program(project, ".venv/bin/python", "exit 1");
        let error = programs.framework(&found.frameworks[0]).unwrap_err();
        assert!(matches!(error, NotStartable::NoAnswer { .. }), "{error}");
        program(project, ".venv/bin/python", "echo");
        let start = programs.framework(&found.frameworks[0]).unwrap();
        assert_eq!(
            start.command,
            ".venv/bin/python proofhouse_agent.py {prompt}"
        );
    }

    #[test]
    #[cfg(unix)]
    fn clients_of_mcp_need_their_program() {
        let directory = tempfile::tempdir().unwrap();
        let programs = programs(directory.path());
        let servers = ["files".to_owned(), "a b".to_owned()];
        assert!(programs.mcp_client("mcp.json", &servers).is_none());
        let error = programs
            .mcp_client(".mcp.json", &servers)
            .unwrap()
            .unwrap_err();
        assert!(error.to_string().contains("`claude`"), "{error}");
        program(directory.path(), "bin/claude", "true");
        let start = programs.mcp_client(".mcp.json", &servers).unwrap().unwrap();
        assert!(
            start.command.ends_with("--allowedTools mcp__files"),
            "{}",
            start.command
        );
        let error = programs
            .mcp_client(".vscode/mcp.json", &servers)
            .unwrap()
            .unwrap_err();
        assert!(error.to_string().contains("--mcp-server"), "{error}");
        program(directory.path(), "bin/cursor-agent", "true");
        let start = programs.mcp_client(".cursor/mcp.json", &servers);
        let start = start.unwrap().unwrap();
        assert!(start.copies_project);
        assert!(
            start.notes[0].contains("add [\"Mcp(files:*)\"] to"),
            "{:?}",
            start.notes
        );
    }
}
