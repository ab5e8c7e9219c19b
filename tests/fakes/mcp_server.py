#!/usr/bin/env python3
"""An MCP server over stdio for tests, with misbehaving tools: slow, crashing, failing, with huge or noisy output.

Options: --pages N splits tools/list into pages of N tools; --dead exits at once; --mute METHOD never answers that one;
--long METHOD answers it with a message of more than 16 MiB; --log FILE appends a line for each start and each
message."""

import argparse
import json
import os
import sys
import threading
import time

TOOLS = ["echo", "add", "slow", "crash", "fail", "huge", "parts", "noise", "ask", "where"]

options = argparse.ArgumentParser()
options.add_argument("--pages", type=int, default=100)
options.add_argument("--dead", action="store_true")
options.add_argument("--mute")
options.add_argument("--long")
options.add_argument("--log")
options.add_argument("folder", nargs="?")
given = options.parse_args()
lock = threading.Lock()


def log_line(line):
    if given.log:
        with open(given.log, "a") as log:
            log.write(line + "\n")


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def texts(*parts):
    return {"content": [{"type": "text", "text": part} for part in parts]}


def call(name, arguments):
    if name == "add":
        return texts(str(arguments["a"] + arguments["b"]))
    if name == "slow":  # until a file exists, or killed
        while not os.path.exists(arguments.get("until", "")):
            time.sleep(0.005)
        return texts("done")
    if name == "crash":
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "fail":
        return dict(texts("it failed"), isError=True)
    if name == "huge":
        return texts("x" * 300_000)
    if name == "parts":
        return {"content": [{"type": "text", "text": "one"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                            {"type": "resource", "resource": {"uri": "file:///x", "text": "two"}}]}
    if name == "noise":
        sys.stdout.write("a line of a log\n\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n")
        send({"jsonrpc": "2.0", "id": 999_999, "result": {}})
        return texts("quiet")
    if name == "ask":
        send({"jsonrpc": "2.0", "id": "mine", "method": "ping"})
        send({"jsonrpc": "2.0", "id": "other", "method": "roots/list"})
        return texts("asked")
    if name == "where":
        return texts(given.folder or "nowhere")
    return texts(json.dumps(arguments))


def listing(params):
    start = int((params or {}).get("cursor") or 0)
    names = TOOLS[start:start + given.pages]
    result = {"tools": [{"name": name, "description": "", "inputSchema": {"type": "object"}} for name in names]}
    if start + given.pages < len(TOOLS):
        result["nextCursor"] = str(start + given.pages)
    return result


def answer(message):
    method, params = message.get("method"), message.get("params")
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if method == given.long:
        reply["padding"] = " " * (16 << 20)
    if method == "initialize":
        reply["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "fake", "version": "1"}}
    elif method == "tools/list":
        reply["result"] = listing(params)
    elif method == "tools/call":
        reply["result"] = call(params["name"], params.get("arguments") or {})
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    send(reply)


log_line("start")
if given.dead:
    sys.exit("cannot start: no configuration")
for line in sys.stdin:
    log_line(line.strip())
    received = json.loads(line)
    if "id" in received and "method" in received and received["method"] != given.mute:
        threading.Thread(target=answer, args=(received,), daemon=True).start()
