"""The Python MCP client, of the present line, uses every tool over each transport and era."""

import asyncio
import os
import sys

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from every_tool import HEADERS, Walk, new_home, shim_environment
from pages import URL

CAIRN = sys.argv[1]


async def use(name, transport, mode):
    async with Client(transport, mode=mode) as client:
        walk = Walk(name)

        async def call(tool, arguments):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, (tool, arguments, result)
            return result.content[0].text

        listed = await client.list_tools()
        await walk.run_async(call)
        walk.done([tool.name for tool in listed.tools])


async def main():
    for mode in ["auto", "legacy", "2026-07-28"]:
        async with httpx2.AsyncClient(headers=HEADERS, timeout=30) as http:
            transport = streamable_http_client(f"{URL}/mcp", http_client=http)
            await use(f"python http {mode}", transport, mode)
        home = new_home()
        shim = StdioServerParameters(
            command=CAIRN,
            args=["mcp"],
            env=shim_environment(home),
            cwd=os.path.join(home, "app"),
        )
        await use(f"python stdio {mode}", stdio_client(shim), mode)
    for mode in ["auto", "legacy"]:
        await use(f"python sse {mode}", sse_client(f"{URL}/sse", headers=HEADERS), mode)


asyncio.run(main())
