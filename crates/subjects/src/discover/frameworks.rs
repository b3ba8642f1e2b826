//! The frameworks that agents are written with: how each is recognised in a project, and the adapter that lets its agent be
//! tested. Code of the project is read, never run.

use std::path::Path;

/// What a project is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLanguage {
    /// Python.
    Python,
    /// JavaScript or TypeScript.
    JavaScript,
}

/// A framework.
#[derive(Debug)]
pub struct AgentFramework {
    /// Its name.
    pub name: &'static str,
    /// The page of the book that tells how its agents are tested.
    pub page: &'static str,
    /// What agents are written in.
    pub language: ProjectLanguage,
    /// How the modules begin that an agent of it imports.
    modules: &'static [&'static str],
    /// What is wanted of the project, and what makes it: `agent`, by `Agent(`.
    wanted: &'static str,
    makers: &'static [&'static str],
    /// Modules that the adapter needs, each with the package that has it. `mcp<2` is a package that has to be older than that.
    pub needs: &'static [(&'static str, &'static str)],
    adapter: &'static str,
}

/// Every framework there is. Where several fit a file, the first is meant.
pub static FRAMEWORKS: &[AgentFramework] = &[
    AgentFramework {
        name: "OpenAI Agents SDK",
        page: "docs/how-to/openai-agents.md",
        language: ProjectLanguage::Python,
        // The name is a common one, so what is imported has to fit as well.
        modules: &[
            "agents import Agent",
            "agents import Runner",
            "agents import (",
            "agents.mcp",
        ],
        wanted: "agent",
        makers: &["Agent("],
        needs: &[("agents", "openai-agents")],
        adapter: include_str!("adapters/openai_agents.py"),
    },
    AgentFramework {
        name: "Pydantic AI",
        page: "docs/how-to/pydantic-ai.md",
        language: ProjectLanguage::Python,
        modules: &["pydantic_ai"],
        wanted: "agent",
        makers: &["Agent("],
        needs: &[
            ("pydantic_ai", "pydantic-ai-slim[mcp]"),
            ("mcp", "pydantic-ai-slim[mcp]"),
        ],
        adapter: include_str!("adapters/pydantic_ai.py"),
    },
    AgentFramework {
        name: "CrewAI",
        page: "docs/how-to/crewai.md",
        language: ProjectLanguage::Python,
        modules: &["crewai"],
        wanted: "agent",
        makers: &["Agent("],
        needs: &[
            ("crewai", "crewai"),
            ("crewai_tools", "crewai-tools[mcp]"),
            ("mcpadapt", "crewai-tools[mcp]"),
            ("mcp<2", "mcp[ws]<2"),
            ("websockets", "mcp[ws]<2"),
        ],
        adapter: include_str!("adapters/crewai.py"),
    },
    AgentFramework {
        name: "Google ADK",
        page: "docs/how-to/google-adk.md",
        language: ProjectLanguage::Python,
        modules: &["google.adk"],
        wanted: "agent",
        makers: &["LlmAgent(", "Agent("],
        needs: &[("google.adk", "google-adk"), ("mcp", "mcp")],
        adapter: include_str!("adapters/google_adk.py"),
    },
    AgentFramework {
        name: "smolagents",
        page: "docs/how-to/smolagents.md",
        language: ProjectLanguage::Python,
        modules: &["smolagents"],
        wanted: "agent",
        makers: &["ToolCallingAgent(", "CodeAgent("],
        needs: &[
            ("smolagents", "smolagents[mcp]"),
            ("mcpadapt", "smolagents[mcp]"),
            ("mcp<2", "mcp[ws]<2"),
            ("websockets", "mcp[ws]<2"),
        ],
        adapter: include_str!("adapters/smolagents.py"),
    },
    AgentFramework {
        name: "Strands Agents",
        page: "docs/how-to/strands.md",
        language: ProjectLanguage::Python,
        modules: &["strands"],
        wanted: "agent",
        makers: &["Agent("],
        needs: &[("strands", "strands-agents")],
        adapter: include_str!("adapters/strands.py"),
    },
    AgentFramework {
        name: "Microsoft Agent Framework",
        page: "docs/how-to/autogen.md",
        language: ProjectLanguage::Python,
        modules: &["agent_framework"],
        wanted: "agent",
        makers: &["ChatAgent(", "Agent(", ".create_agent(", ".as_agent("],
        needs: &[("agent_framework", "agent-framework-core"), ("mcp", "mcp")],
        adapter: include_str!("adapters/agent_framework.py"),
    },
    AgentFramework {
        name: "AutoGen",
        page: "docs/how-to/autogen.md",
        language: ProjectLanguage::Python,
        modules: &["autogen_agentchat", "autogen_ext"],
        wanted: "model client",
        makers: &["ChatCompletionClient("],
        needs: &[
            ("autogen_agentchat", "autogen-agentchat"),
            ("autogen_ext.tools.mcp", "autogen-ext[mcp]"),
            ("mcp<2", "mcp[ws]<2"),
            ("websockets", "mcp[ws]<2"),
        ],
        adapter: include_str!("adapters/autogen.py"),
    },
    AgentFramework {
        name: "LangGraph",
        page: "docs/how-to/langgraph.md",
        language: ProjectLanguage::Python,
        modules: &["langgraph", "langchain"],
        wanted: "model",
        makers: &[
            "init_chat_model(",
            "ChatOpenAI(",
            "ChatAnthropic(",
            "ChatGoogleGenerativeAI(",
            "ChatOllama(",
            "ChatBedrock(",
            "AzureChatOpenAI(",
            "ChatMistralAI(",
            "ChatGroq(",
        ],
        needs: &[
            ("langgraph.prebuilt", "langgraph"),
            ("langchain_mcp_adapters", "langchain-mcp-adapters"),
        ],
        adapter: include_str!("adapters/langgraph.py"),
    },
    AgentFramework {
        name: "Mastra",
        page: "docs/how-to/mastra.md",
        language: ProjectLanguage::JavaScript,
        modules: &["@mastra/core"],
        wanted: "agent",
        makers: &["new Agent("],
        needs: &[
            ("@mastra/core", "@mastra/core"),
            ("@mastra/mcp", "@mastra/mcp"),
        ],
        adapter: include_str!("adapters/mastra.mjs"),
    },
    AgentFramework {
        name: "AI SDK",
        page: "docs/how-to/ai-sdk.md",
        language: ProjectLanguage::JavaScript,
        modules: &["ai"],
        wanted: "model",
        makers: &[
            "openai(",
            "anthropic(",
            "google(",
            "gateway(",
            "createOpenAICompatible(",
        ],
        needs: &[("ai", "ai"), ("@ai-sdk/mcp", "@ai-sdk/mcp")],
        adapter: include_str!("adapters/ai_sdk.mjs"),
    },
];

/// A file of a project that uses a framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundFramework {
    /// Which, by its place in [`FRAMEWORKS`].
    place: usize,
}

/// A framework in a project, and what its adapter would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameworkUse {
    found: FoundFramework,
    /// The file, from the root of the project.
    pub file: String,
    /// The name of the object that the adapter takes from the file; absent when there is none at its top level.
    pub object: Option<String>,
    /// Whether the file starts its agent when it is imported.
    pub runs_on_import: bool,
    /// The directory that has the module, and the module.
    root: String,
    module: String,
}

impl AgentFramework {
    /// Whether its adapter takes only the model from the project, and puts a standard agent around it.
    #[must_use]
    pub fn takes_model_only(&self) -> bool {
        self.wanted.starts_with("model")
    }
}

impl FrameworkUse {
    /// What a file uses, if it uses a framework. `is_package` says whether a directory of the project is a package of
    /// Python.
    pub(crate) fn find(file: &str, text: &str, is_package: impl Fn(&str) -> bool) -> Option<Self> {
        let language = match Path::new(file).extension()?.to_str()? {
            "py" => ProjectLanguage::Python,
            "ts" | "mts" | "js" | "mjs" => ProjectLanguage::JavaScript,
            _ => return None,
        };
        let frameworks = FRAMEWORKS.iter().enumerate();
        let (place, framework) = frameworks
            .filter(|(_, framework)| framework.language == language)
            .find(|(_, framework)| framework.is_imported_by(text))?;
        let (root, module) = module_of(file, is_package);
        // Names of modules go into code, so they have to be names.
        let is_module = language == ProjectLanguage::JavaScript || module.split('.').all(is_name);
        let object = framework
            .object(text)
            .filter(|_| is_module && is_path(file));
        Some(Self {
            found: FoundFramework { place },
            file: file.to_owned(),
            object,
            runs_on_import: language == ProjectLanguage::Python && runs_on_import(text),
            root,
            module,
        })
    }

    /// The framework.
    #[must_use]
    pub fn framework(&self) -> &'static AgentFramework {
        &FRAMEWORKS[self.found.place]
    }

    /// The file that the adapter goes to.
    #[must_use]
    pub fn adapter_file(&self) -> &'static str {
        match self.framework().language {
            ProjectLanguage::Python => "proofhouse_agent.py",
            ProjectLanguage::JavaScript => "proofhouse_agent.mjs",
        }
    }

    /// The adapter, if there is an object for it.
    #[must_use]
    pub fn adapter(&self) -> Option<String> {
        let object = self.object.as_deref()?;
        let text = self.framework().adapter.replace("{{name}}", object);
        let text = text.replace("{{path}}", &self.file);
        let text = text.replace("{{root}}", &self.root);
        Some(text.replace("{{module}}", &self.module))
    }

    /// What the file lacks, for people.
    #[must_use]
    pub fn missing(&self) -> String {
        let framework = self.framework();
        let (export, example) = match framework.language {
            ProjectLanguage::Python => (
                "at its top level",
                format!("{} = …", framework.wanted.replace(' ', "_")),
            ),
            ProjectLanguage::JavaScript => (
                "as an export",
                format!("export const {} = …", framework.wanted),
            ),
        };
        format!(
            "{} uses {}, but has no {} {export} ({example}) that an adapter could use",
            self.file, framework.name, framework.wanted
        )
    }
}

impl AgentFramework {
    fn is_imported_by(&self, text: &str) -> bool {
        text.lines().map(str::trim_start).any(|line| {
            let imported = match self.language {
                ProjectLanguage::Python => line
                    .strip_prefix("from ")
                    .or_else(|| line.strip_prefix("import ")),
                ProjectLanguage::JavaScript => line
                    .split_once("from ")
                    .map(|(_, module)| module.trim_start_matches(['"', '\''])),
            };
            let Some(imported) = imported else {
                return false;
            };
            self.modules.iter().any(|module| {
                let rest = imported.strip_prefix(module);
                rest.is_some_and(|rest| {
                    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
                })
            })
        })
    }

    /// The name of the first object at the top level that the framework makes.
    fn object(&self, text: &str) -> Option<String> {
        text.lines().find_map(|line| {
            let line = match self.language {
                ProjectLanguage::Python => line,
                ProjectLanguage::JavaScript => line.strip_prefix("export const ")?,
            };
            let (name, made) = line.split_once('=')?;
            let name = name.split(':').next().unwrap_or(name).trim_end();
            let made = made.trim_start();
            let makes = self.makers.iter().any(|maker| {
                let whole = made.starts_with(maker);
                // `provider.ChatOpenAI(`, `client.create_agent(`
                let part = made.split('(').next().is_some_and(|called| {
                    let called = format!("{called}(");
                    called.ends_with(maker) && !called.contains([' ', '"', '\''])
                });
                // `OpenAIChatClient(model="x").as_agent(`, but not what is an argument of something else.
                let chained = maker.starts_with('.')
                    && made.split_once(maker).is_some_and(|(before, _)| {
                        before.matches('(').count() == before.matches(')').count()
                    });
                whole || part || chained
            });
            (makes && is_name(name)).then(|| name.to_owned())
        })
    }
}

/// Whether a text is a name in Python and JavaScript.
fn is_name(text: &str) -> bool {
    text.len() <= 80
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// Whether a path can stand in code as it is.
fn is_path(text: &str) -> bool {
    text.bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"-_./".contains(&c))
}

/// The directory from which a file of Python is imported, and its name as a module.
fn module_of(file: &str, is_package: impl Fn(&str) -> bool) -> (String, String) {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let parts: Vec<&str> = stem.split('/').collect();
    let mut start = parts.len() - 1;
    while start > 0 && is_package(&parts[..start].join("/")) {
        start -= 1;
    }
    let root = parts[..start].join("/");
    let root = if root.is_empty() {
        ".".to_owned()
    } else {
        root
    };
    (root, parts[start..].join("."))
}

/// Whether a file of Python calls an agent where it is only imported.
fn runs_on_import(text: &str) -> bool {
    let calls = [
        "Runner.run",
        ".run_sync(",
        ".kickoff(",
        ".invoke(",
        ".ainvoke(",
        "asyncio.run(",
        "agent.run(",
        "agent(",
    ];
    text.lines().any(|line| {
        let is_code = !line.starts_with([' ', '\t', '#', '@']) && !line.starts_with("def ");
        is_code && calls.iter().any(|call| line.contains(call)) && !line.contains("Agent(")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(file: &str, text: &str) -> Option<FrameworkUse> {
        FrameworkUse::find(file, text, |directory| directory == "src/app")
    }

    #[test]
    fn every_framework_is_recognised_by_its_quick_start() {
        for (file, text, framework, object) in [
            (
                "agent.py",
                "from agents import Agent, Runner\n\nagent = Agent(name=\"x\")\n",
                "OpenAI Agents SDK",
                Some("agent"),
            ),
            (
                "main.py",
                "from pydantic_ai import Agent\nweather_agent: Agent = Agent(\n    'openai:gpt-5',\n)\n",
                "Pydantic AI",
                Some("weather_agent"),
            ),
            (
                "a.py",
                "from crewai import Agent, Crew\nresearcher = Agent(role='x')\n",
                "CrewAI",
                Some("researcher"),
            ),
            (
                "a.py",
                "from google.adk.agents import Agent\nroot_agent = Agent(name='x')\n",
                "Google ADK",
                Some("root_agent"),
            ),
            (
                "a.py",
                "from smolagents import CodeAgent, InferenceClientModel\nagent = CodeAgent(tools=[], model=m)\n",
                "smolagents",
                Some("agent"),
            ),
            (
                "a.py",
                "from strands import Agent\nagent = Agent()\n",
                "Strands Agents",
                Some("agent"),
            ),
            (
                "a.py",
                "from agent_framework.openai import OpenAIChatClient\nagent = OpenAIChatClient(model=\"x\").as_agent(\n",
                "Microsoft Agent Framework",
                Some("agent"),
            ),
            (
                "a.py",
                "from agent_framework.openai import OpenAIChatClient\nteam = Team(OpenAIChatClient().as_agent(\n",
                "Microsoft Agent Framework",
                None,
            ),
            (
                "a.py",
                "from agent_framework import ChatAgent\nagent = ChatAgent(chat_client=c)\n",
                "Microsoft Agent Framework",
                Some("agent"),
            ),
            (
                "a.py",
                "from autogen_ext.models.openai import OpenAIChatCompletionClient\nmodel_client = OpenAIChatCompletionClient(model='x')\n",
                "AutoGen",
                Some("model_client"),
            ),
            (
                "a.py",
                "from langgraph.prebuilt import create_react_agent\nfrom langchain_openai import ChatOpenAI\nmodel = ChatOpenAI(model='x')\n",
                "LangGraph",
                Some("model"),
            ),
            (
                "src/agent.ts",
                "import { Agent } from \"@mastra/core/agent\";\nexport const weatherAgent = new Agent({\n",
                "Mastra",
                Some("weatherAgent"),
            ),
            (
                "index.mjs",
                "import { generateText } from 'ai';\nimport { openai } from '@ai-sdk/openai';\nexport const model = openai('gpt-5');\n",
                "AI SDK",
                Some("model"),
            ),
            (
                "index.mjs",
                "import { generateText } from 'ai';\n",
                "AI SDK",
                None,
            ),
        ] {
            let found = find(file, text).unwrap_or_else(|| panic!("{framework}"));
            assert_eq!(found.framework().name, framework);
            assert_eq!(found.object.as_deref(), object, "{framework}");
            let Some(adapter) = found.adapter() else {
                assert!(found.missing().contains(framework));
                continue;
            };
            assert!(adapter.contains("PROOFHOUSE_MCP_URLS"), "{adapter}");
            assert!(!adapter.contains("{{"), "{adapter}");
            assert!(adapter.contains(object.unwrap_or_default()));
        }
        for text in [
            "import os\n",
            "# from agents import x\n",
            "from agents_of_mine import Agent\nagent = Agent()\n",
            "from agents import clerk\n",
            "from openai import OpenAI\n",
        ] {
            assert_eq!(find("a.py", text), None, "{text}");
        }
    }

    #[test]
    fn names_that_could_be_code_stay_out_of_adapters() {
        let text = "from agents import Agent\nagent = Agent()\n";
        for file in ["a b.py", "a'.py", "x\ny.py", "2.py", "a-b.py"] {
            assert_eq!(find(file, text).unwrap().object, None, "{file}");
        }
        let text = "from agents import Agent\na; import os = Agent()\nx.y = Agent()\n";
        assert_eq!(find("a.py", text).unwrap().object, None);
    }

    #[test]
    fn modules_are_imported_from_where_they_are() {
        let text =
            "from agents import Agent\nagent = Agent()\nprint(Runner.run_sync(agent, 'x'))\n";
        let found = find("src/app/core.py", text).unwrap();
        assert!(found.runs_on_import);
        let adapter = found.adapter().unwrap();
        assert!(adapter.contains("from app.core import agent"), "{adapter}");
        assert!(adapter.contains("\"src\""), "{adapter}");
        let plain = find("agent.py", "from agents import Agent\nagent = Agent()\nif __name__ == '__main__':\n    Runner.run_sync(agent)\n").unwrap();
        assert!(!plain.runs_on_import);
    }
}
