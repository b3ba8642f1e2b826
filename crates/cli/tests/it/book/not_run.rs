//! Commands that pages show and that no test runs, each with the reason why not.

const BUILDS: &str = "builds what the tests were just built with";
const INSTALLS: &str = "installs packages from the network";
const EVERYTHING: &str = "runs every test, this one among them";
const WHOLE_LIBRARY: &str = "the tests in run.rs run the whole library on both simulations";
const FRAMEWORK: &str =
    "needs a framework and a model; real_agents.rs and scripts/truth run such agents";
const OTHER_TERMINAL: &str =
    "runs until it is stopped; model_serve.rs and the tutorial's session start it";
const OWN_AGENT: &str = "needs an agent of the reader's; subjects.rs runs one with these flags";
const ASKS: &str = "asks questions at a terminal; init.rs answers them";
const DATABASE: &str =
    "needs a PostgreSQL server; serve.rs and the contract of the store start one";

const CLUSTER: &str = "needs a Kubernetes cluster; deploy.rs reads the chart";
const REAL_CLUSTER: &str =
    "needs a Kubernetes cluster; campaign_real_cluster.rs and chart_real_cluster.rs have one";
const FLEET: &str =
    "needs a PostgreSQL server with a campaign; fleet.rs of the tests has one, with these commands";
const EDITOR: &str = "needs the editor; lsp.rs speaks to the language server";
const PACKAGES: &str = "scripts/packages builds, installs and tries them";

/// The command as it is shown, and the reason.
pub(super) const NOT_RUN: &[(&str, &str)] = &[
    (
        "proofhouse run --name nightly --subject model:openai:gpt-5 --repeats 20 --jobs 16 --max-tokens 5000000",
        FLEET,
    ),
    ("proofhouse worker --name nightly --jobs 16", FLEET),
    ("proofhouse campaigns show nightly", FLEET),
    (
        "proofhouse campaigns report nightly --format html --out report",
        FLEET,
    ),
    ("proofhouse campaigns trend nightly", FLEET),
    (
        "psql -v role=proofhouse_worker -f deploy/postgres/campaign-worker.sql proofhouse",
        FLEET,
    ),
    (
        "proofhouse campaigns prune --older-than 30d --traces-only",
        FLEET,
    ),
    ("proofhouse campaigns prune --older-than 400d", FLEET),
    (
        "proofhouse guard --url http://127.0.0.1:8080/mcp --listen 127.0.0.1:9090",
        "runs until it is stopped; guard.rs starts it",
    ),
    (
        "proofhouse guard --protocol a2a --url http://127.0.0.1:7000/ --listen 127.0.0.1:9090",
        "runs until it is stopped; the tests of `guard` have agents behind it",
    ),
    (
        "kubectl create secret generic proofhouse-store --from-file=url=store-url.txt",
        CLUSTER,
    ),
    (
        "kubectl create configmap proofhouse-manifests --from-file=manifests/",
        CLUSTER,
    ),
    (
        "helm install agents deploy/helm/proofhouse --set image.name=REGISTRY/proofhouse",
        CLUSTER,
    ),
    (
        "kubectl create secret generic models --from-file=OPENAI_API_KEY=openai-key.txt",
        CLUSTER,
    ),
    (
        "helm upgrade agents deploy/helm/proofhouse --reuse-values --set model=openai:NAME --set 'envFromSecrets={models}'",
        CLUSTER,
    ),
    (
        "kubectl apply --filename deploy/kubernetes/rbac.yaml",
        REAL_CLUSTER,
    ),
    (
        "proofhouse run --on kubernetes --name nightly --image shop-agent:1 --workers 50 --dry-run",
        REAL_CLUSTER,
    ),
    (
        "proofhouse run --on kubernetes --name nightly --image shop-agent:1 --workers 50 --worker-cpu 1 --worker-memory 1Gi",
        REAL_CLUSTER,
    ),
    (
        "helm upgrade agents deploy/helm/proofhouse --set nightly.enabled=true --set nightly.agentImage=shop-agent:1",
        REAL_CLUSTER,
    ),
    ("cd editors/vscode", EDITOR),
    ("npm install", INSTALLS),
    ("npx @vscode/vsce package", INSTALLS),
    ("code --install-extension proofhouse-*.vsix", EDITOR),
    (
        "proofhouse validate attacks/ --format sarif > results.sarif",
        "needs a directory of the reader's; commands.rs checks the format",
    ),
    (
        "scripts/packages --profile dist --no-install --out packages",
        PACKAGES,
    ),
    ("pip install packages/proofhouse-*.whl", PACKAGES),
    (
        "uvx --from packages/proofhouse-*.whl proofhouse run",
        INSTALLS,
    ),
    ("npx proofhouse run", PACKAGES),
    (
        "npm install --save-dev ./packages/proofhouse-*.tgz",
        PACKAGES,
    ),
    ("cargo install --locked --path crates/cli", BUILDS),
    ("cargo run --release -- run", BUILDS),
    ("scripts/test", EVERYTHING),
    (
        "cargo run --quiet -p proofhouse-oatf --example judge",
        BUILDS,
    ),
    ("cargo doc --no-deps -p proofhouse-detect --open", BUILDS),
    ("proofhouse run", WHOLE_LIBRARY),
    (
        "proofhouse run --command 'python agent.py {prompt}' --protocol mcp --repeats 5 --out results",
        FRAMEWORK,
    ),
    (
        "proofhouse run --command 'node agent.ts {prompt}' --protocol mcp --repeats 5 --out results",
        FRAMEWORK,
    ),
    (
        "proofhouse run --command 'node agent.mjs {prompt}' --protocol mcp --repeats 5 --out results",
        FRAMEWORK,
    ),
    (
        "proofhouse run --command 'python agent.py {prompt}' --protocol mcp --category capability_poisoning",
        FRAMEWORK,
    ),
    (
        "proofhouse run --command 'python agent.py --serve {port}' --serves ag-ui --protocol ag_ui",
        FRAMEWORK,
    ),
    (
        "pip install langgraph langchain-mcp-adapters langchain-openai",
        INSTALLS,
    ),
    ("pip install openai-agents", INSTALLS),
    ("pip install 'pydantic-ai-slim[openai,mcp]'", INSTALLS),
    (
        "pip install crewai 'crewai-tools[mcp]' 'mcp[ws]<2'",
        INSTALLS,
    ),
    ("pip install google-adk litellm mcp", INSTALLS),
    ("pip install 'smolagents[mcp,openai]' 'mcp[ws]<2'", INSTALLS),
    ("pip install 'strands-agents[openai]'", INSTALLS),
    (
        "pip install agent-framework-core agent-framework-openai mcp tenacity",
        INSTALLS,
    ),
    (
        "pip install autogen-agentchat 'autogen-ext[openai,mcp]' 'mcp[ws]<2'",
        INSTALLS,
    ),
    (
        "npm install ai @ai-sdk/mcp @ai-sdk/openai-compatible",
        INSTALLS,
    ),
    (
        "npm install @mastra/core @mastra/mcp @ai-sdk/openai-compatible",
        INSTALLS,
    ),
    (
        "proofhouse run --command 'my-agent --mcp-config {mcp_config} {prompt}' --mcp-config .mcp.json",
        OWN_AGENT,
    ),
    (
        "proofhouse run --command 'claude -p {prompt} --mcp-config {mcp_config} --strict-mcp-config --allowedTools mcp__weather' \
         --mcp-config .mcp.json --protocol mcp --out results",
        OWN_AGENT,
    ),
    (
        "proofhouse run --command 'cursor-agent -p {prompt} --trust --approve-mcps' --copy . --mcp-config .cursor/mcp.json --protocol mcp --out results",
        OWN_AGENT,
    ),
    (
        "proofhouse run --command 'my-agent {prompt}' --mcp-config ~/.my-agent/mcp.json --mcp-config-in-place",
        OWN_AGENT,
    ),
    (
        "proofhouse run attacks/ --command 'python agent.py {prompt}' --out mine",
        OWN_AGENT,
    ),
    (
        "proofhouse run --ag-ui-url http://127.0.0.1:8000/ --protocol ag_ui --out results",
        OWN_AGENT,
    ),
    (
        "proofhouse run --a2a-url http://127.0.0.1:9000/ --protocol a2a --out results",
        OWN_AGENT,
    ),
    (
        "proofhouse run --mcp-url http://127.0.0.1:8080/mcp --protocol mcp --out results",
        OWN_AGENT,
    ),
    (
        "proofhouse run --ag-ui-url http://127.0.0.1:8000/ --mcp-listen 127.0.0.1:7000 --out results",
        OWN_AGENT,
    ),
    (
        "proofhouse run --ag-ui-url https://agent.example.com/ --header 'Authorization: Bearer env:AGENT_TOKEN' \
         --protocol ag_ui",
        OWN_AGENT,
    ),
    ("proofhouse model serve sim:gullible", OTHER_TERMINAL),
    ("proofhouse init --command 'python agent.py {prompt}'", ASKS),
    ("createuser --pwprompt proofhouse", DATABASE),
    ("createdb --owner proofhouse proofhouse", DATABASE),
    (
        "proofhouse keys create --name first --scope tasks:read --scope tasks:write",
        DATABASE,
    ),
    ("proofhouse serve agents/", DATABASE),
];
