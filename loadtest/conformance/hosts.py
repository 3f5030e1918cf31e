"""Real agent hosts run one whole turn: their model asks for a search, the host asks the memory, the
model repeats what it heard. Once with the client of this repository between, once with the service
as a remote server. Each host runs in a network of its own, where there is nothing but the service
and a model of ours. One that is not on this machine is left out, and said to be."""

import fcntl
import glob
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import uuid
from urllib.parse import urlparse

from every_tool import HEADERS, PROJECT, capture, new_home, shim_environment
from model import Model
from pages import KEY, URL, call

# A host starts slowly where it finds nothing of what it looks for outside.
PATIENCE = 180
REMOTE = {name: value for name, value in HEADERS.items() if name != "Cairn-Tools"}


def claude_code(program, home, server, model):
    servers = os.path.join(home, "servers.json")
    remote = {"type": "http", "url": f"{URL}/mcp", "headers": REMOTE}
    shim = {"command": server, "args": ["mcp"], "env": shim_environment(home)}
    write(servers, {"mcpServers": {"mem": shim if server else remote}})
    environment = {
        "ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "fake",
        "CLAUDE_CONFIG_DIR": os.path.join(home, "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        "MCP_CONNECTION_NONBLOCKING": "0", "ENABLE_TOOL_SEARCH": "false",
    }
    return environment, [
        program, "-p", "What is known?", "--model", "claude-sonnet-4-5", "--output-format", "json",
        "--allowedTools", "mcp__mem__mem_search", "--mcp-config", servers, "--strict-mcp-config",
    ]


def codex(program, home, server, model):
    folder = os.path.join(home, "codex")
    os.mkdir(folder)
    table = lambda pairs: "{" + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in pairs.items()) + "}"
    mem = [f'command = {json.dumps(server)}', 'args = ["mcp"]', f"env = {table(shim_environment(home))}"]
    if not server:
        headers = {name: value for name, value in REMOTE.items() if name != "Authorization"}
        mem = [f'url = "{URL}/mcp"', 'bearer_token_env_var = "MEM_TOKEN"', f"http_headers = {table(headers)}"]
    lines = [
        'model = "mock"', 'model_provider = "mock"',
        "[model_providers.mock]", 'name = "mock"', f'base_url = "{model}/v1"', 'env_key = "MOCK_KEY"', 'wire_api = "responses"',
        "[mcp_servers.mem]", *mem,
    ]
    with open(os.path.join(folder, "config.toml"), "w") as config:
        config.write("\n".join(lines) + "\n")
    environment = {"CODEX_HOME": folder, "MOCK_KEY": "fake", "MEM_TOKEN": KEY}
    return environment, [
        program, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
        "--dangerously-bypass-approvals-and-sandbox", "What is known?",
    ]


def opencode(program, home, server, model):
    shim = {"type": "local", "command": [server, "mcp"], "environment": shim_environment(home)}
    remote = {"type": "remote", "url": f"{URL}/mcp", "oauth": False, "headers": REMOTE}
    write(os.path.join(home, "app", "opencode.json"), {
        "model": "mock/mock", "small_model": "mock/mock",
        "mcp": {"mem": shim if server else remote},
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock",
            "options": {"baseURL": f"{model}/v1", "apiKey": "fake"}, "models": {"mock": {"name": "mock", "tool_call": True}}}},
    })
    environment = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return environment, [program, "run", "What is known?"]


# Each host: where its program stands in the package, and how a turn is run.
HOSTS = {
    "claude-code": ("anthropic-ai-claude-code-*/package/claude", claude_code),
    "codex": ("openai-codex-*/package/vendor/*/*/codex", codex),
    "opencode": ("opencode-linux-*/package/bin/opencode", opencode),
}


def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


def relay(listener, connect):
    """Carries connections on, both ways."""

    def carry(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def accept():
        while True:
            near, _ = listener.accept()
            far = connect()
            for pair in [(near, far), (far, near)]:
                threading.Thread(target=carry, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def to_unix(path):
    far = socket.socket(socket.AF_UNIX)
    far.connect(path)
    return far


def address():
    url = urlparse(URL)
    return url.hostname, url.port


def inside(name, program, server, way, mark):
    """One turn, in a network where only loopback is up."""
    with socket.socket() as any_socket:
        up = struct.pack("16sH14s", b"lo", 0x41, b"")
        fcntl.ioctl(any_socket, 0x8914, up)
    relay(socket.create_server(address()), lambda: to_unix(way))
    model = Model(mark)
    home = new_home()
    environment, command = HOSTS[name][1](program, home, server, model.url)
    base = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "dumb"}
    done = subprocess.run(
        command, cwd=os.path.join(home, "app"), env={**base, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
    )
    told = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, told
    assert any(mark in text for text in model.heard), (model.heard, told)
    assert mark in done.stdout, told
    shutil.rmtree(home, ignore_errors=True)


def main():
    folder, cairn = sys.argv[1], sys.argv[2]
    ran = 0
    # The project is there from its first record on.
    capture(f"first{uuid.uuid4().hex[:8]}")
    with tempfile.TemporaryDirectory() as sockets:
        way = os.path.join(sockets, "service")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(way)
        listener.listen(64)
        relay(listener, lambda: socket.create_connection(address()))
        for name, (place, _) in HOSTS.items():
            programs = glob.glob(os.path.join(folder, place))
            if not programs:
                print(f"notice: {name} is not in {folder}; it is left out")
                continue
            for how, server in [("the client between", os.path.abspath(cairn)), ("a remote server", "")]:
                mark = f"marker{uuid.uuid4().hex[:10]}"
                status, stored = call("POST", "/v1/observations", {"title": f"pool leak {mark}", "project": PROJECT})
                assert status == 201, stored
                space = ["unshare", "-n"] if os.getuid() == 0 else ["unshare", "-rn"]
                arguments = ["inside", name, os.path.abspath(programs[0]), server, way, mark]
                subprocess.run([*space, sys.executable, __file__, *arguments], check=True)
                print(f"{name}: a whole turn with {how}")
                ran += 1
    print(f"hosts: {ran} turns")


if sys.argv[1] == "inside":
    inside(*sys.argv[2:])
else:
    main()
