"""200 streams of answers over two replicas, one of which is killed: every host is told or connects
anew, no answer reaches a stream that it is not for, and the database has no connection more than
before. The streams are those of 25 principals; each host has ids of its own for what it asks."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time

import httpx2

from pages import URL, call

PSQL = sys.argv[1]
PRINCIPALS, STREAMS = 25, 8
# What a host waits for: an answer, or the news that there will be none.
PATIENCE = 30


def connections():
    """Connections of the service to its database."""
    query = "select count(*) from pg_stat_activity where usename = 'cairn_app'"
    command = [PSQL, "-XtAc", query, os.environ["CAIRN_CLUSTER_DATABASE_URL"]]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def keys():
    made = []
    for number in range(PRINCIPALS):
        asked = {"name": f"streams {number}", "service": True, "scopes": ["memory:read", "memory:write"]}
        status, key = call("POST", "/v1/keys", asked)
        assert status == 201, key
        made.append(key["key"])
    return made


class Host:
    def __init__(self, http, key, name):
        self.http, self.name = http, name
        self.headers = {"Authorization": f"Bearer {key}", "Cairn-Project": "name:conformance"}
        self.endpoint = None
        self.opened = asyncio.Event()
        self.waiting = {}
        self.answered = self.reconnected = self.asked = 0
        self.ends = []
        self.wrong = None

    async def listen(self):
        """Keeps a stream open, and opens it anew whenever it ends."""
        while True:
            try:
                await self.hear()
            except (httpx2.HTTPError, OSError):
                pass
            # Whoever waits for an answer is told that it will not come.
            self.opened.clear()
            for waiting in self.waiting.values():
                waiting.cancel()
            self.waiting.clear()
            self.reconnected += 1
            await asyncio.sleep(0.2)

    async def hear(self):
        async with self.http.stream("GET", f"{URL}/sse", headers=self.headers, timeout=None) as stream:
            if stream.status_code != 200:
                return
            kind = None
            async for line in stream.aiter_lines():
                if line.startswith("event: "):
                    kind = line[len("event: "):]
                elif line.startswith("data: "):
                    self.take(kind, line[len("data: "):])

    def take(self, kind, data):
        if kind == "endpoint":
            self.endpoint = URL + data
            self.opened.set()
        elif kind == "message":
            message = json.loads(data)
            own = message["id"].startswith(f"{self.name}:")
            if not own or self.name not in json.dumps(message["result"]):
                self.wrong = f"{self.name} heard {data}"
            waiting = self.waiting.pop(message["id"], None)
            if waiting and not waiting.done():
                waiting.set_result(None)
        else:
            self.ends.append(data)

    async def ask(self):
        """Asks until there is an answer."""
        while True:
            assert self.wrong is None, self.wrong
            await asyncio.wait_for(self.opened.wait(), PATIENCE)
            self.asked += 1
            asked = f"{self.name}:{self.asked}"
            # What is not found is named in the answer.
            question = {"jsonrpc": "2.0", "id": asked, "method": "tools/call",
                "params": {"name": "get_observations", "arguments": {"ids": [self.name]}}}
            waiting = self.waiting[asked] = asyncio.get_running_loop().create_future()
            try:
                posted = await self.http.post(self.endpoint, json=question, headers=self.headers)
                if posted.status_code == 202:
                    await asyncio.wait_for(waiting, PATIENCE)
                    self.answered += 1
                    return
            except (httpx2.HTTPError, OSError):
                pass
            except asyncio.CancelledError:
                # The stream is over; a host that is told asks again.
                if not waiting.cancelled():
                    raise
            self.waiting.pop(asked, None)
            await asyncio.sleep(0.2)


async def main():
    made = keys()
    # Each replica has as many connections as it takes to answer many at once.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    async with httpx2.AsyncClient(limits=limits, timeout=30, trust_env=False) as http:
        hosts = [
            Host(http, key, str(700_000_000 + one * STREAMS + two))
            for one, key in enumerate(made)
            for two in range(STREAMS)
        ]
        # One after the other: keys that nobody knows yet count as attempts to guess one.
        for host in hosts[::STREAMS] * 2:
            answer = await http.get(f"{URL}/v1/me", headers=host.headers)
            assert answer.status_code == 200, answer.text
        # As busy as it will be, but without a stream.
        busy = [http.get(f"{URL}/v1/me", headers=host.headers) for host in hosts]
        assert all(answer.status_code == 200 for answer in await asyncio.gather(*busy))
        before = connections()
        listening = [asyncio.create_task(host.listen()) for host in hosts]
        for _ in range(2):
            await asyncio.gather(*[host.ask() for host in hosts])
        assert not any(host.reconnected for host in hosts), "nothing has ended yet"
        with open(os.path.join(os.environ["CAIRN_CLUSTER_LOGS"], "replica1.pid")) as pid:
            victim = int(pid.read())
        asking = [asyncio.create_task(host.ask()) for host in hosts for _ in range(2)]
        os.kill(victim, signal.SIGKILL)
        await asyncio.gather(*asking)
        moved = sum(host.reconnected > 0 for host in hosts)
        assert 0 < moved < len(hosts), f"{moved} of the streams were at the replica"
        await asyncio.gather(*[host.ask() for host in hosts])
        for task in listening:
            assert not task.done(), task.exception()
            task.cancel()
        assert not any(host.wrong for host in hosts), [host.wrong for host in hosts]
        await asyncio.gather(*listening, return_exceptions=True)
    end = time.monotonic() + PATIENCE
    while connections() > before:
        assert time.monotonic() < end, f"{connections()} connections, {before} before"
        await asyncio.sleep(0.2)
    asked, answered = sum(host.asked for host in hosts), sum(host.answered for host in hosts)
    print(f"{len(hosts)} streams: {asked} questions asked, {answered} answered; {moved} streams moved "
        f"from the replica that was killed; {connections()} connections to the database, {before} before")


asyncio.run(main())
