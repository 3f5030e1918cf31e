"""The Python MCP client signs in by OAuth and calls tools, behind a balancer that sends each
request to the other replica. What the balancer noted shows that it did."""

import asyncio
import os
import re
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from pages import URL, Member, call

REDIRECT = "http://127.0.0.1:9/callback"


class Storage:
    """Keeps what the client got, as a host would."""

    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


def provider(storage, part="/mcp"):
    led = {}

    async def redirect(address):
        to = await asyncio.to_thread(Member().let_in, address)
        led.update(parse_qs(urlparse(to).query))

    async def callback():
        return AuthorizationCodeResult(
            code=led["code"][0], state=led["state"][0], iss=led["iss"][0]
        )

    return OAuthClientProvider(
        server_url=f"{URL}{part}",
        client_metadata=OAuthClientMetadata(
            client_name="The Python client",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            token_endpoint_auth_method="none",
        ),
        storage=storage,
        redirect_handler=redirect,
        callback_handler=callback,
    )


async def use(storage, mode):
    """Signs in if need be, then lists and calls tools."""
    headers = {"Cairn-Project": "name:conformance"}
    async with httpx2.AsyncClient(auth=provider(storage), headers=headers) as http:
        transport = streamable_http_client(f"{URL}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            tools = await client.list_tools()
            assert any(tool.name == "mem_search" for tool in tools.tools), tools
            title = f"signed in by OAuth, {mode}"
            entry = {"list": "conformance", "fields": {"task": title}}
            for _ in range(4):
                written = await client.call_tool("work_state_write", entry)
                assert not written.is_error, written
            read = await client.call_tool("work_state_read", {})
            assert title in read.content[0].text, read


async def main():
    storage = Storage()
    await use(storage, "auto")
    first = storage.tokens
    assert first is not None and first.refresh_token, "signed in"
    # Another process of the same host, with what the first one kept.
    await use(storage, "legacy")
    assert storage.tokens.access_token == first.access_token, "signed in once"
    # A token that is over is renewed without anybody being asked.
    storage.tokens = first.model_copy(update={"access_token": "over.and.out"})
    await use(storage, "auto")
    # The token is for this part alone.
    status, refused = call("GET", "/v1/me", bearer=storage.tokens.access_token)
    assert status == 401, refused
    status, grants = call("GET", "/v1/grants")
    mine = [one for one in grants["items"] if one["client"] == "The Python client"]
    assert mine, grants
    for one in mine:
        assert one["resource"] == f"{URL}/mcp", one
        status, _ = call("DELETE", f"/v1/grants/{one['id']}")
        assert status == 204, one
    balanced()
    print("the Python client: signed in, called, renewed, shut out, on alternating replicas")


def balanced():
    """Reads from the balancer's notes that each replica took its turn at every kind of step."""
    with open(os.path.join(os.environ["CAIRN_CLUSTER_LOGS"], "haproxy.log")) as notes:
        lines = notes.read()
    taken = re.findall(r"cairn/(replica[12]) .*\"(?:GET|POST|DELETE) (/[^ ?\"]*)", lines)
    assert len(taken) > 20, lines[-2000:]
    turns = [replica for replica, _ in taken]
    alike = sum(one == two for one, two in zip(turns, turns[1:]))
    assert alike <= len(turns) // 10, f"{alike} of {len(turns)} stayed at a replica"
    for path in ["/mcp", "/oauth/authorize"]:
        replicas = {replica for replica, called in taken if called == path}
        assert replicas == {"replica1", "replica2"}, (path, replicas)


asyncio.run(main())
sys.exit(0)
