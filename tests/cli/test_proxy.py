#!/usr/bin/env python3
"""ipw proxy between raw clients and a raw server: what passes, what is recorded, what is refused."""

import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel  # noqa: E402
from program import IPW, PATIENCE_S, MachineTest, ipw, main_side_by_side, while_it_moves  # noqa: E402
from proxies import (CHAT, DONE, LAST_CHUNK, STREAM_HEAD, Proxy, Upstream, chunk, document, event,  # noqa: E402
                     read_message, request, response)

# Any byte may occur in a body, and JSON may be written in any way.
ODD_JSON = b'{ "model" :\t"m\\u0041",\r\n"messages":[{"role":"user","content":"\xc3\xa9 \\ud83d\\ude00"}] ,"n":1.0e0}\n'


def until(condition):
    """Waits for it: for as long as it takes on a busy machine."""
    end = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return result


class ProxyTest(MachineTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def upstream(self, answer):
        upstream = Upstream(answer)
        self.addCleanup(upstream.close)
        return upstream

    def proxy(self, upstream, *options, **more):
        proxy = Proxy(getattr(upstream, "url", upstream), self.root, *options, **more)
        self.addCleanup(proxy.close)
        return proxy


def plain(connection, *_):
    connection.sendall(response(document(), headers=[("Content-Type", "application/json")]))


class Passing(ProxyTest):
    def test_request_and_response_pass_byte_for_byte(self):
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

    def test_a_stream_passes_as_it_arrives(self):
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
            while stream.readline().strip():  # the head comes before the first piece
                pass
            for piece in pieces:  # and every piece before the next is sent
                turn.release()
                got = b""
                while got != piece:
                    size = int(stream.readline(), 16)
                    got += stream.read(size)
                    stream.readline()
                    self.assertTrue(piece.startswith(got), (piece, got))
            self.assertEqual(stream.readline(), b"0\r\n")

    def test_compressed_bodies_pass_as_they_are(self):
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
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            for at in range(0, len(large), 100_000):
                connection.sendall(chunk(large[at:at + 100_000]))
            connection.sendall(LAST_CHUNK)
            self.assertEqual(read_message(stream)[2], back)
        self.assertEqual(upstream.requests[0][2], large)

    def test_connections_are_kept_on_both_sides(self):
        upstream = self.upstream(plain)
        proxy = self.proxy(upstream)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            for _ in range(5):
                connection.sendall(request())
                self.assertEqual(read_message(stream)[2], document())
        self.assertEqual((len(upstream.requests), upstream.connections), (5, 1))

    def test_other_paths_and_methods_pass(self):
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
        self.assertEqual(proxy.records(), [], "none of them is an inference")

    def test_the_path_of_the_upstream_precedes_that_of_requests_once(self):
        upstream = self.upstream(plain)
        proxy = self.proxy(upstream.url + "/openai/v1/")
        for path in ("/chat/completions", "/openai/v1/chat/completions"):
            proxy.ask(path)
        self.assertEqual({line for line, _, _ in upstream.requests},
                         {"POST /openai/v1/chat/completions HTTP/1.1"})


if __name__ == "__main__":
    main_side_by_side()
