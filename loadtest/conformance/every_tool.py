"""A use of every tool, for any client: a generator that yields a tool's name and arguments, and is
sent the text of its result. What is listed and not used here fails."""

import json
import os
import re
import tempfile
import uuid

from pages import KEY, URL, call

PROJECT = "name:conformance"
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "Cairn-Project": PROJECT,
    "Cairn-Tools": "legacy",
}


def shim_environment(home):
    """What the client of this repository is started with, as a host would."""
    return {
        "HOME": home,
        "PATH": os.environ["PATH"],
        "CAIRN_URL": URL,
        "CAIRN_API_KEY": KEY,
        "CAIRN_TOOLS": "legacy",
    }


def new_home():
    """An account of its own for a client of this repository, with a project in it."""
    home = tempfile.mkdtemp(prefix="cairn-conformance-")
    os.mkdir(os.path.join(home, "app"))
    with open(os.path.join(home, "app", ".cairn-project"), "w") as name:
        name.write("conformance\n")
    return home


def capture(mark):
    """A tool call that a hook would have captured."""
    item = {
        "event_id": str(uuid.uuid4()),
        "kind": "tool_use",
        "at": "2026-10-10T08:45:00.120Z",
        "project": {"key": PROJECT, "name": "conformance"},
        "session": {"host": "claude-code", "id": "conformance"},
        "body": {"tool": "Bash", "host_tool_use_id": mark, "input": "{}", "output": f'"out of {mark}"'},
    }
    status, answer = call("POST", "/v1/events", {"machine": str(uuid.uuid4()), "items": [item]})
    assert status == 200 and answer["items"][0]["status"] == "stored", answer


def walk(used, mark):
    """The use itself; `used` is filled with the names of the tools."""
    def tool(name, arguments, *holds):
        used.add(name)
        text = yield name, arguments
        for part in holds:
            assert part in text, (name, part, text)
        return text

    for guide in ["important_workflow", "__IMPORTANT"]:
        yield from tool(guide, {}, "mem_search")
    fact = f"pool leak {mark}"
    yield from tool("save_memory", {"text": f"{fact}: never closed", "title": fact})
    for name in ["observation_add", "memory_add"]:
        yield from tool(name, {"title": f"{fact} by {name}", "narrative": "never closed"})
    index = yield from tool("mem_search", {"query": mark}, "step 1 of 3", fact)
    found = re.findall(r"^\W*#?(\d+)\W", index.split("\n", 1)[1], re.M)
    ids = found[:1]
    assert ids, index
    chosen = {"continuation": cursor(index), "selectedIds": ids}
    around = yield from tool("mem_search", chosen, "step 2 of 3")
    chosen = {"continuation": cursor(around), "selectedIds": ids}
    yield from tool("mem_search", chosen, "step 3 of 3", fact)
    yield from tool("mem_search", {"query": mark, "mode": "auto"}, fact)
    yield from tool("get_observations", {"ids": ids}, fact)
    capture(mark)
    yield from tool("get_tool_uses", {"ids": [mark]}, f"out of {mark}")
    entry = {"list": "conformance", "fields": {"task": fact, "status": "doing"}}
    yield from tool("work_state_write", entry)
    yield from tool("work_state_read", {"list": "conformance"}, fact)
    for name in ["search", "observation_search", "memory_search"]:
        yield from tool(name, {"query": mark, "limit": 5}, fact)
    yield from tool("timeline", {"anchor": ids[0]}, fact)
    for name in ["observation_context", "memory_context"]:
        yield from tool(name, {"query": mark}, fact)


def cursor(text):
    return re.search(r"^Continue with: (\S+)", text, re.M).group(1)


class Walk:
    """One client's use of every tool."""

    def __init__(self, client):
        # A word of its own, so that nobody finds what another one stored.
        self.mark = f"{re.sub('[^a-z]', '', client.lower())}{uuid.uuid4().hex[:8]}"
        self.client = client
        self.used = set()
        self._steps = walk(self.used, self.mark)

    def run(self, call):
        """Calls `call(name, arguments)`, which answers with a text, for each step."""
        text = None
        try:
            while True:
                name, arguments = self._steps.send(text)
                text = call(name, arguments)
        except StopIteration:
            return

    async def run_async(self, call):
        text = None
        try:
            while True:
                name, arguments = self._steps.send(text)
                text = await call(name, arguments)
        except StopIteration:
            return

    def done(self, listed):
        """Every tool that was listed was used."""
        assert self.used == set(listed), set(listed) ^ self.used
        print(f"{self.client}: {len(self.used)} tools used")


def text_of(result):
    """The text of a result in JSON, which must be no error."""
    assert not result.get("isError"), json.dumps(result)
    return result["content"][0]["text"]
