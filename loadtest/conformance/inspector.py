"""The MCP inspector's command line uses every tool over each transport, and finds nothing to
complain about in the schemas."""

import json
import os
import subprocess
import sys

from every_tool import HEADERS, Walk, new_home, shim_environment, text_of
from pages import URL

INSPECTOR, CAIRN = sys.argv[1], sys.argv[2]


class Inspector:
    def __init__(self, target, options, cwd, env):
        self.target, self.options, self.cwd, self.env = target, options, cwd, env

    def ask(self, *arguments):
        command = [INSPECTOR, "--cli", *arguments, "--format", "json", *self.options, *self.target]
        done = subprocess.run(
            command, cwd=self.cwd, env=self.env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def list(self):
        out, err = self.ask("--method", "tools/list", "--strict")
        # It says nothing of schemas that every host takes.
        assert not err.strip(), err
        return [tool["name"] for tool in json.loads(out)["result"]["tools"]]

    def call(self, name, arguments):
        pairs = [f"{key}={json.dumps(value) if not isinstance(value, str) else value}" for key, value in arguments.items()]
        options = [part for pair in pairs for part in ["--tool-arg", pair]]
        out, _ = self.ask("--method", "tools/call", "--tool-name", name, *options)
        return text_of(json.loads(out)["result"])


def main():
    home = new_home()
    env = {**os.environ, "HOME": home}
    headers = [part for name, value in HEADERS.items() for part in ["--header", f"{name}: {value}"]]
    shim = [part for pair in shim_environment(home).items() for part in ["-e", "=".join(pair)]]
    app = os.path.join(home, "app")
    for name, target, options in [
        ("inspector http", [], ["--server-url", f"{URL}/mcp", "--transport", "http", *headers]),
        ("inspector sse", [], ["--server-url", f"{URL}/sse", "--transport", "sse", *headers]),
        ("inspector stdio", ["--", CAIRN, "mcp"], shim),
    ]:
        inspector = Inspector(target, options, app, env)
        walk = Walk(name)
        listed = inspector.list()
        walk.run(inspector.call)
        walk.done(listed)


main()
