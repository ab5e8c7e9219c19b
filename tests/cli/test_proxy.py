#!/usr/bin/env python3
# test: real time, asan
"""ipw proxy between raw clients and a raw server: forwarding, recording, refusals."""

import ctypes
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import ControllableGpu, Intel  # noqa: E402
from program import IPW, TIMEOUT_S, deep_folder, ipw, main_parallel  # noqa: E402
from proxies import (CHAT, DONE, LAST_CHUNK, STREAM_HEAD, ProxyTest, chunk, document, event, send_document,  # noqa: E402
                     read_message, request, response, until)

STREAM = STREAM_HEAD + chunk(event("a", "stop") + DONE) + LAST_CHUNK
PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000

# Bodies may contain any byte, and JSON any formatting.
ODD_JSON = b'{ "model" :\t"m\\u0041",\r\n"messages":[{"role":"user","content":"\xc3\xa9 \\ud83d\\ude00"}] ,"n":1.0e0}\n'


def find(tree, key):
    """The first value of a key, at any depth."""
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        if isinstance(tree, dict) and key in tree:
            return tree[key]
        if (found := find(value, key)) is not None:
            return found
    return None


class Start(ProxyTest):
    """A client may try to connect before the proxy listens: the first connection that succeeds is answered."""

    def start_and_ask(self, upstream, number):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        process = subprocess.Popen(
            [IPW, "proxy", "-q", "--upstream", upstream.url, "--listen", f"127.0.0.1:{port}", "--idle", "0",
             "--output-dir", str(self.root / "runs"), "--name", f"run{number}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            connections = []
            deadline = time.monotonic() + TIMEOUT_S
            while not connections:
                self.assertIsNone(process.poll())
                self.assertLess(time.monotonic(), deadline)
                try:
                    connections.append(socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S))
                except ConnectionRefusedError:
                    pass
            connections += [socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) for _ in range(100)]
            for connection in connections:
                with connection, connection.makefile("rb") as stream:
                    connection.sendall(request())
                    self.assertIn("200", read_message(stream)[0])
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)

    def test_first_connection_is_answered(self):
        upstream = self.upstream(send_document)
        for number in range(4):
            self.start_and_ask(upstream, number)


    def test_output_directory_may_have_a_long_path(self):
        self.root = deep_folder(self.root)
        proxy = self.proxy(self.upstream(send_document))
        self.assertIn("200", proxy.ask()[0])
        self.assertEqual(proxy.end(), 0, proxy.stderr)
        self.assertEqual(len(proxy.records()), 1)
        self.assertEqual(json.loads((self.root / "runs/run/summary.json").read_text())["total_queries"], 1)


class Forwarding(ProxyTest):
    def test_request_and_response_are_forwarded_byte_for_byte(self):
        answer = b'{"choices" : [ {"index":0,"message":{"content":"\\u00e9\xc3\xa9"},"finish_reason":"stop"}]}\n\n'
        upstream = self.upstream(lambda c, *_: c.sendall(response(answer, headers=[
            ("Content-Type", "application/json"), ("X-One", "a, b"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"),
            ("Connection", "keep-alive, X-Hop"), ("X-Hop", "1"), ("x-request-id", "Z")])))
        proxy = self.proxy(upstream)
        line, headers, body = proxy.ask(CHAT + "?a=%2F%20b&c", ODD_JSON, headers=[
            ("Authorization", "Bearer sk-123456"), ("Accept", "*/*"), ("X-Stainless-Lang", "js"),
            ("Connection", "X-Gone"), ("X-Gone", "1"), ("x-ipw-query", "q"), ("User-Agent", "u/1")])
        self.assertEqual((line, body), ("HTTP/1.1 200 OK", answer))
        self.assertEqual([v for n, v in headers if n == "set-cookie"], ["a=1", "b=2"])
        fields = dict(headers)
        self.assertEqual((fields["x-one"], fields["x-request-id"], fields["content-type"]),
                         ("a, b", "Z", "application/json"))
        self.assertNotIn("x-hop", fields)
        start, sent, came = upstream.requests[0]
        self.assertEqual((start, came), (f"POST {CHAT}?a=%2F%20b&c HTTP/1.1", ODD_JSON))
        self.assertEqual(sorted(n for n, _ in sent),
                         ["accept", "authorization", "content-length", "host", "user-agent", "x-stainless-lang"])
        self.assertEqual(dict(sent)["host"], upstream.url.removeprefix("http://"))

    def test_stream_is_forwarded_as_it_arrives(self):
        pieces = [event("a"), event("b")[:20], event("b")[20:], event(None, "stop") + DONE]
        turn = threading.Semaphore(0)

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD)
            for piece in pieces:
                turn.acquire()
                connection.sendall(chunk(piece))
            connection.sendall(LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer))
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(CHAT, b'{"stream":true}'))
            while stream.readline().strip():  # the head arrives before the first chunk
                pass
            for piece in pieces:  # and every chunk before the next is sent
                turn.release()
                got = b""
                while got != piece:
                    size = int(stream.readline(), 16)
                    got += stream.read(size)
                    stream.readline()
                    self.assertTrue(piece.startswith(got), (piece, got))
            self.assertEqual(stream.readline(), b"0\r\n")

    def test_compressed_bodies_are_forwarded_unchanged(self):
        for coding, packed in (("gzip", gzip.compress(document())), ("deflate", zlib.compress(document()))):
            with self.subTest(coding):
                proxy = self.proxy(self.upstream(lambda c, *_: c.sendall(response(
                    packed, headers=[("Content-Type", "application/json"), ("Content-Encoding", coding)]))),
                    "--overwrite")
                sent = gzip.compress(ODD_JSON)
                line, headers, body = proxy.ask(CHAT, sent, headers=[("Content-Encoding", "gzip"),
                                                                    ("Accept-Encoding", coding)])
                self.assertEqual((body, dict(headers)["content-encoding"]), (packed, coding))
                proxy.end()

    def test_chunked_requests_and_large_bodies(self):
        large = b'{"messages":"' + b"x" * 3_000_000 + b'"}'
        back = bytes(range(256)) * 20_000
        upstream = self.upstream(lambda c, *_: c.sendall(response(back)))
        proxy = self.proxy(upstream)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            for at in range(0, len(large), 100_000):
                connection.sendall(chunk(large[at:at + 100_000]))
            connection.sendall(LAST_CHUNK)
            self.assertEqual(read_message(stream)[2], back)
        self.assertEqual(upstream.requests[0][2], large)

    def test_connections_are_kept_alive_on_both_sides(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            for _ in range(5):
                connection.sendall(request())
                self.assertEqual(read_message(stream)[2], document())
        self.assertEqual((len(upstream.requests), upstream.connections), (5, 1))

    def test_empty_headers_are_forwarded(self):
        upstream = self.upstream(lambda c, *_: c.sendall(response(b"{}", headers=[("X-Empty", ""), ("X-Full", "a\tb")])))
        headers = dict(self.proxy(upstream).ask(headers=[("X-Asked", "")])[1])
        self.assertEqual((headers["x-empty"], headers["x-full"]), ("", "a\tb"))
        self.assertEqual(dict(upstream.requests[0][1])["x-asked"], "")

    def test_other_paths_and_methods_are_forwarded(self):
        upstream = self.upstream(lambda c, line, *_: c.sendall(response(
            b"" if line.startswith(("HEAD", "DELETE")) else line.encode(),
            "204 No Content" if line.startswith("DELETE") else "200 OK", length=not line.startswith("DELETE"))))
        proxy = self.proxy(upstream)
        self.assertEqual(proxy.get("/v1/models"), "GET /v1/models HTTP/1.1")
        self.assertEqual(proxy.get("/api/tags"), "GET /api/tags HTTP/1.1")
        with proxy.connect() as connection:
            connection.sendall(request("/api/delete", b"{}", "DELETE"))
            self.assertIn(b"204", connection.recv(1000))
        self.assertEqual(upstream.requests[-1][0::2], ("DELETE /api/delete HTTP/1.1", b"{}"))
        proxy.end()
        self.assertEqual(proxy.records(), [], "not inference requests")

    def test_upstream_by_host_name(self):
        """Connected by libcurl, which adds no headers."""
        packed = gzip.compress(document())
        upstream = self.upstream(lambda c, line, *_: c.sendall(
            STREAM_HEAD + chunk(event("a")) + chunk(DONE) + LAST_CHUNK if "chat" in line else
            response(packed, "429 Too Many Requests", [("Content-Encoding", "gzip"), ("X-A", "b")])))
        proxy = self.proxy(upstream.url.replace("127.0.0.1", "localhost"))
        self.assertEqual(proxy.ask(body=ODD_JSON, headers=[("X-B", "c")])[2], event("a") + DONE)
        line, headers, body = proxy.ask("/v1/completions?a=%2F", ODD_JSON)
        self.assertEqual((line, body, dict(headers)["x-a"]), ("HTTP/1.1 429 Too Many Requests", packed, "b"))
        (first, sent, came), (second, _, _) = upstream.requests
        self.assertEqual((first, came, second), (f"POST {CHAT} HTTP/1.1", ODD_JSON,
                                                 "POST /v1/completions?a=%2F HTTP/1.1"))
        self.assertEqual(sorted(n for n, _ in sent), ["content-length", "host", "x-b"])
        self.assertEqual(upstream.connections, 1)

    def test_path_of_upstream_is_prefixed_once(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream.url + "/openai/v1/")
        for path in ("/chat/completions", "/openai/v1/chat/completions"):
            proxy.ask(path)
        self.assertEqual({line for line, _, _ in upstream.requests},
                         {"POST /openai/v1/chat/completions HTTP/1.1"})



class Disconnection(ProxyTest):
    """If client, proxy or server disconnects, the others are informed."""

    def test_client_disconnect_cancels_request(self):
        for streams in (False, True):
            with self.subTest(streams=streams):
                gone = threading.Event()

                def answer(connection, *_):
                    if streams:
                        connection.sendall(STREAM_HEAD + chunk(event("a")))
                    if connection.recv(1) == b"":  # closed by the proxy
                        gone.set()
                    return False

                proxy = self.proxy(self.upstream(answer), "--overwrite")
                with proxy.connect() as connection:
                    connection.sendall(request(CHAT, b'{"stream":true}'))
                    if streams:
                        connection.recv(1000)
                    else:
                        until(lambda: json.loads(proxy.get("/ipw/requests"))["in_flight"])
                self.assertTrue(gone.wait(TIMEOUT_S))
                entry = until(lambda: [r for r in proxy.recent() if r["state"] != "in_flight"])[0]
                self.assertEqual((entry["state"], entry["error"]), ("canceled", "the client disconnected"))
                proxy.end()
                record, = proxy.records()
                self.assertEqual((record["ipw"]["status"], record["dataset_metadata"]["canceled"]), ("canceled", True))

    def test_canceled_requests_are_not_failures(self):
        """In no report, and their energy is a part of its own."""
        def answer(connection, _, headers, body):
            if b"cancel" in body:
                connection.sendall(STREAM_HEAD + chunk(event("a")))
                connection.recv(1)
                return False
            time.sleep(0.1)
            send_document(connection)

        proxy = self.proxy(self.upstream(answer), "--json", machine=self.machine(Intel, 40))
        proxy.ask()
        with proxy.connect() as connection:
            connection.sendall(request(CHAT, b'{"stream":true,"user":"cancel"}'))
            connection.recv(1000)
            time.sleep(0.3)
        until(lambda: [r for r in proxy.recent() if r["state"] == "canceled"])
        self.assertIn('ipw_proxy_requests_total{model="unknown",outcome="failed"} 0', proxy.get("/ipw/metrics"))
        self.assertEqual(proxy.end(), 0)
        report = json.loads(proxy.stdout)
        self.assertEqual([report[key] for key in ("queries", "completed", "failed", "canceled", "failure_reason")],
                         [2, 1, 0, 1, None])
        self.assertGreater(report["joules"]["canceled"], 40 * 0.3 * 0.8)
        self.assertEqual(report["joules"]["failed"], 0)
        self.assertLess(report["conservation_error"], 1e-3)
        self.assertIn("1 of 2 requests was canceled by its client", proxy.stderr)
        self.assertNotIn("failed", proxy.stderr)
        run = self.root / "runs/run"
        said = ipw(None, "analyze", run).stdout
        self.assertIn("1 canceled", said)
        self.assertNotIn("1 failed", said)
        quality = json.loads(ipw(None, "analyze", run, "--analysis", "quality", "--json").stdout)
        checks = {c["check"]: c["verdict"] for c in find(quality, "checks")}
        self.assertEqual(checks["failed_queries"], "good")
        self.assertNotIn("failed", ipw(None, "compare", run, run).stdout)
        metrics = ipw(None, "export", run, "--to", "prom", "-o", "-").stdout
        self.assertRegex(metrics, r'ipw_run_queries\{.*status="canceled".*\} 1\n')
        self.assertRegex(metrics, r'ipw_run_queries\{.*status="failed".*\} 0\n')

    def test_client_that_closes_at_done_is_completed(self):
        """Like OpenAI's client at [DONE], before the end of the body."""
        gone = threading.Event()

        def answer(connection, line, *_):
            last = event("a", "stop") + DONE if "chat/completions" in line else b'{"response":"a","done":true}\n'
            connection.sendall(STREAM_HEAD + chunk(last))
            connection.recv(1)
            gone.set()
            return False

        proxy = self.proxy(self.upstream(answer))
        for path in (CHAT, "/api/generate"):
            with proxy.connect() as connection, connection.makefile("rb") as stream:
                connection.sendall(request(path, b'{"stream":true}'))
                while not stream.readline().endswith((b"[DONE]\n", b"true}\n")):
                    pass
            self.assertTrue(gone.wait(TIMEOUT_S))
            gone.clear()
        proxy.end()
        self.assertEqual([(r["ipw"]["status"], r["dataset_metadata"]["canceled"]) for r in proxy.records()],
                         [("completed", False)] * 2)

    def test_early_response_is_forwarded_though_server_closes(self):
        """The server has read the head, but not the body."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            connection, _ = listener.accept()
            with connection, connection.makefile("rb", buffering=0) as stream:
                while stream.readline().strip():
                    pass
                connection.sendall(response(b"{}", "413 Content Too Large", [("Connection", "close")]))

        threading.Thread(target=serve, daemon=True).start()
        proxy = self.proxy(f"http://127.0.0.1:{listener.getsockname()[1]}")
        self.assertEqual(proxy.ask(body=b"x" * 20_000_000)[0::2], ("HTTP/1.1 413 Content Too Large", b"{}"))

    def test_content_length_with_chunked_encoding_is_ignored(self):
        """RFC 9112, 6.3: the chunks are the body, whatever the length."""
        for length in (1, 100):
            with self.subTest(length=length):
                proxy = self.proxy(self.upstream(lambda c, *_: c.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % length +
                    chunk(b"whole") + LAST_CHUNK)), "--overwrite")
                self.assertEqual(proxy.ask("/v1/other")[2], b"whole")
                self.assertEqual(proxy.end(), 0)

    def test_upstream_errors_are_forwarded(self):
        body = b'{"error":{"message":"slow down","type":"rate_limit"}}'
        upstream = self.upstream(lambda c, *_: c.sendall(response(
            body, "429 Too Many Requests", [("Content-Type", "application/json"), ("Retry-After", "7")])))
        proxy = self.proxy(upstream)
        line, headers, got = proxy.ask()
        self.assertEqual((line, got, dict(headers)["retry-after"]), ("HTTP/1.1 429 Too Many Requests", body, "7"))
        proxy.end()
        record, = proxy.records()
        self.assertEqual((record["ipw"]["status"], record["ipw"]["http_status"]), ("failed", 429))

    def test_unreachable_upstream_is_502(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        proxy = self.proxy(f"http://user:hunter22@127.0.0.1:{port}")
        line, headers, body = proxy.ask()
        self.assertEqual((line, dict(headers)["content-type"]), ("HTTP/1.1 502 Bad Gateway", "application/json"))
        message = json.loads(body)["error"]["message"]
        self.assertIn(str(port), message)
        self.assertNotIn("hunter22", message)
        proxy.end()
        self.assertNotIn("hunter22", proxy.stderr + (self.root / "runs/run/records.jsonl").read_text()
                         + (self.root / "runs/run/summary.json").read_text())

    def test_truncated_response_stays_truncated(self):
        def short(connection, *_):
            connection.sendall(response(b"x" * 100)[:-60])
            return False

        def cut_stream(connection, *_):
            connection.sendall(STREAM_HEAD + chunk(event("a")))
            return False

        for name, answer, sent in (("length", short, b"x" * 40), ("chunked", cut_stream, chunk(event("a")))):
            with self.subTest(name):
                proxy = self.proxy(self.upstream(answer), "--overwrite")
                with proxy.connect() as connection, connection.makefile("rb") as stream:
                    connection.sendall(request(CHAT, b'{"stream":true}'))
                    while stream.readline().strip():
                        pass
                    try:
                        rest = stream.read()
                    except ConnectionResetError:
                        rest = sent
                self.assertEqual(rest, sent, "final chunk was sent")
                proxy.end()
                self.assertEqual(proxy.records()[0]["ipw"]["status"], "failed")

    def test_sent_request_is_not_retried(self):
        """Even on a reused connection, because the server may have done the work.  Idempotent requests may be
        retried."""
        def answer(connection, *_):
            if len(upstream.requests) in (2, 5):
                return False
            send_document(connection)

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream)
        self.assertEqual([proxy.ask()[0].split()[1] for _ in range(4)], ["200", "502", "200", "200"])
        self.assertEqual(len(upstream.requests), 4)
        self.assertEqual(proxy.ask("/v1/models", b"", "GET")[0], "HTTP/1.1 200 OK")
        self.assertEqual(len(upstream.requests), 6)

    def test_reused_connection_closed_by_server(self):
        closed = threading.Semaphore(0)

        def answer(connection, *_):
            send_document(connection)
            connection.shutdown(socket.SHUT_RDWR)
            closed.release()

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream)
        for _ in range(5):
            self.assertEqual(proxy.ask()[0], "HTTP/1.1 200 OK")
            closed.acquire(timeout=TIMEOUT_S)
        self.assertEqual((len(upstream.requests), upstream.connections), (5, 5))

    def test_server_that_closes_after_stream_without_notice(self):
        """Like llama.cpp's: after the next request has been sent, it is too late to retry."""
        def answer(connection, *_):
            connection.sendall(STREAM)
            time.sleep(0.2)
            return False

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream)
        for pause in [0] * 8 + [1.5] + [0] * 4:
            time.sleep(pause)
            self.assertEqual(proxy.ask()[0].split()[1], "200")
        self.assertEqual(upstream.connections, 13)

    def keep_alive_proxy(self, ends=lambda: False):
        """A proxy that has learned that its server keeps connections after streams.  `ends` is called for each request
        on a connection that had a stream: whether to close without a response."""
        used = set()

        def answer(connection, *_):
            if connection in used and ends():
                return False
            used.add(connection)
            connection.sendall(STREAM)

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream)
        for _ in range(5):
            self.assertEqual(proxy.ask()[0].split()[1], "200")
        self.assertEqual(upstream.connections, 5, "connection reuse not learned yet")
        until(lambda: proxy.ask() and upstream.connections < len(upstream.requests))
        return proxy, upstream

    def assert_not_reused(self, proxy, upstream):
        before = upstream.connections
        for pause in [0] * 6 + [1.5] + [0] * 2:
            time.sleep(pause)
            self.assertEqual(proxy.ask()[0].split()[1], "200")
        self.assertEqual(upstream.connections, before + 9)

    def test_connections_are_reused_after_streams(self):
        proxy, upstream = self.keep_alive_proxy()
        before = upstream.connections
        for _ in range(8):
            self.assertEqual(proxy.ask()[2], event("a", "stop") + DONE)
        self.assertEqual(upstream.connections, before)

    def test_connections_are_not_reused_after_server_closed_once(self):
        """Either while the connection was idle, or while a request, which is not retried, was in flight."""
        with self.subTest("idle"):
            proxy, upstream = self.keep_alive_proxy()
            kept, closed = upstream.answer, threading.Event()

            def close(connection, *_):
                connection.sendall(STREAM)
                connection.shutdown(socket.SHUT_RDWR)
                closed.set()

            upstream.answer = close
            self.assertEqual(proxy.ask()[0].split()[1], "200")
            closed.wait(TIMEOUT_S)
            upstream.answer = kept
            self.assert_not_reused(proxy, upstream)
        with self.subTest("in use"):
            ending = []
            proxy.end()
            self.root = self.root / "second"
            proxy, upstream = self.keep_alive_proxy(lambda: bool(ending))
            ending.append(1)
            sent = len(upstream.requests)
            self.assertEqual(proxy.ask()[0].split()[1], "502")
            self.assertEqual(len(upstream.requests), sent + 1)
            ending.clear()
            self.assert_not_reused(proxy, upstream)

    def test_upstream_without_response_is_502(self):
        proxy = self.proxy(self.upstream(lambda *_: False))
        self.assertEqual(proxy.ask()[0], "HTTP/1.1 502 Bad Gateway")

    def test_first_signal_drains_and_second_aborts(self):
        for signals, status in ((1, "completed"), (2, "failed")):
            with self.subTest(signals=signals):
                came, go = threading.Event(), threading.Event()

                def answer(connection, *_):
                    came.set()
                    go.wait(TIMEOUT_S)
                    connection.sendall(response(document()))

                proxy = self.proxy(self.upstream(answer), "--overwrite")
                with proxy.connect() as connection, connection.makefile("rb") as stream:
                    connection.sendall(request())
                    came.wait(TIMEOUT_S)
                    proxy.process.send_signal(signal.SIGINT)
                    until(lambda: not self.listens(proxy))
                    if signals == 2:
                        proxy.process.send_signal(signal.SIGINT)
                        self.assertEqual(stream.read(), b"")
                    go.set()
                    if signals == 1:
                        self.assertEqual(read_message(stream)[2], document())
                self.assertEqual(proxy.process.wait(TIMEOUT_S), 0)
                self.assertEqual([r["ipw"]["status"] for r in proxy.records()], [status])

    @staticmethod
    def listens(proxy):
        try:
            proxy.connect().close()
            return True
        except OSError:
            return False

    def test_slow_client_only_slows_its_own_request(self):
        sent = 0
        block = b"y" * 65536

        def answer(connection, *_):
            nonlocal sent
            connection.sendall(STREAM_HEAD)
            connection.settimeout(1)
            try:
                while sent < 200 * len(block):
                    connection.sendall(chunk(block))
                    sent += len(block)
            except TimeoutError:
                return False
            connection.sendall(LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer))
        with proxy.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(request(CHAT, b'{"stream":true}'))
            until(lambda: sent > 0)
            before = -1
            while sent != before:  # until the buffers are full
                before = sent
                time.sleep(1.2)
            self.assertLess(sent, 200 * len(block), "the whole stream was accepted from the server")
            line, _, _ = proxy.ask("/v1/models", b"", "GET")  # others are still served
            self.assertTrue(line.startswith("HTTP/1.1"))

    def test_slow_client_gets_whole_stream(self):
        blocks = [bytes([i % 251]) * 65536 for i in range(400)]  # more than four socket buffers

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD + b"".join(map(chunk, blocks)) + LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer))
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(CHAT, b'{"stream":true}'))
            time.sleep(0.5)  # until the proxy has paused
            self.assertEqual(read_message(stream)[2], b"".join(blocks))


class Refusals(ProxyTest):
    def test_bodies_and_headers_have_limits(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream, "--max-body", "1")
        self.assertEqual(proxy.ask(body=b" " * (1 << 20))[0], "HTTP/1.1 200 OK")
        self.assertIn(" 413 ", proxy.ask(body=b" " * ((1 << 20) + 1))[0])
        self.assertRegex(proxy.ask(headers=[("X-Long", "x" * 40_000)])[0], " (431|413) ")
        self.assertEqual(len(upstream.requests), 1)

    def test_rejects_ambiguous_framing(self):
        """Upstream connections are shared, so none of these requests may be forwarded."""
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream)
        lines = {
            "space before the colon": b"Transfer-Encoding : chunked", "another length": b"Content-Length : 5",
            "bare CR": b"X: a\rTransfer-Encoding: chunked", "folded": b"X: a\r\n\tTransfer-Encoding: chunked",
            "name": b"X A\x0b(: a", "control character": b"X: a\x01b", "DEL": b"X: a\x7fb", "bracket": b"X[: a"}
        targets = {"space": b"/v1/models a", "tab": b"/v1/models\ta", "control": b"/v1/models\x01"}
        requests = {name: f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n".encode() + line + b"\r\nContent-Length: 2\r\n\r\n{}"
                    for name, line in lines.items()}
        requests |= {f"target, {name}": b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
                     for name, target in targets.items()}
        for name, sent in requests.items():
            with self.subTest(name), proxy.connect() as connection, connection.makefile("rb") as stream:
                connection.sendall(sent)
                answer = read_message(stream)
                if answer or name != "target, space":  # after that one the HTTP library may just close
                    self.assertRegex(answer[0], "^HTTP/1.[01] 400 ")
        self.assertEqual(upstream.requests, [])
        self.assertEqual(proxy.ask(headers=[("X-!#$%&'*+.^_`|~9", "\t\u00e9 (a);,\"")])[0], "HTTP/1.1 200 OK")

    def test_other_addresses_need_a_token(self):
        for address in ("0.0.0.0:0", "[::]:0"):
            done = ipw(None, "proxy", "--upstream", "http://127.0.0.1:1", "--listen", address,
                       "--output-dir", self.root / "runs")
            self.assertEqual(done.returncode, 2, (address, done.stderr))
            self.assertIn("token", done.stderr)
        self.assertFalse((self.root / "runs").exists() and any((self.root / "runs").iterdir()))

    def test_token_is_required_and_not_forwarded(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream, "--listen", "0.0.0.0:0", env={"IPW_PROXY_TOKEN": "let-me-in-42",
                                                                   "IPW_API_KEY": "sk-upstream-7"})
        for headers in ((), (("x-ipw-token", "let-me-in-4"),), (("x-ipw-token", "let-me-in-422"),),
                        (("Authorization", "Bearer sk-own-key"),)):
            for path in (CHAT, "/ipw/metrics"):
                line, _, body = proxy.ask(path, headers=headers)
                self.assertIn(" 401 ", line)
                self.assertNotIn(b"let-me-in", body)
        for headers, key in (([("x-ipw-token", "let-me-in-42")], "Bearer sk-upstream-7"),
                             ([("Authorization", "Bearer let-me-in-42")], "Bearer sk-upstream-7"),
                             ([("x-ipw-token", "let-me-in-42"), ("Authorization", "Bearer sk-own-key")],
                              "Bearer sk-own-key")):
            self.assertEqual(proxy.ask(headers=headers)[0], "HTTP/1.1 200 OK")
            self.assertEqual(dict(upstream.requests[-1][1]).get("authorization"), key)
            self.assertNotIn("let-me-in", str(upstream.requests[-1]))
        self.assertEqual(len(upstream.requests), 3)
        proxy.end()
        written = b"".join(path.read_bytes() for path in (self.root / "runs/run").iterdir())
        for secret in ("let-me-in-42", "sk-upstream-7", "sk-own-key"):
            self.assertNotIn(secret.encode(), written)
            self.assertNotIn(secret, proxy.stderr + proxy.stdout)

    def test_token_in_any_key_header(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream, env={"IPW_PROXY_TOKEN": "let-me-in-42", "IPW_API_KEY": "sk-upstream-7"})
        token, own = "let-me-in-42", "Bearer sk-upstream-7"
        for headers, passed in (([("x-api-key", token)], {"authorization": own}),
                                ([("api-key", token)], {"authorization": own}),
                                ([("Authorization", "Bearer " + token), ("x-api-key", token)], {"authorization": own}),
                                ([("Authorization", "Bearer " + token), ("api-key", "theirs")], {"api-key": "theirs"}),
                                ([("x-api-key", "theirs"), ("api-key", token)], {"x-api-key": "theirs"})):
            with self.subTest(headers):
                self.assertEqual(proxy.ask(headers=headers)[0], "HTTP/1.1 200 OK")
                self.assertEqual({n: v for n, v in upstream.requests[-1][1] if n in
                                  ("authorization", "x-api-key", "api-key")}, passed)
        self.assertIn(" 401 ", proxy.ask(headers=[("x-api-key", "let-me-in-43")])[0])

    def test_incomplete_request_times_out(self):
        proxy = self.proxy(self.upstream(send_document), "--client-timeout", "0.5")
        for beginning in (b"", b"POST /v1/chat", f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nX-A:".encode(),
                          request(CHAT, b"x" * 100)[:-50]):
            with self.subTest(beginning), proxy.connect() as connection:
                connection.sendall(beginning)
                self.assertEqual(connection.recv(100), b"", "connection not closed")
        self.assertEqual(proxy.ask()[0], "HTTP/1.1 200 OK")

    def test_incomplete_later_request_on_connection_times_out(self):
        proxy = self.proxy(self.upstream(send_document), "--client-timeout", "0.5")
        for beginning in (b"P", b"POST /v1/chat", request(CHAT, b"x" * 100)[:-50]):
            with self.subTest(beginning), proxy.connect() as connection, connection.makefile("rb") as stream:
                for _ in range(2):
                    connection.sendall(request())
                    self.assertEqual(read_message(stream)[0], "HTTP/1.1 200 OK")
                    time.sleep(1)  # an idle connection may stay open
                connection.settimeout(30)
                connection.sendall(beginning)
                self.assertEqual(stream.read(), b"", "connection not closed")

    def test_incomplete_pipelined_request_times_out(self):
        asked, go_on = threading.Event(), threading.Event()

        def answer(connection, *_):
            asked.set()
            go_on.wait(TIMEOUT_S)
            connection.sendall(response(document()))

        proxy = self.proxy(self.upstream(answer), "--client-timeout", "0.5")
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request())
            self.assertTrue(asked.wait(TIMEOUT_S))
            connection.sendall(b"P")
            time.sleep(0.5)  # until the proxy has read it
            go_on.set()
            self.assertEqual(read_message(stream)[0], "HTTP/1.1 200 OK")
            connection.settimeout(30)
            self.assertEqual(stream.read(), b"", "connection not closed")

    def test_usage_errors(self):
        for options, words in ((["--upstream", "nonsense"], "is not a URL"),
                               (["--upstream", "http://127.0.0.1:1", "--listen", "127.0.0.1:70000"], "--listen"),
                               (["--upstream", "http://127.0.0.1:1", "--listen", "nonsense"], "'nonsense', which is not an address"),
                               (["--upstream", "http://127.0.0.1:1", "--token", "x"], "IPW_PROXY_TOKEN"),
                               ([], "missing --upstream")):
            done = ipw(None, "proxy", *options, "--output-dir", self.root / "runs")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)

    def test_rejects_itself_as_upstream(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        for upstream, listen in (("http://127.0.0.1:{}", "127.0.0.1:{}"), ("http://localhost:{}/v1", "127.0.0.1:{}"),
                                 ("http://127.0.0.1:{}", "localhost:{}"), ("http://127.1.2.3:{}", "0.0.0.0:{}"),
                                 ("http://0.0.0.0:{}", "127.0.0.1:{}"), ("https://LOCALHOST:{}", "{}")):
            with self.subTest(upstream=upstream, listen=listen):
                done = ipw(None, "proxy", "--upstream", upstream.format(port), "--listen", listen.format(port),
                           "--output-dir", self.root / "runs", env={"IPW_PROXY_TOKEN": "let-me-in-42"})
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, f"the upstream server .*:{port} is this proxy itself.*another port")
        self.assertFalse((self.root / "runs").exists())
        self.proxy(f"http://127.0.0.1:{port}")  # another port of the same host

    def test_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = ipw(None, "proxy", "--upstream", "http://127.0.0.1:1", "--listen",
                       f"127.0.0.1:{taken.getsockname()[1]}", "--output-dir", self.root / "runs")
        self.assertEqual(done.returncode, 1)
        self.assertIn("in use", done.stderr)
        self.assertFalse((self.root / "runs").exists(), "a run was started")


class Recording(ProxyTest):
    def test_stream_records_tokens_and_times(self):
        turn, begun = threading.Semaphore(0), threading.Event()
        last = event(None, "length", usage={"prompt_tokens": 11, "completion_tokens": 3})

        def answer(connection, *_):
            begun.set()
            connection.sendall(STREAM_HEAD)
            for word in "abc":
                turn.acquire()
                connection.sendall(chunk(event(word)))
            connection.sendall(chunk(last + DONE) + LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer))
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(CHAT, b'{"model":"tiny","stream":true,"messages":[]}'))
            self.assertTrue(begun.wait(TIMEOUT_S))
            for _ in range(3):
                time.sleep(0.1)
                turn.release()
            read_message(stream)
        proxy.end()
        record, = proxy.records()
        own, model = record["ipw"], record["model_metrics"]["mixed"]
        self.assertEqual((own["status"], own["finish_reason"], own["pieces"]), ("completed", "length", 3))
        self.assertEqual(model["token_metrics"], {"input": 11, "output": 3, "total": 14})
        self.assertGreaterEqual(model["latency_metrics"]["time_to_first_token_seconds"], 0.1)
        self.assertGreaterEqual(model["latency_metrics"]["total_query_seconds"], 0.3)
        self.assertEqual((record["problem"], model["lm_response"]), ("", ""), "content stored without --store-content")

    def test_all_protocols_are_recorded(self):
        openai = document("hi", 5, 2)
        responses = json.dumps({"object": "response", "status": "completed", "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
            "usage": {"input_tokens": 5, "output_tokens": 2}}).encode()
        responses_stream = b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in (
            {"type": "response.created", "response": {"status": "in_progress", "usage": None}},
            {"type": "response.output_text.delta", "delta": "h"}, {"type": "response.output_text.delta", "delta": "i"},
            {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 2}}}))
        ollama = b"".join(json.dumps(line).encode() + b"\n" for line in (
            {"message": {"content": "h"}, "done": False},
            {"message": {"content": "i"}, "done": True, "prompt_eval_count": 5, "eval_count": 2}))
        generate = json.dumps({"response": "hi", "done": True, "prompt_eval_count": 5, "eval_count": 2}).encode()
        end = {"content": "", "stop": True, "stop_type": "limit", "tokens_evaluated": 5, "tokens_predicted": 2,
               "tokens_cached": 6, "timings": {"prompt_n": 3, "cache_n": 2, "prompt_ms": 1.5, "predicted_n": 2}}
        native = json.dumps({**end, "content": "hi"}).encode()
        native_stream = b"".join(b"data: " + json.dumps(e).encode() + b"\n\n" for e in (
            {"index": 0, "content": "h", "stop": False}, {"index": 0, "content": "i", "stop": False}, end))
        rerank = b'{"object":"list","results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":5}}'
        details = {"finish_reason": "length", "generated_tokens": 2, "input_length": 5}
        tgi = json.dumps({"generated_text": "hi", "details": {
            "finish_reason": "eos_token", "generated_tokens": 2, "prefill": [{"id": i} for i in range(5)]}}).encode()
        tgi_stream = b"".join(b"data:" + json.dumps(e).encode() + b"\n\n" for e in (
            {"index": 1, "token": {"id": 7, "text": "h", "special": False}, "generated_text": None, "details": None},
            {"index": 2, "token": {"id": 8, "text": "i", "special": False}, "generated_text": "hi", "details": details}))
        cases = {
            "/completion": (b'{"prompt":"q"}', native, 2), "/infill": (b'{"stream":true}', native_stream, 2),
            "/completions": (b'{"stream":true}', native_stream, 2), "/rerank": (b'{"query":"q"}', rerank, None),
            "/v1/rerank": (b'{"query":"q"}', rerank, None), "/v1/reranking": (b'{"query":"q"}', rerank, None),
            "/generate": (b'{"inputs":"q"}', tgi, 2), "/generate_stream": (b'{"inputs":"q"}', tgi_stream, 2),
            "/": (b'{"inputs":"q"}', b'[{"generated_text":"hi"}]', 2),
            "/v1/chat/completions": (b'{"model":"m"}', openai, 2), "/v1/completions": (b'{"model":"m"}', openai, 2),
            "/v1/responses": (b'{"model":"m"}', responses, 2), "/responses": (b'{"stream":true}', responses_stream, 2),
            "/api/chat": (b'{"model":"m"}', ollama, 2), "/api/generate": (b'{"stream":false}', generate, 2),
            "/v1/embeddings": (b'{"model":"m"}', b'{"data":[],"usage":{"prompt_tokens":5,"total_tokens":5}}', None),
            "/api/embed": (b'{"model":"m"}', b'{"embeddings":[[1.0]],"prompt_eval_count":5}', None),
        }
        answers = {path: answer for path, (_, answer, _) in cases.items()}
        counts = [("x-prompt-tokens", "5"), ("x-generated-tokens", "2")]  # of TGI
        proxy = self.proxy(self.upstream(lambda c, line, *_: c.sendall(response(
            answers[line.split()[1]], headers=counts if line.startswith("POST / ") else ()))), "--store-content")
        for path, (body, answer, _) in cases.items():
            self.assertEqual(proxy.ask(path, body)[2], answer)
        proxy.end()
        records = {r["dataset_metadata"]["path"]: r for r in proxy.records()}
        self.assertEqual(set(records), set(cases))
        for path, (_, _, output) in cases.items():
            with self.subTest(path):
                tokens = records[path]["model_metrics"]["mixed"]["token_metrics"]
                self.assertEqual((records[path]["ipw"]["status"], tokens["input"], tokens.get("output")),
                                 ("completed", 5, output))
                self.assertEqual(records[path]["model_answers"]["mixed"], "hi" if output else "")
        self.assertEqual(records["/completion"]["ipw"]["finish_reason"], "length")
        self.assertEqual(records["/generate"]["problem"], "q")

    def test_vectors_without_counts_are_recorded(self):
        """llama.cpp's own /embedding returns an array, without token counts."""
        proxy = self.proxy(self.upstream(lambda c, *_: c.sendall(response(b'[{"index":0,"embedding":[[1.0,2.0]]}]'))))
        proxy.ask("/embedding", b'{"content":"q"}')
        proxy.end()
        record, = proxy.records()
        self.assertEqual(record["ipw"]["status"], "completed")
        self.assertNotIn("token_metrics", record["model_metrics"]["mixed"])

    def test_labels_of_requests(self):
        proxy = self.proxy(self.upstream(send_document), "--key-name", "key-00000000=nobody")
        proxy.ask(body=b'{"model":"a"}', headers=[("x-ipw-query", "Q 1"), ("x-ipw-turn", "2"),
                                                  ("Authorization", "Bearer sk-first-key")])
        proxy.ask(body=b'{"model":"b"}', headers=[("Authorization", "Bearer sk-other-key")])
        proxy.ask(body=b'{"model":"b"}')
        first, other, none = (entry["key"] for entry in reversed(proxy.recent()))
        self.assertRegex(first, r"^key-[0-9a-f]{8}$")
        self.assertRegex(other, r"^key-[0-9a-f]{8}$")
        self.assertNotEqual(first, other)
        self.assertIsNone(none)
        proxy.end()
        data = [r["dataset_metadata"] for r in proxy.records()]
        self.assertEqual([(d["model"], d["query"], d["turn"], d["key"]) for d in data],
                         [("a", "Q 1", "2", first), ("b", None, None, other), ("b", None, None, None)])
        named = self.proxy(self.upstream(send_document), "--overwrite", "--key-name", f"{first}=alice")
        named.ask(headers=[("Authorization", "Bearer sk-first-key")])
        self.assertEqual(named.recent()[0]["key"], "alice")

    def test_client_keys_are_masked_and_nothing_else(self):
        """Keys are masked in responses and content, but clients cannot mask other data."""
        key, model = "sk-Xq7Lm20PzR8aTw", "a1b2c3d4e5f6a7b8"
        proxy = self.proxy(self.upstream(lambda c, *_: c.sendall(response(document(f"no such key: {key}")))),
                           "--store-content", "--model", model)
        words = ("completed", "openai", "llama3", "general", "application", model)
        for word in (key, *words):
            proxy.ask(body=json.dumps({"model": "llama3", "messages": [{"role": "user", "content": "is it " + key}]})
                      .encode(), headers=[("Authorization", "Bearer " + word)])
        proxy.end()
        for record in proxy.records():
            answer, = record["model_answers"].values()
            self.assertEqual((record["ipw"]["status"], record["subject"], record["problem"], answer),
                             ("completed", "llama3", "is it ***", "no such key: ***"))
        summary = (self.root / "runs/run/summary.json").read_text()
        self.assertEqual(json.loads(summary)["model"], model)
        self.assertNotIn("***", summary)

    def test_keys_of_any_number_of_clients_are_masked(self):
        keys = [f"sk-{i * 2654435761 % 2**32:08x}Key{i:04}" for i in range(400)]
        names = ("Authorization", "x-api-key", "api-key")

        def answer(connection, _, headers, body):
            connection.sendall(response(document("no such key: " + json.loads(body)["messages"][0]["content"])))

        proxy = self.proxy(self.upstream(answer), "--store-content")
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            for i, key in enumerate(keys):
                value = "Bearer " + key if i % 3 == 0 else key
                connection.sendall(request(CHAT, json.dumps({"messages": [{"role": "user", "content": key}]}).encode(),
                                           headers=[(names[i % 3], value), ("x-ipw-query", "of " + key)]))
                self.assertIn(key.encode(), read_message(stream)[2])
        recent = proxy.get("/ipw/requests?limit=1000")
        proxy.end()
        self.assertEqual(len(proxy.records()), len(keys))
        for record in proxy.records():
            self.assertEqual((record["problem"], record["model_answers"]["mixed"], record["ipw"]["id"]),
                             ("***", "no such key: ***", "of ***"))
        for path in [*(self.root / "runs").rglob("*"), None]:
            content = recent.encode() if path is None else path.read_bytes() if path.is_file() else b""
            self.assertEqual([key for key in keys if key.encode() in content], [], path)

    def test_stored_content_is_private(self):
        """The directory and every file in it, also of commands that add some; other runs follow the umask."""
        def modes(folder):
            return {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")
                    if not path.is_symlink()}

        for options, mask, file, folder in ((["--store-content"], 0o002, 0o600, 0o700), ([], 0o002, 0o664, 0o775),
                                            ([], 0o027, 0o640, 0o750)):
            before = os.umask(mask)
            try:
                proxy = self.proxy(self.upstream(send_document), *options, "--overwrite")
                proxy.ask()
                proxy.end()
                self.assertEqual(ipw(None, "analyze", self.root / "runs/run").returncode, 0)
            finally:
                os.umask(before)
            run = self.root / "runs/run"
            found = modes(run)
            self.assertGreaterEqual(set(found), {"records.jsonl", "summary.json", "spans.jsonl", "samples.csv",
                                                 "data-00000-of-00001.arrow", "state.json", "analysis"})
            self.assertEqual(run.stat().st_mode & 0o777, folder)
            for name, mode in found.items():
                self.assertEqual(mode, folder if name in ("analysis", "plots") else file, (options, name))
            index = self.root / "runs/catalog.db"
            if index.exists():  # belongs to all runs
                self.assertEqual(index.stat().st_mode & 0o777, 0o666 & ~mask)
            subprocess.run(["rm", "-r", self.root / "runs"], check=True)

    def test_resumed_run_becomes_private(self):
        for options in ([], ["--resume", "--store-content"]):
            proxy = self.proxy(self.upstream(send_document), *options)
            proxy.ask()
            self.assertEqual(proxy.end(), 0)
        run = self.root / "runs/run"
        self.assertEqual({path.stat().st_mode & 0o777 for path in run.iterdir()}, {0o600})
        self.assertEqual(run.stat().st_mode & 0o777, 0o700)

    def test_unstreamed_answer_has_no_time_to_first_token(self):
        def answer(connection, _, headers, body):
            if b"false" in body:
                connection.sendall(response(document()))
            elif b"one" in body:  # whole answer in one event
                connection.sendall(STREAM_HEAD + chunk(event("a b", "stop", usage={
                    "prompt_tokens": 4, "completion_tokens": 3}) + DONE) + LAST_CHUNK)
            else:
                connection.sendall(STREAM_HEAD + chunk(event("a")))
                turn.wait(TIMEOUT_S)
                connection.sendall(chunk(event("b", "stop") + DONE) + LAST_CHUNK)

        turn = threading.Event()
        proxy = self.proxy(self.upstream(answer))
        for body in (b'{"stream":false}', b'{"stream":true,"user":"one"}'):
            proxy.ask(body=body)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(body=b'{"stream":true}'))
            while b"data:" not in stream.readline():  # the first chunk was forwarded
                pass
            turn.set()
            while stream.readline() != b"0\r\n":
                pass
        streamed, *others = (entry["time_to_first_token_s"] for entry in proxy.recent())
        self.assertGreater(streamed, 0)
        self.assertEqual(others, [None, None])
        self.assertIn("ipw_proxy_time_to_first_token_seconds_count 1\n", proxy.get("/ipw/metrics"))
        proxy.end()
        times = [r["model_metrics"]["mixed"]["latency_metrics"].get("time_to_first_token_seconds")
                 for r in proxy.records()]
        self.assertEqual((times[:2], times[2] > 0), ([None, None], True))

    def test_request_with_several_choices(self):
        """n > 1: token counts are of all choices, and the first choice is recorded."""
        def choice(index, content, finish=None):
            return event(content, finish).replace(b'"index": 0', b'"index": %d' % index)

        stream = (choice(0, "a") + choice(1, "x") + choice(0, "b") + choice(1, "y") + choice(0, None, "stop")
                  + choice(1, None, "length"))
        usage = b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4}}\n\n'
        whole = json.loads(document("ab", 5, 4))
        whole["choices"].append({"index": 1, "message": {"content": "xy"}, "finish_reason": "length"})

        def answer(connection, line, headers, body):
            if b"true" in body:
                connection.sendall(STREAM_HEAD + chunk(stream + usage + DONE) + LAST_CHUNK)
            else:
                connection.sendall(response(json.dumps(whole).encode()))

        proxy = self.proxy(self.upstream(answer), "--store-content")
        self.assertEqual(proxy.ask(body=b'{"n":2,"stream":true}')[2], stream + usage + DONE)
        proxy.ask(body=b'{"n":2}')
        proxy.end()
        for record in proxy.records():
            self.assertEqual((record["ipw"]["status"], record["ipw"]["finish_reason"]), ("completed", "stop"))
            self.assertEqual(record["model_metrics"]["mixed"]["token_metrics"], {"input": 5, "output": 4, "total": 9})
            self.assertEqual(record["model_answers"]["mixed"], "ab")

    def test_content_is_stored_on_request(self):
        proxy = self.proxy(self.upstream(lambda c, *_: c.sendall(response(document("It is 4.")))), "--store-content")
        proxy.ask(body=json.dumps({"messages": [{"role": "user", "content": "old"}, {"role": "assistant"},
                                                {"role": "user", "content": [{"type": "text", "text": "2+2?"}]}]})
                  .encode())
        proxy.end()
        record, = proxy.records()
        self.assertEqual((record["problem"], record["model_answers"]["mixed"]), ("2+2?", "It is 4."))

    def test_usage_is_requested_and_removed(self):
        kept = event("a", usage=None), event(None, "stop", usage=None)
        wanted = event("a") + event(None, "stop") + DONE
        usage = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1}}\n\n'
        whole = kept[0] + kept[1] + usage + DONE

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD)
            for at in range(0, len(whole), 7):  # no chunk is a whole event
                connection.sendall(chunk(whole[at:at + 7]))
            connection.sendall(LAST_CHUNK)

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream, "--inject-usage")
        sent = b'{"model":"m", "stream" : true ,"messages":[]}'
        self.assertEqual(proxy.ask(body=sent)[2], wanted)
        self.assertEqual(json.loads(upstream.requests[0][2]),
                         {**json.loads(sent), "stream_options": {"include_usage": True}})
        own = b'{"stream":true,"stream_options":{"include_usage":true}}'
        self.assertEqual(proxy.ask(body=own)[2], whole, "usage was requested by the client")
        self.assertEqual(upstream.requests[1][2], own)
        proxy.end()
        self.assertEqual([r["model_metrics"]["mixed"]["token_metrics"]["input"] for r in proxy.records()], [4, 4])

    def test_metrics_add_up(self):
        proxy = self.proxy(self.upstream(send_document))
        for model in ("a", "a", 'b"\\'):
            proxy.ask(body=json.dumps({"model": model}).encode())
        until(lambda: "ipw_proxy_settled_requests_total 3" in proxy.get("/ipw/metrics"))
        text = proxy.get("/ipw/metrics")
        self.assertIn('ipw_proxy_requests_total{model="a",outcome="completed"} 2', text)
        self.assertIn('ipw_proxy_generation_tokens_total{model="a"} 6', text)
        self.assertIn("ipw_proxy_request_duration_seconds_count 3", text)
        self.assertIn('ipw_proxy_request_duration_seconds_bucket{le="+Inf"} 3', text)
        self.assertIn("ipw_proxy_requests_in_flight 0", text)
        self.assertIn("# TYPE ipw_proxy_request_duration_seconds histogram\n", text)
        buckets = [int(count) for count in re.findall(r'duration_seconds_bucket\{le="[^"]+"\} (\d+)', text)]
        self.assertEqual((len(buckets), buckets, buckets[-1]), (21, sorted(buckets), 3), "cumulative")
        for line in text.splitlines():
            self.assertRegex(line, r'^(# (HELP|TYPE) \S+ .+|\w+(\{.*\})? [0-9.e+-]+)$')


class Governing(ProxyTest):
    def test_govern_reads_latency_of_proxy(self):
        """The upstream server has no metrics; those of the proxy are enough to govern its GPU."""
        def answer(connection, *_):
            connection.sendall(STREAM_HEAD)
            for _ in range(8):
                time.sleep(0.02)
                connection.sendall(chunk(event("a")))
            connection.sendall(chunk(event(None, "stop") + DONE) + LAST_CHUNK)

        machine, log = self.machine(ControllableGpu), self.root / "log.jsonl"
        proxy = self.proxy(self.upstream(answer))
        govern = subprocess.Popen([IPW, "govern", "--dry-run", "--slo-itl-ms", "1000", "--slo-ttft-ms", "1000",
                                   "--metrics-url", f"{proxy.url}/ipw/metrics", "--interval", "0.3", "--log", str(log)],
                                  env=machine.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(govern.stderr.close)
        self.addCleanup(govern.kill)
        govern.stderr.readline()  # after its first reading

        def readings():
            for _ in range(5):
                proxy.ask(body=b'{"stream":true}')
            lines = (log.read_text() if log.exists() else "").splitlines()
            return [step for step in map(json.loads, filter(lambda line: line.endswith("}"), lines))
                    if step["itl_ms"] and step["ttft_ms"]]

        step = until(readings)[0]
        self.assertGreaterEqual(step["itl_ms"], 20)
        self.assertGreaterEqual(step["ttft_ms"], 20)


class Persistence(ProxyTest):
    """Records are kept exactly once, however the proxy ends, with bounded memory."""

    def lines(self, name="records"):
        return list(map(json.loads, (self.root / f"runs/run/{name}.jsonl").read_text().splitlines()))

    def recorded(self):
        return len(re.findall(rb'^\{"kind":"query".*\}$', (self.root / "runs/run/records.jsonl").read_bytes(), re.M))

    def killed(self, upstream, *options):
        """A proxy that was killed with three requests recorded and a fourth in flight."""
        proxy = self.proxy(upstream, *options)
        for _ in range(3):
            proxy.ask()
        with proxy.connect() as connection:
            connection.sendall(request(CHAT, b'{"wait":1}'))
            until(lambda: len(upstream.requests) == 4 and self.recorded() == 3)
            proxy.process.kill()
            proxy.process.communicate()
        return proxy

    def test_killed_run_is_continued(self):
        def answer(connection, line, headers, body):
            if len(upstream.requests) == 2:
                connection.sendall(response(b"{}", "503 Service Unavailable"))
            elif b"wait" in body:
                connection.recv(1)
                return False
            else:
                send_document(connection)

        upstream = self.upstream(answer)
        self.killed(upstream)
        # It may have been killed within a line.
        with (self.root / "runs/run/records.jsonl").open("a") as records:
            records.write('{"kind":"query","key":"q00')
        done = ipw(None, "proxy", "--upstream", upstream.url, "--listen", "127.0.0.1:0", "--idle", "0", "--output-dir",
                   self.root / "runs", "--name", "run")
        self.assertEqual((done.returncode, "--resume" in done.stderr), (2, True), done.stderr)
        for keys in (["q000003", "q000004"], ["q000005", "q000006"]):  # after a kill, and after a normal end
            proxy = self.proxy(upstream, "--resume")
            for key in keys:
                proxy.ask()
            self.assertEqual([entry["id"] for entry in proxy.recent()], [int(key[1:]) for key in reversed(keys)])
            self.assertEqual(proxy.end(), 0)
        records = proxy.records()
        self.assertEqual([r["key"] for r in records], [f"q{i:06}" for i in range(7)])
        self.assertEqual([r["ipw"]["status"] for r in records].count("failed"), 1)
        self.assertEqual([span["key"] for span in self.lines("spans")], [r["key"] for r in records])
        energies = [line["key"] for line in self.lines() if line["kind"] == "energy"]
        self.assertEqual(sorted(energies), [r["key"] for r in records], "one energy line per request")
        summary = json.loads((self.root / "runs/run/summary.json").read_text())
        self.assertEqual((summary["total_queries"], summary["ipw"]["completed"], summary["ipw"]["failed"],
                          summary["ipw"]["starts"]), (7, 6, 1, 3))
        self.assertEqual(len(ipw(None, "export", self.root / "runs/run", "--to", "jsonl", "-o", "-").stdout
                             .splitlines()), 7)

    def test_recorder_keeps_up_on_a_busy_processor(self):
        """A kill loses only the last requests, also of a resumed run: the recorder gets its share of the CPU time."""
        upstream = self.upstream(send_document)
        cpu = min(os.sched_getaffinity(0))
        count, lost = 1000, []
        for i in range(2):
            proxy = self.proxy(upstream, *(["--resume"] if i else []))
            tasks = Path(f"/proc/{proxy.process.pid}/task")
            recorder, = until(lambda: [int(task.name) for task in tasks.iterdir()
                                       if (task / "comm").read_text() == "ipw-record\n"])
            self.assertEqual(os.getpriority(os.PRIO_PROCESS, recorder), os.getpriority(os.PRIO_PROCESS, 0))
            for task in tasks.iterdir():
                os.sched_setaffinity(int(task.name), {cpu})
            busy = [subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\n"
                                      "while os.getppid() > 1: pass"]) for _ in range(2)]
            before = self.recorded()

            def ask():
                with proxy.connect() as connection, connection.makefile("rb") as stream:
                    for _ in range(count // 4):
                        connection.sendall(request())
                        read_message(stream)

            clients = [threading.Thread(target=ask) for _ in range(4)]
            try:
                for client in clients:
                    client.start()
                for client in clients:
                    client.join()
                proxy.process.kill()
                proxy.process.communicate()
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
            lost.append(count - (self.recorded() - before))
        self.assertLess(min(lost), 20, lost)

    def test_latest_run_is_continued_without_name(self):
        runs = self.root / "runs"

        def start(*options):
            process = subprocess.Popen([IPW, "proxy", "--upstream", self.upstream(send_document).url, "--listen", "127.0.0.1:0",
                                        "--idle", "0", "--output-dir", str(runs), *options],
                                       stderr=subprocess.PIPE, text=True)
            while "listening" not in (line := process.stderr.readline()):
                self.assertTrue(line)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=TIMEOUT_S)
            return {path.name for path in runs.iterdir() if path.name.startswith("proxy_")}

        first, = start("--resume")  # no run yet: a new one
        old = re.sub(r"\d{8}T\d{6}Z$", "20200101T000000Z", first)
        (runs / first).rename(runs / old)
        self.assertEqual(start("--resume"), {old})
        new, = start() - {old}
        self.assertEqual(start("--resume"), {old, new})
        self.assertEqual([json.loads((runs / name / "summary.json").read_text())["ipw"]["starts"] for name in (old, new)],
                         [2, 2])
        self.assertEqual(start("--resume", "--model", "other") - {old, new} != set(), True, "another model continued the run")

    def test_unrecorded_requests_are_counted(self):
        """The recorder thread is blocked, here by a debugger: streams continue, and memory is bounded."""
        proxy = self.proxy(self.upstream(send_document), "--store-content")
        tasks = Path(f"/proc/{proxy.process.pid}/task")

        def recorders():  # a thread has its name once it runs
            return [int(task.name) for task in tasks.iterdir() if (task / "comm").read_text() == "ipw-record\n"]

        until(recorders)
        recorder, = recorders()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(PTRACE_ATTACH, recorder, None, None):
            self.skipTest("ptrace is not permitted")
        os.waitpid(recorder, WALL)
        body = json.dumps({"messages": [{"role": "user", "content": "x" * (1 << 20)}]}).encode()
        for _ in range(80):
            self.assertEqual(proxy.ask(body=body)[0], "HTTP/1.1 200 OK")
        counted = re.search(r"^ipw_proxy_unrecorded_requests_total (\d+)$", proxy.get("/ipw/metrics"), re.M)
        dropped = int(counted[1])
        self.assertTrue(10 < dropped < 30, dropped)  # the queue is at most 64 MiB
        libc.ptrace(PTRACE_DETACH, recorder, None, None)
        until(lambda: self.recorded() == 80 - dropped)
        proxy.ask()
        self.assertEqual(proxy.end(), 0)
        self.assertEqual(len(proxy.records()), 81 - dropped)
        self.assertIn(f"{dropped} requests were not recorded", proxy.stderr)
        own = json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]
        self.assertEqual(own["unrecorded_requests"], dropped)
        again = self.proxy(self.upstream(send_document), "--resume")
        again.end()
        own = json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]
        self.assertEqual(own["unrecorded_requests"], dropped, "including earlier starts")


class Energy(ProxyTest):
    def test_energy_adds_up_and_other_commands_read_the_run(self):
        def answer(connection, *_):
            time.sleep(0.3)
            connection.sendall(response(document()))

        proxy = self.proxy(self.upstream(answer), "--json", machine=self.machine(Intel, 40))
        askers = [threading.Thread(target=proxy.ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join()
        self.assertEqual(proxy.end(), 0)
        report = json.loads(proxy.stdout)
        energies = [e["joules"] for e in proxy.energies().values()]
        self.assertEqual(len(energies), 3)
        self.assertAlmostEqual(sum(energies) / report["joules"]["queries"], 1, delta=1e-3)
        self.assertLess(report["conservation_error"], 1e-3)
        self.assertGreater(sum(energies), 40 * 0.3 * 0.9)
        self.assertEqual((report["completed"], report["failed"]), (3, 0))
        run = self.root / "runs/run"
        self.assertEqual(json.loads((run / "summary.json").read_text())["run_kind"], "proxy")
        for words in (["analyze", run], ["export", run, "--to", "jsonl", "-o", "-"], ["compare", run, run],
                      ["list", "runs", self.root / "runs"]):
            done = ipw(None, *words)
            self.assertEqual(done.returncode, 0, (words, done.stderr))
        self.assertIn("proxy", done.stdout)

    def share_beside(self, path, head, *options):
        """The share of the power that a recorded request gets while one to `path` is in flight."""
        both = threading.Barrier(2)

        def answer(connection, line, *_):
            both.wait(TIMEOUT_S)
            is_chat = CHAT in line
            if not is_chat:
                connection.sendall(head)
            time.sleep(0.8 if is_chat else 1)
            connection.sendall(response(document()) if is_chat else chunk(b"data: {}\n\n") + LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer), "--overwrite", *options, machine=self.machine(Intel, 40))
        other = threading.Thread(target=proxy.ask, args=(path,))
        other.start()
        proxy.ask()
        other.join()
        metrics = proxy.get("/ipw/metrics")
        self.assertEqual(proxy.end(), 0)
        self.summary = json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]
        self.assertLess(self.summary["conservation_error"], 1e-3)
        counted = re.search(r"^ipw_proxy_unrecorded_inference_requests_total (\d+)$", metrics, re.M)
        self.assertEqual(int(counted[1]), self.summary["unrecorded_inference"]["requests"])
        record, = proxy.records()
        energy, = proxy.energies().values()
        self.stderr = proxy.stderr
        return energy["joules"] / 40 / record["model_metrics"]["mixed"]["latency_metrics"]["total_query_seconds"]

    def test_unknown_inference_takes_its_share(self):
        plain = STREAM_HEAD.replace(b"text/event-stream", b"audio/wav")
        for kind, head in (("a stream", STREAM_HEAD), ("100 ms or more", plain)):
            with self.subTest(kind):
                self.assertAlmostEqual(self.share_beside("/v1/audio/speech", head), 0.5, delta=0.15)
                unrecorded = self.summary["unrecorded_inference"]
                self.assertEqual((unrecorded["requests"], unrecorded["path"]), (1, "/v1/audio/speech"))
                self.assertGreater(unrecorded["joules"], 10)
                self.assertLessEqual(unrecorded["joules"], self.summary["joules"]["unattributed"])
        words = r"1 inference request was not recorded, with \d\d % of the requests' energy"
        self.assertRegex(self.stderr, "warning: " + words + r": unknown endpoint POST /v1/audio/speech \[unrecorded_inference\]\n")
        run = self.root / "runs/run"
        self.assertRegex(" ".join(ipw(None, "analyze", run).stdout.split()), words)
        page = self.root / "report.html"
        self.assertEqual(ipw(None, "report", run, "-o", page).returncode, 0)
        self.assertRegex(page.read_text(), words)

    def test_other_requests_take_no_share(self):
        for path, options in (("/tokenize", ()), ("/v1/messages/count_tokens", ()), ("/api/pull", ()),
                              ("/jobs/run", ("--not-inference", "/x", "--not-inference", "/jobs/*"))):
            with self.subTest(path):
                self.assertGreater(self.share_beside(path, STREAM_HEAD, *options), 0.9)
                self.assertEqual(self.summary["unrecorded_inference"], {"requests": 0, "joules": 0, "path": None})

    def test_short_requests_to_unknown_paths_are_not_inference(self):
        proxy = self.proxy(self.upstream(lambda c, line, *_: c.sendall(
            response(b"{}", "404 Not Found") if "wrong" in line else response(b"{}"))), machine=self.machine(Intel, 40))
        proxy.ask("/v1/unknown")
        proxy.ask("/wrong")
        self.assertIn("ipw_proxy_other_requests_total 2\n", proxy.get("/ipw/metrics"))
        self.assertEqual(proxy.end(), 0)
        self.assertNotIn("not recorded", proxy.stderr)

    def test_energy_is_returned_to_clients(self):
        def answer(connection, _, headers, body):
            time.sleep(0.2)
            if b"true" in body:
                connection.sendall(STREAM_HEAD + chunk(event("a") + event(None, "stop") + DONE) + LAST_CHUNK)
            else:
                connection.sendall(response(document()))

        machine = self.machine(Intel, 50)
        proxy = self.proxy(self.upstream(answer), "--energy-header", machine=machine)
        _, headers, body = proxy.ask()
        self.assertEqual(body, document())
        joules = float(dict(headers)["x-ipw-energy-joules"])
        _, _, body = proxy.ask(body=b'{"stream":true}')
        stream, comment = body[:-len(body.split(DONE)[1])], body.split(DONE)[1].decode()
        self.assertEqual(stream, event("a") + event(None, "stop") + DONE)
        said = re.fullmatch(r": x-ipw-energy-joules (\S+) plus-minus (\S+) method (\w+)\n\n", comment)
        self.assertTrue(said, comment)
        self.assertEqual(said[3], "counter")
        proxy.end()
        energies = proxy.energies()
        self.assertAlmostEqual(joules, energies["q000000"]["joules"], delta=1e-4 * joules)
        self.assertAlmostEqual(float(said[1]), energies["q000001"]["joules"], delta=1e-4 * float(said[1]))

    def test_large_answers_are_not_held_for_their_energy(self):
        """They are forwarded as they arrive once they are longer than 4 MiB, whether their length is known or not."""
        block = b"x" * (1 << 20)
        for is_chunked in (False, True):
            with self.subTest(is_chunked=is_chunked):
                received = threading.Event()

                def answer(connection, *_):
                    head = response(b"", headers=[] if is_chunked else [("Content-Length", 6 << 20)], length=False)
                    if is_chunked:
                        head = head.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
                    connection.sendall(head)
                    for i in range(6):
                        if i == 5 and not received.wait(TIMEOUT_S):
                            return False
                        connection.sendall(chunk(block) if is_chunked else block)
                    connection.sendall(LAST_CHUNK if is_chunked else b"")

                proxy = self.proxy(self.upstream(answer), "--energy-header", "--overwrite", machine=self.machine(Intel, 50))
                with proxy.connect() as connection, connection.makefile("rb") as stream:
                    connection.sendall(request())
                    head = b"".join(iter(stream.readline, b"\r\n"))
                    received.set()
                    self.assertNotIn(b"x-ipw-energy", head.lower())
                    body = b""
                    while is_chunked and (size := int(stream.readline(), 16)):
                        body += stream.read(size)
                        stream.readline()
                    body += b"" if is_chunked else stream.read(6 << 20)
                self.assertEqual(body, block * 6)
                proxy.end()
                self.assertIsNotNone(proxy.energies()["q000000"]["joules"], "not recorded")

    def test_ollama_stream_with_energy_is_forwarded_as_it_arrives(self):
        turn = threading.Event()
        lines = [json.dumps({"message": {"content": "h"}, "done": False}).encode() + b"\n",
                 json.dumps({"message": {"content": "i"}, "done": True}).encode() + b"\n"]

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD.replace(b"text/event-stream", b"application/x-ndjson") + chunk(lines[0]))
            turn.wait(TIMEOUT_S)
            connection.sendall(chunk(lines[1]) + LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer), "--energy-header")
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.settimeout(10)
            connection.sendall(request("/api/chat", b'{"model":"m"}'))
            while stream.readline().strip():
                pass
            stream.readline()
            self.assertEqual(stream.readline(), lines[0])  # before the second is sent
            turn.set()
            self.assertEqual(stream.read(2), b"\r\n")
            stream.readline()
            self.assertEqual(stream.readline(), lines[1])
            self.assertEqual(stream.read(7), b"\r\n0\r\n\r\n", "unexpected data")


class IdlePower(ProxyTest):
    """The proxy listens at once, and measures idle power when there are no requests."""

    def answer(self, connection, *_):
        self.came.set()
        self.machine_now.set_power(60)
        self.go.wait(TIMEOUT_S)
        self.machine_now.set_power(40)
        send_document(connection)

    def start(self, *options):
        self.came, self.go = threading.Event(), threading.Event()
        self.machine_now = self.machine(Intel, 40)
        return self.proxy(self.upstream(self.answer), *options, machine=self.machine_now)

    def check_split(self, proxy, count):
        """All energies are split by the same baseline, whenever it was measured."""
        summary = json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]
        self.assertAlmostEqual(summary["conditions"]["idle_w"], 40, delta=2)
        self.assertLess(summary["conservation_error"], 1e-3)
        self.assertNotIn("baseline_refused", [f["code"] for f in summary["conditions"]["findings"]])
        energies = proxy.energies()
        self.assertEqual(len(energies), count)
        for energy in energies.values():
            self.assertAlmostEqual(energy["idle_joules"] + energy["active_joules"], energy["joules"],
                                   delta=1e-6 * energy["joules"])
            self.assertAlmostEqual(energy["idle_joules"] / energy["joules"], 40 / 60, delta=0.15)
            self.assertIsNone(energy["note"])
        return summary

    def test_requests_are_answered_before_idle_power_is_known(self):
        proxy = self.start("--idle", "1")
        self.go.set()
        asked = time.monotonic()
        self.assertEqual(proxy.ask()[0], "HTTP/1.1 200 OK")  # no connection is refused
        entry = until(lambda: [r for r in proxy.recent() if r["energy"]])[0]
        if time.monotonic() - asked < 0.9:  # idle power cannot be known yet
            self.assertIsNone(entry["energy"]["idle_joules"])
            self.assertEqual(entry["energy"]["note"], "idle power is not measured yet")

    def test_idle_power_is_measured_in_the_first_quiet_time(self):
        proxy = self.start("--idle", "0.6")
        for _ in range(2):  # each interrupts a measurement
            self.came.clear(), self.go.clear()
            asker = threading.Thread(target=proxy.ask)
            asker.start()
            self.came.wait(TIMEOUT_S)
            time.sleep(0.8)
            self.go.set()
            asker.join()
        until(lambda: all(r["energy"] and r["energy"]["idle_joules"] for r in proxy.recent()))
        metrics = proxy.get("/ipw/metrics")
        self.assertIn("ipw_proxy_settled_requests_total 2\n", metrics, "attributed again, not counted again")
        self.assertEqual(proxy.end(), 0)
        summary = self.check_split(proxy, 2)
        self.assertEqual(summary["energy_known"], 2)

    def test_idle_power_is_measured_at_the_end(self):
        proxy = self.start("--idle", "0.6")
        asker = threading.Thread(target=proxy.ask)
        asker.start()
        self.came.wait(TIMEOUT_S)
        time.sleep(0.8)
        proxy.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.go.set()
        asker.join()
        self.assertEqual(proxy.process.wait(TIMEOUT_S), 0)
        self.check_split(proxy, 1)

    def test_second_signal_skips_it(self):
        proxy = self.start("--idle", "100")
        asker = threading.Thread(target=proxy.ask)
        asker.start()
        self.came.wait(TIMEOUT_S)
        self.go.set()
        asker.join()
        proxy.process.send_signal(signal.SIGTERM)
        until(lambda: not Disconnection.listens(proxy))
        time.sleep(0.5)
        self.assertEqual(proxy.end(), 0)
        summary = json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]
        self.assertIn("baseline_refused", [f["code"] for f in summary["conditions"]["findings"]])
        energy, = proxy.energies().values()
        self.assertGreater(energy["joules"], 0)
        self.assertIsNone(energy["idle_joules"])


if __name__ == "__main__":
    main_parallel()
