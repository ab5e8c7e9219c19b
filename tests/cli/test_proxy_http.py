#!/usr/bin/env python3
# test: real time, asan
"""ipw proxy and HTTP edge cases: TLS to the upstream server, old and odd clients, invalid framing."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import TIMEOUT_S, main_parallel  # noqa: E402
from proxies import (CHAT, DONE, LAST_CHUNK, STREAM_HEAD, ProxyTest, chunk, document, event, send_document,  # noqa: E402
                     read_message, request, response)


class Certificates:
    """A test CA and its server certificate for localhost."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.authority = self.make("ca", "/CN=a CA of this test", "-addext", "basicConstraints=critical,CA:TRUE",
                                   "-addext", "keyUsage=keyCertSign")
        self.server = self.make("server", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                                "-CA", self.authority, "-CAkey", self.folder / "ca.key")
        self.elsewhere = self.make("elsewhere", "/CN=example.org", "-addext", "subjectAltName=DNS:example.org",
                                   "-CA", self.authority, "-CAkey", self.folder / "ca.key")

    def make(self, name, subject, *more):
        path = self.folder / f"{name}.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", subject, "-keyout", self.folder / f"{name}.key", "-out", path, *more],
                       check=True, capture_output=True)
        return path

    def context(self, name="server"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        return context


@unittest.skipUnless(shutil.which("openssl"), "openssl, which makes certificates, is not installed")
class Tls(ProxyTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.certificates = Certificates(folder.name)
        cls.trust = {"CURL_CA_BUNDLE": str(cls.certificates.authority)}

    def test_requests_and_streams_over_tls(self):
        def answer(connection, line, headers, body):
            if b"true" in body:
                connection.sendall(STREAM_HEAD + b"".join(chunk(event(word)) for word in "abc")
                                   + chunk(event(None, "stop") + DONE) + LAST_CHUNK)
            else:
                send_document(connection)

        upstream = self.upstream(answer, self.certificates.context())
        proxy = self.proxy(upstream, env=self.trust)
        large = b'{"messages":"' + b"x" * 1_000_000 + b'"}'
        self.assertEqual(proxy.ask(body=large)[2], document())
        self.assertEqual(proxy.ask(body=b'{"stream":true}')[2],
                         b"".join(map(event, "abc")) + event(None, "stop") + DONE)
        self.assertEqual(proxy.ask("/v1/models", b"", "GET")[0], "HTTP/1.1 200 OK")
        self.assertEqual([body for _, _, body in upstream.requests], [large, b'{"stream":true}', b""])
        self.assertEqual(upstream.connections, 1, "kept")
        proxy.end()
        self.assertEqual([r["ipw"]["status"] for r in proxy.records()], ["completed"] * 2)
        self.assertEqual(proxy.records()[0]["model_metrics"]["mixed"]["token_metrics"]["input"], 7)

    def test_untrusted_certificate_is_502(self):
        for name, environment, words in (("server", {}, "certificate"), ("elsewhere", self.trust, "localhost"),
                                         ("server", {"CURL_CA_BUNDLE": "/nonexistent.pem"}, "/nonexistent.pem")):
            with self.subTest(name, environment=environment):
                upstream = self.upstream(send_document, self.certificates.context(name))
                proxy = self.proxy(upstream, "--overwrite", env=environment)
                line, _, body = proxy.ask(headers=[("Authorization", "Bearer sk-for-nobody-else")])
                self.assertEqual(line, "HTTP/1.1 502 Bad Gateway")
                self.assertIn(words, json.loads(body)["error"]["message"])
                self.assertEqual(upstream.requests, [], "request sent to untrusted server")
                proxy.end()
                record, = proxy.records()
                self.assertEqual(record["ipw"]["status"], "failed")
                self.assertIn(words, record["ipw"]["error"])

    def test_untrusted_certificate_message_has_fix(self):
        upstream = self.upstream(send_document, self.certificates.context())
        message = json.loads(self.proxy(upstream).ask()[2])["error"]["message"]
        self.assertIn("is not trusted", message)
        self.assertIn("CURL_CA_BUNDLE", message)

    def test_server_without_tls_is_502(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream.url.replace("http:", "https:"))
        self.assertEqual(proxy.ask()[0], "HTTP/1.1 502 Bad Gateway")

    def test_truncated_stream_stays_truncated(self):
        def answer(connection, *_):
            connection.sendall(STREAM_HEAD + chunk(event("a")))
            return False

        proxy = self.proxy(self.upstream(answer, self.certificates.context()), env=self.trust)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(CHAT, b'{"stream":true}'))
            while stream.readline().strip():
                pass
            self.assertEqual(stream.read(), chunk(event("a")), "final chunk was sent")

    def test_sent_request_is_not_retried(self):
        """Nor by libcurl, which would retry on a reused connection."""
        def answer(connection, *_):
            if len(upstream.requests) in (2, 5):
                return False
            send_document(connection)

        upstream = self.upstream(answer, self.certificates.context())
        proxy = self.proxy(upstream, env=self.trust)
        self.assertEqual([proxy.ask()[0].split()[1] for _ in range(4)], ["200", "502", "200", "200"])
        self.assertEqual(len(upstream.requests), 4)
        self.assertEqual(proxy.ask("/v1/models", b"", "GET")[0], "HTTP/1.1 200 OK", "idempotent request not retried")
        self.assertEqual(len(upstream.requests), 6)

    def test_client_disconnect_cancels_request(self):
        gone = threading.Event()

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD + chunk(event("a")))
            try:
                if connection.recv(1) == b"":
                    gone.set()
            except OSError:
                gone.set()
            return False

        proxy = self.proxy(self.upstream(answer, self.certificates.context()), env=self.trust)
        with proxy.connect() as connection:
            connection.sendall(request(CHAT, b'{"stream":true}'))
            connection.recv(1000)
        self.assertTrue(gone.wait(TIMEOUT_S))


class Clients(ProxyTest):
    """The expected behavior is that of nginx for the same bytes."""

    def send_raw(self, proxy, head, *more):
        """Sends a head and body; returns everything up to the end of the connection."""
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall("\r\n".join([*head, "", ""]).encode() + b"".join(more))
            return stream.read()

    def test_http_1_0_client(self):
        """No chunked encoding; the end of the connection ends a stream."""
        def answer(connection, line, *_):
            if "chat" in line:
                connection.sendall(STREAM_HEAD + chunk(event("a")) + chunk(DONE) + LAST_CHUNK)
            else:
                send_document(connection)

        proxy = self.proxy(self.upstream(answer))
        head, body = self.send_raw(proxy, [f"POST {CHAT} HTTP/1.0", "Content-Length: 2"], b"{}").split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        self.assertEqual(body, event("a") + DONE)
        head, body = self.send_raw(proxy, ["GET /v1/models HTTP/1.0"]).split(b"\r\n\r\n", 1)
        self.assertEqual(body, document())
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            for _ in range(2):
                connection.sendall(b"GET /v1/models HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                _, headers, body = read_message(stream)
                self.assertEqual((dict(headers)["connection"].lower(), body), ("keep-alive", document()))

    def test_connection_close_is_respected(self):
        def answer(connection, line, *_):
            connection.sendall(STREAM_HEAD + chunk(DONE) + LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer))
        said = self.send_raw(proxy, [f"POST {CHAT} HTTP/1.1", "Host: localhost", "Connection: close", "Content-Length: 2"], b"{}")
        self.assertTrue(said.endswith(chunk(DONE).upper().replace(b"DATA", b"data") + LAST_CHUNK), said)

    def test_expect_100_continue(self):
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                               "Content-Length: 2\r\n\r\n".encode())
            self.assertEqual((stream.readline(), stream.readline()), (b"HTTP/1.1 100 Continue\r\n", b"\r\n"))
            connection.sendall(b"{}")
            self.assertEqual(read_message(stream)[2], document())
        self.assertEqual(upstream.requests[0][2], b"{}")
        self.assertNotIn("expect", dict(upstream.requests[0][1]))

    def test_rejects_body_of_ambiguous_length(self):
        """Immediately, with the connection closed: the rest could be read as another request."""
        upstream = self.upstream(send_document)
        proxy = self.proxy(upstream)
        chunked = chunk(b"{}") + LAST_CHUNK
        for lines, body, status in ((["Content-Length: 2", "Content-Length: 3"], b"{}}", 400),
                                    (["Content-Length: 7", "Transfer-Encoding: chunked"], chunked, 400),
                                    (["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], chunked, 400),
                                    (["Transfer-Encoding: gzip, chunked"], chunked, 501),
                                    (["Transfer-Encoding: xchunked"], chunked, 501),
                                    (["Content-Length: -2"], b"", 400)):
            with self.subTest(lines):
                said = self.send_raw(proxy, [f"POST {CHAT} HTTP/1.1", "Host: localhost", *lines], body)
                self.assertIn(b"HTTP/1.1 %d " % status, said[:13])
        self.assertEqual(upstream.requests, [])

    def test_all_connection_headers_are_respected(self):
        """Each may list headers that are for this connection only."""
        def answer(connection, *_):
            connection.sendall(response(b"{}", headers=[("Connection", "keep-alive"), ("Connection", "x-one , X-Two"),
                                                        ("X-One", "1"), ("x-two", "2"), ("X-Three", "3")]))

        upstream = self.upstream(answer)
        _, headers, _ = self.proxy(upstream).ask(headers=[("X-Four", "4"), ("Connection", "keep-alive"),
                                                          ("connection", "X-Five, X-Four"), ("X-Five", "5"), ("X-Six", "6")])
        self.assertEqual([name for name, _ in headers if name.startswith("x-")], ["x-three"])
        self.assertEqual([name for name, _ in upstream.requests[0][1] if name.startswith("x-")], ["x-six"])

    def test_methods_without_body_and_trace(self):
        def answer(connection, line, *_):
            if line.startswith("HEAD"):
                connection.sendall(response(b"", headers=[("Content-Length", "1234")], length=False))
            else:
                connection.sendall(response(b"", "204 No Content", [("Access-Control-Allow-Origin", "*")], False))

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream, env={"IPW_API_KEY": "sk-upstream-7"})
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            for line, field in (("HEAD /v1/models", b"content-length: 1234"),
                                ("OPTIONS " + CHAT, b"access-control-allow-origin: *"),
                                ("HEAD /v1/models", b"content-length: 1234")):
                connection.sendall(f"{line} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                # nothing else, or the next response would not start here
                head = b"".join(iter(stream.readline, b"\r\n"))
                self.assertIn(field, head.lower())
                self.assertRegex(head, b"^HTTP/1.1 20")
        self.assertIn(" 405 ", proxy.ask(CHAT, b"", "TRACE")[0])
        self.assertEqual([line.split()[0] for line, _, _ in upstream.requests], ["HEAD", "OPTIONS", "HEAD"])

    def test_pipelined_requests(self):
        upstream = self.upstream(lambda c, line, *_: c.sendall(response(line.encode())))
        proxy = self.proxy(upstream)
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(b"".join(request(f"/v1/models?{i}", b"{}") for i in range(20)))
            for i in range(20):
                self.assertEqual(read_message(stream)[2], b"POST /v1/models?%d HTTP/1.1" % i)

    def test_ipv6_address(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        proxy = self.proxy(self.upstream(send_document), "--listen", "[::1]:0")
        self.assertIn("listening on http://[::1]:", proxy.stderr)
        with socket.create_connection(("::1", proxy.port)) as connection, connection.makefile("rb") as stream:
            connection.sendall(request())
            self.assertEqual(read_message(stream)[2], document())

    def test_long_events_are_forwarded_without_buffering(self):
        """With --inject-usage they are not buffered, and the time is linear in their length."""
        long = event("x" * 12_000_000)
        usage = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1}}\n\n'

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD + chunk(event("a")) + chunk(long[:6_000_000]))
            if not half.wait(TIMEOUT_S):
                return False
            connection.sendall(chunk(long[6_000_000:] + event(None, "stop") + usage + DONE) + LAST_CHUNK)

        half = threading.Event()
        proxy = self.proxy(self.upstream(answer), "--inject-usage")
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(CHAT, b'{"stream":true}'))
            while stream.readline().strip():
                pass
            got = bytearray()
            while (size := int(stream.readline(), 16)):
                got += stream.read(size)
                stream.readline()
                if len(got) > 5_900_000:
                    half.set()
        self.assertEqual(bytes(got), event("a") + long + event(None, "stop") + DONE)
        proxy.end()
        self.assertEqual(proxy.records()[0]["model_metrics"]["mixed"]["token_metrics"]["input"], 4)

    def test_compressed_stream_is_forwarded_as_it_arrives(self):
        packer = zlib.compressobj(wbits=31)
        pieces = [packer.compress(event(word)) + packer.flush(zlib.Z_SYNC_FLUSH) for word in "ab"] + [packer.flush()]
        turn = threading.Semaphore(0)

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
            for piece in pieces:
                turn.acquire()
                connection.sendall(chunk(piece))
            connection.sendall(LAST_CHUNK)

        proxy = self.proxy(self.upstream(answer))
        with proxy.connect() as connection, connection.makefile("rb") as stream:
            connection.sendall(request(CHAT, b'{"stream":true}', headers=[("Accept-Encoding", "gzip")]))
            while stream.readline().strip():
                pass
            for piece in pieces:
                turn.release()
                self.assertEqual(stream.read(int(stream.readline(), 16)), piece)
                stream.readline()
            self.assertEqual(stream.readline(), b"0\r\n")

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_curl_output_is_unchanged(self):
        """curl prints the same with and without the proxy."""
        def answer(connection, line, headers, body):
            if "stream" in line:
                connection.sendall(STREAM_HEAD + b"".join(chunk(event(word)) for word in "abc") + LAST_CHUNK)
            elif "cut" in line:
                connection.sendall(STREAM_HEAD + chunk(event("a")))
                return False
            else:
                connection.sendall(response(b"%d" % len(body), headers=[("X-A", "b")]))

        upstream = self.upstream(answer)
        proxy = self.proxy(upstream)
        body = self.root / "body"
        body.write_bytes(b"x" * 3_000_000)
        for words in (["/v1/stream"], ["--http1.0", "/v1/stream"], ["-d", f"@{body}", "/v1/whole"],
                      ["-T", str(body), "/v1/whole"], ["-T", ".", "/v1/whole"], ["-I", "/v1/models"],
                      ["-H", "Transfer-Encoding: chunked", "-d", "{}", "/v1/whole"], ["-d", "{}", "/v1/cut"],
                      ["--compressed", "-X", "OPTIONS", "/v1/whole"]):
            with self.subTest(words):
                shown = [subprocess.run(["curl", "-sSN", "-o", "-", *words[:-1], url + words[-1]], input=b"abc",
                                        capture_output=True, timeout=TIMEOUT_S) for url in (upstream.url, proxy.url)]
                self.assertEqual(*((done.returncode, sorted(done.stdout.splitlines())) for done in shown))


if __name__ == "__main__":
    main_parallel()
