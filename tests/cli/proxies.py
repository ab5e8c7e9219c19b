"""An `ipw proxy` for tests, an upstream server that sends exact bytes, and raw socket clients."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from program import IPW, TIMEOUT_S, MachineTest

CHAT = "/v1/chat/completions"


def read_message(stream):
    """Reads start line, headers (lower case, in order) and body, with chunks joined; None at the end of the
    connection."""
    line = stream.readline()
    if not line:
        return None
    headers = []
    while (field := stream.readline().strip()):
        name, value = field.split(b":", 1)
        headers.append((name.decode().lower(), value.strip().decode()))
    fields = dict(headers)
    body = b""
    if fields.get("transfer-encoding") == "chunked":
        parts = []
        while (size := int(stream.readline(), 16)):
            parts.append(stream.read(size))
            stream.readline()
        stream.readline()
        body = b"".join(parts)
    elif "content-length" in fields:
        body = stream.read(int(fields["content-length"]))
    elif line.startswith(b"HTTP/"):
        body = stream.read()
    return line.decode().strip(), headers, body


def response(body, status="200 OK", headers=(), length=True):
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers)]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def event(content=None, finish=None, **more):
    delta = {} if content is None else {"content": content}
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
                                   **more}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def document(content="ok", prompt=7, output=3):
    return json.dumps({"choices": [{"index": 0, "message": {"content": content}, "finish_reason": "stop"}],
                       "usage": {"prompt_tokens": prompt, "completion_tokens": output}}).encode()


class Upstream:
    """Calls answer(socket, start_line, headers, body) for each request; if it returns False, the connection is closed.
    With an ssl.SSLContext it speaks TLS, as localhost."""

    def __init__(self, answer, tls=None):
        self.answer, self.requests, self.connections, self.tls = answer, [], 0, tls
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        port = self.listener.getsockname()[1]
        self.url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
        except OSError:  # the client does not trust the certificate
            connection.close()
            return
        with connection, connection.makefile("rb") as stream:
            try:
                while (message := read_message(stream)):
                    self.requests.append(message)
                    if self.answer(connection, *message) is False:
                        return
            except (OSError, ValueError):  # or not HTTP
                return

    def close(self):
        self.listener.close()


class Proxy:
    def __init__(self, upstream, root, *options, machine=None, env=None):
        self.root = Path(root)
        environment = {**(machine.environment() if machine else os.environ), **(env or {})}
        self.process = subprocess.Popen(
            [IPW, "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0", "--idle", "0", "--output-dir",
             str(self.root / "runs"), "--name", "run", *options],
            env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.stderr = ""
        while not (found := re.search(r"listening on http://(?:\S*):(\d+),", self.stderr)):
            line = self.process.stderr.readline()
            assert line, self.stderr
            self.stderr += line
        self.port = int(found[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT_S)

    def ask(self, path=CHAT, body=b"{}", method="POST", headers=()):
        """Sends one request on its own connection."""
        with self.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(path, body, method, headers))
            return read_message(stream)

    def get(self, path, headers=()):
        return self.ask(path, b"", "GET", headers)[2].decode()

    def recent(self):
        return json.loads(self.get("/ipw/requests"))["requests"]

    def end(self, number=signal.SIGTERM):
        """Ends the proxy and returns its exit code; the records are complete afterwards."""
        self.process.send_signal(number)
        self.stdout, rest = self.process.communicate(timeout=TIMEOUT_S)
        self.stderr += rest
        return self.process.returncode

    def records(self):
        lines = map(json.loads, (self.root / "runs/run/records.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] == "query"]

    def energies(self):
        lines = map(json.loads, (self.root / "runs/run/records.jsonl").read_text().splitlines())
        return {line["key"]: line["ipw"]["energy"] for line in lines if line["kind"] in ("energy", "reattributed")}

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def request(path=CHAT, body=b"{}", method="POST", headers=()):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def until(condition):
    """Waits for a condition and returns its result."""
    end = time.monotonic() + TIMEOUT_S
    while not (result := condition()):
        assert time.monotonic() < end, "timeout while waiting for a condition"
        time.sleep(0.01)
    return result


class ProxyTest(MachineTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def upstream(self, answer, tls=None):
        upstream = Upstream(answer, tls)
        self.addCleanup(upstream.close)
        return upstream

    def proxy(self, upstream, *options, **more):
        proxy = Proxy(getattr(upstream, "url", upstream), self.root, *options, **more)
        self.addCleanup(proxy.close)
        return proxy


def send_document(connection, *_):
    connection.sendall(response(document(), headers=[("Content-Type", "application/json")]))
