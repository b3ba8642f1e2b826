"""One session of a client that calls a suite's tools through `proofhouse guard`."""

import json
import os
import socket
import subprocess
import sys
import threading

from served import ServedSuite

BRIDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bridge.py")

# What the guard says instead of a result.
BLOCKED = "Blocked by the Proofhouse guard"


class GuardedSession:
    """A client, the guard as a process of its own, and the suite behind it."""

    def __init__(self, suite, environment, command, directory):
        self.served = ServedSuite(suite, environment)
        self.path = os.path.join(directory, "suite.sock")
        if os.path.exists(self.path):
            os.remove(self.path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(1)
        self.guard = subprocess.Popen(
            [*command, "--", sys.executable, "-S", BRIDGE, self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.said = b""
        threading.Thread(target=self._listen, daemon=True).start()
        listener.settimeout(60)
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            self.guard.kill()
            raise RuntimeError(f"the guard did not start its server: {self.guard.communicate()}") from None
        listener.close()
        connection.settimeout(None)
        self.serving = threading.Thread(target=self.served.serve, args=(connection,), daemon=True)
        self.serving.start()
        self.number = 0
        capabilities = {"elicitation": {}}
        client = {"name": "replay", "version": "1"}
        self._request(
            "initialize", {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client}, True
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self._request("tools/list", {}, True)

    def _listen(self):
        for line in self.guard.stderr:
            self.said += line

    def _send(self, message):
        self.guard.stdin.write(json.dumps(message).encode() + b"\n")
        self.guard.stdin.flush()

    def _request(self, method, params, allows):
        """The result, and whether somebody was asked."""
        self.number += 1
        self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        asked = False
        while True:
            line = self.guard.stdout.readline()
            if not line:
                raise RuntimeError(f"the guard ended: {self.said.decode(errors='replace')}")
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                asked = True
                result = {"action": "accept", "content": {"allow": True}} if allows else {"action": "decline"}
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            elif message.get("id") == self.number and "method" not in message:
                return message.get("result") or message["error"], asked

    def call(self, name, arguments, allows):
        """What became of a call: `passed`, `allowed` by the person who was asked, `denied` by that person, `blocked`."""
        before = self.served.called
        result, asked = self._request("tools/call", {"name": name, "arguments": arguments}, allows)
        if self.served.called > before:
            return "allowed" if asked else "passed"
        text = json.dumps(result)
        if BLOCKED not in text and not asked:
            raise RuntimeError(f"the call of {name} came to nothing: {text}")
        return "denied" if asked else "blocked"

    def end(self):
        self.guard.stdin.close()
        self.guard.wait(60)
        self.guard.stdout.close()
        self.serving.join(60)
        os.remove(self.path)
