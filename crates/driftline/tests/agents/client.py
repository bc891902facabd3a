"""The official client of the Model Context Protocol: `client.py MODE PROGRAM ARGUMENT…`.

Reads a JSON list of `[tool, arguments]` from standard input, asks one after the other, and prints what came of it as one
JSON value. The client itself checks structured answers against the schemas that the server gave."""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters

mode, program, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
calls = json.load(sys.stdin)


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main():
    server = StdioServerParameters(command=program, args=arguments)
    async with Client(server, mode=mode) as client:
        tools = await client.list_tools()
        told = {
            "protocol": client.session.protocol_version,
            "server": plain(client.session.server_info),
            "instructions": client.session.instructions,
            "tools": [plain(tool) for tool in tools.tools],
            "answers": [],
        }
        for tool, given in calls:
            try:
                told["answers"].append(plain(await client.call_tool(tool, given)))
            except MCPError as error:
                told["answers"].append({"refused": str(error)})
        print(json.dumps(told))


asyncio.run(main())
