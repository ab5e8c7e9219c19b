"""MCP servers over streamable HTTP, of the Python SDK: with responses as JSON and as events, with sessions and without,
and one that requires the token in its argument.  Prints their URLs as one line of JSON, and then the requests.  Runs in
the environment of tools/setup."""

import asyncio
import json
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer


def make_server():
    server = MCPServer("reckoner", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> str:
        """Adds two numbers."""
        return str(a + b)

    @server.tool()
    async def count(steps: int, context: Context) -> str:
        """Reports its progress."""
        for step in range(steps):
            await context.report_progress(step, steps)
        return f"counted to {steps}"

    @server.tool()
    def refuse(reason: str) -> str:
        """Always fails."""
        raise ValueError(reason)

    return server


def guarded(app, name, token):
    async def check(scope, receive, send):
        headers = dict(scope.get("headers", []))
        if scope["type"] == "http":
            print(json.dumps([name, scope["method"]]), flush=True)
        if scope["type"] == "http" and token and headers.get(b"authorization") != b"Bearer " + token.encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        else:
            await app(scope, receive, send)
    return check


async def main(token):
    urls, servers = {}, []
    for name, options in {"json": {"json_response": True}, "events": {},
                          "json stateless": {"json_response": True, "stateless_http": True},
                          "events stateless": {"stateless_http": True}, "token": {}}.items():
        app = guarded(make_server().streamable_http_app(**options), name, token if name == "token" else None)
        listener = socket.create_server(("127.0.0.1", 0))
        urls[name] = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        servers.append(uvicorn.Server(uvicorn.Config(app, log_level="error")).serve([listener]))
    print(json.dumps(urls), flush=True)
    await asyncio.gather(*servers)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
