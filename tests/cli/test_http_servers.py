#!/usr/bin/env python3
# test: real time, asan
"""What `ipw monitor`, `ipw serve` and `ipw proxy` have in common as HTTP servers: they answer after a shortage of
descriptors and in spite of idle connections, refuse requests of foreign web pages, and limit guessing of tokens."""

import resource
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from dashboards import Dashboard  # noqa: E402
from machines import Nvidia  # noqa: E402
from monitors import Monitor  # noqa: E402
from program import TIMEOUT_S, main_parallel  # noqa: E402
from proxies import Proxy, ProxyTest, read_message, send_document  # noqa: E402

TOKEN = "correct-horse-battery"
COMMANDS = ("monitor", "serve", "proxy")
# Pages that need a token, if there is one.
PATHS = {"monitor": "/metrics", "serve": "/api/v1/runs", "proxy": "/ipw/requests"}
CONNECTIONS = {"monitor": 512, "serve": 2048}


class ServerTest(ProxyTest):
    def start(self, command, *options, token=False, listen="127.0.0.1:0", upstream="http://127.0.0.1:1",
              env=None):
        (self.root / "runs").mkdir(exist_ok=True)
        (self.root / "token").write_text(TOKEN)
        given = ["--token-file", self.root / "token"] if token and command != "proxy" else []
        if command == "monitor":
            server = Monitor(self.machine(Nvidia, "power 0 constant 100\n"), "--processes", "off", *given, *options,
                             listen=listen)
        elif command == "serve":
            server = Dashboard("--runs", self.root / "runs", "--no-live", *given, *options, listen=listen)
        else:
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            server = Proxy(upstream, folder.name, "--listen", listen, *options,
                           env={**({"IPW_PROXY_TOKEN": TOKEN} if token else {}), **(env or {})})
        self.addCleanup(server.close)
        return server

    def connect(self, server, source="127.0.0.1"):
        return socket.create_connection(("127.0.0.1", server.port), TIMEOUT_S, (source, 0))

    def ask(self, server, path, *lines, host="localhost", connection=None, source="127.0.0.1", method="GET"):
        """The status of a response, and its body; 0 if there is none."""
        made = connection or self.connect(server, source)
        try:
            head = [f"{method} {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]
            made.sendall("\r\n".join(head).encode())
            with made.makefile("rb") as stream:
                answer = read_message(stream)
            return (int(answer[0].split()[1]), answer[2].decode()) if answer else (0, "")
        finally:
            if not connection:
                made.close()

    def status(self, *arguments, **options):
        return self.ask(*arguments, **options)[0]


class ShortageTest(ServerTest):
    def test_answers_after_a_shortage_of_descriptors(self):
        """Clients take all descriptors; they are answered before and after they have closed their connections."""
        for command in COMMANDS:
            for limit in (32, 64):
                with self.subTest(command, limit=limit):
                    server = self.start(command)
                    self.assertEqual(self.status(server, PATHS[command]), 200)
                    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
                    idle = [self.connect(server) for _ in range(limit + 20)]
                    self.assertEqual(self.status(server, PATHS[command]), 200)
                    for connection in idle:
                        connection.close()
                    for _ in range(3):
                        self.assertEqual(self.status(server, PATHS[command]), 200)

    def test_answers_after_connections_of_a_killed_process(self):
        script = ("import socket, sys, time\nkept = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(64)]\n"
                  "print('ready', flush=True)\ntime.sleep(1000)")
        for command in COMMANDS:
            with self.subTest(command):
                server = self.start(command)
                resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (40, 40))
                with subprocess.Popen([sys.executable, "-S", "-c", script, str(server.port)], stdout=subprocess.PIPE) as clients:
                    clients.stdout.readline()
                    clients.kill()
                self.assertEqual(self.status(server, PATHS[command]), 200)

    def test_idle_connections_do_not_keep_others_out(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 3000:
            self.skipTest(f"needs 3000 descriptors, has {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
        for command, limit in CONNECTIONS.items():
            with self.subTest(command), self.connect(server := self.start(command, token=True)) as known:
                token = f"x-ipw-token: {TOKEN}"
                self.assertEqual(self.status(server, PATHS[command], token, connection=known), 200)
                idle = [self.connect(server) for _ in range(limit + 50)]
                self.assertEqual(self.status(server, PATHS[command], token), 200)
                self.assertEqual(self.status(server, PATHS[command], token, connection=known), 200, "a known client was replaced")
                for connection in idle:
                    connection.close()


class AccessTest(ServerTest):
    def test_requests_of_foreign_pages_are_refused(self):
        """By DNS rebinding a page of a foreign site has that site's name as Host; without it, as Origin."""
        upstream = self.upstream(send_document)
        for command in COMMANDS:
            server = self.start(command, "--allow-host", "gpu-node", "--allow-host", "http://lab.example:3000",
                                upstream=upstream.url, env={"IPW_API_KEY": "sk-upstream-7"})
            for host, status in (("localhost", 200), (f"127.0.0.1:{server.port}", 200), ("[::1]:80", 200), ("gpu-node:80", 200),
                                 ("GPU-node", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("user@127.0.0.1", 403),
                                 ("user@gpu-node", 403), ("", 403), ("192.0.2.1", 403), ("lab.example", 403)):
                with self.subTest(command, host=host):
                    got, text = self.ask(server, PATHS[command], host=host)
                    self.assertEqual(got, status)
                    if host == "evil.example":
                        self.assertIn("--allow-host evil.example", text)
        for command in ("monitor", "proxy"):  # ipw serve checks it where requests change state
            server = self.start(command, "--allow-host", "gpu-node", "--allow-host", "http://lab.example:3000",
                                upstream=upstream.url, env={"IPW_API_KEY": "sk-upstream-7"})
            for origin, host, status in (("http://localhost", "localhost", 200), ("https://localhost:1", "localhost:1", 200),
                                         ("http://gpu-node:1", "gpu-node:1", 200), ("http://lab.example:3000", "localhost", 200),
                                         ("http://evil.example", "localhost", 403), ("http://localhost:2", "localhost:1", 403),
                                         ("http://lab.example", "localhost", 403), ("null", "localhost", 403), ("", "localhost", 403)):
                with self.subTest(command, origin=origin, host=host):
                    self.assertEqual(self.status(server, PATHS[command], f"Origin: {origin}", host=host), status)
        body = '{"model":"m","messages":[]}'
        plain = ("Content-Type: text/plain", f"Content-Length: {len(body)}", "", body)  # needs no preflight
        self.assertEqual(self.status(server, "/v1/chat/completions", "Origin: http://evil.example", *plain, method="POST"), 403)
        self.assertEqual(self.status(server, "/v1/chat/completions", *plain, host="evil.example", method="POST"), 403)
        self.assertEqual(upstream.requests, [], "our API key was used")
        self.assertEqual(self.status(server, "/v1/chat/completions", *plain, method="POST"), 200)

    def test_listener_on_all_addresses_accepts_numeric_hosts(self):
        """As those of Kubernetes' probes and of Prometheus, which send the address of a pod."""
        for command in COMMANDS:
            server = self.start(command, token=True, listen="0.0.0.0:0")
            for host, status in (("10.1.2.3:9860", 200), ("[2001:db8::1]", 200), ("gpu-node", 403)):
                with self.subTest(command, host=host):
                    self.assertEqual(self.status(server, PATHS[command], f"x-ipw-token: {TOKEN}", host=host), status)

    def test_guessing_is_limited_by_address(self):
        for command in COMMANDS:
            with self.subTest(command), self.connect(server := self.start(command, token=True)) as known:
                right = f"Authorization: Bearer {TOKEN}"
                self.assertEqual(self.status(server, PATHS[command], right, connection=known), 200)
                guesses = [self.status(server, PATHS[command], f"Authorization: Bearer guess-{i}") for i in range(15)]
                self.assertEqual(guesses, [401] * 10 + [429] * 5)
                self.assertEqual(self.status(server, PATHS[command], right), 429, "a guess was confirmed")
                self.assertEqual(self.status(server, PATHS[command], f"x-ipw-token: {TOKEN}"), 429)
                self.assertEqual(self.status(server, PATHS[command]), 401, "no guess")
                self.assertEqual(self.status(server, PATHS[command], right, source="127.0.0.2"), 200, "another address")
                self.assertEqual(self.status(server, PATHS[command], right, connection=known), 200, "known before")

    def test_old_token_does_not_lock_others_out(self):
        """A program that repeats it guesses nothing."""
        for command in COMMANDS:
            with self.subTest(command):
                server = self.start(command, token=True)
                tries = [self.status(server, PATHS[command], "Authorization: Bearer old-token") for _ in range(15)]
                self.assertEqual(tries, [401] * 10 + [429] * 5)
                self.assertEqual(self.status(server, PATHS[command], f"Authorization: Bearer {TOKEN}"), 200)


class HeadTest(ServerTest):
    def test_ambiguous_heads_are_refused(self):
        """And what follows them is not another request."""
        upstream = self.upstream(send_document)
        next_request = b"GET /SMUGGLED HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for command in COMMANDS:
            server = self.start(command, upstream=upstream.url)
            for name, line in (("NUL in a value", b"X: a\0b"), ("NUL at the end", b"X: a\0"), ("empty name", b": v"),
                               ("empty name in between", b"X: a\r\n: v\r\nY: b"), ("two Hosts", b"Host: localhost"),
                               ("folded", b"X: a\r\n b")):
                with self.subTest(command, head=name), self.connect(server) as connection:
                    connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n\r\n" + next_request)
                    with connection.makefile("rb") as stream:
                        answer = stream.read()
                    self.assertRegex(answer, b"^HTTP/1.1 400 ")
                    self.assertEqual(answer.count(b"HTTP/1.1 "), 1)
        self.assertEqual(upstream.requests, [])


if __name__ == "__main__":
    main_parallel()
