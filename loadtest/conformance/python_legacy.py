"""The Python MCP client of the line before uses every tool over each transport; and so does it
through mcp-remote, which makes a local server of a remote one."""

import asyncio
import os
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client

from every_tool import HEADERS, Walk, new_home, shim_environment
from pages import URL

CAIRN, REMOTE, PART = sys.argv[1:4]


async def use(name, transport):
    async with transport as (read, write, *_):
        async with ClientSession(read, write) as session:
            await session.initialize()
            walk = Walk(name)

            async def call(tool, arguments):
                result = await session.call_tool(tool, arguments)
                assert not result.isError, (tool, arguments, result)
                return result.content[0].text

            listed = await session.list_tools()
            await walk.run_async(call)
            walk.done([tool.name for tool in listed.tools])


def program(home, command, arguments, more):
    return StdioServerParameters(
        command=command,
        args=arguments,
        env={**shim_environment(home), **more},
        cwd=os.path.join(home, "app"),
    )


async def main():
    home = new_home()
    if PART == "mcp-remote":
        headers = [part for pair in HEADERS.items() for part in ["--header", ": ".join(pair)]]
        for transport, path in [("http-only", "/mcp"), ("sse-only", "/sse")]:
            options = [URL + path, *headers, "--transport", transport, "--allow-http"]
            remote = program(home, REMOTE, options, {"MCP_REMOTE_CONFIG_DIR": home})
            await use(f"mcp-remote {transport}", stdio_client(remote))
        return
    await use("python 1 http", streamablehttp_client(f"{URL}/mcp", headers=HEADERS))
    await use("python 1 sse", sse_client(f"{URL}/sse", headers=HEADERS))
    await use("python 1 stdio", stdio_client(program(home, CAIRN, ["mcp"], {})))


asyncio.run(main())
