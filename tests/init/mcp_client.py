"""Stands for a client of MCP, `claude` or `cursor-agent`: reads its configuration where that client does, and lets the agent of
the tutorial do the task.

  mcp_client.py CLIENT -p PROMPT …
"""

import json
import os
import sys
from pathlib import Path

AGENT = Path(__file__).resolve().parents[2] / "examples" / "first-agent" / "agent.py"


def after(flag):
    return sys.argv[sys.argv.index(flag) + 1]


def main(client):
    if client == "claude":
        file, allowed = after("--mcp-config"), [name.removeprefix("mcp__") for name in after("--allowedTools").split(",")]
    else:
        if not {"--trust", "--approve-mcps"} <= set(sys.argv):
            sys.exit("this directory and its MCP servers are not trusted")
        file = ".cursor/mcp.json"
        rules = json.loads(Path(".cursor/cli.json").read_text())["permissions"]["allow"]
        allowed = [rule.removeprefix("Mcp(").removesuffix(":*)") for rule in rules]
    servers = json.loads(Path(file).read_text())["mcpServers"]
    refused = set(servers) - set(allowed)
    if refused:
        sys.exit(f"calls of these servers are not allowed: {', '.join(sorted(refused))}")
    os.environ["PROOFHOUSE_MCP_URLS"] = ",".join(server["url"] for server in servers.values())
    os.execv(sys.executable, [sys.executable, str(AGENT), after("-p")])


main(sys.argv[1])
