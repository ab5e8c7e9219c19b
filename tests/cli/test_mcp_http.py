#!/usr/bin/env python3
# test: real time, asan
"""`ipw agent --mcp URL` with a server that expires sessions, streams, asks, redirects, hangs, breaks off and sends too
much.  tests/e2e/test_agent.py has real servers."""

import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import IPW, TIMEOUT_S, MachineTest, ipw, main_parallel  # noqa: E402

TOKEN = "mcp-0123456789abcdef"
TOO_LONG = 16 << 20


def result(message, value):
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def text_of(message, text):
    return result(message, {"content": [{"type": "text", "text": text}]})


class Server(http.server.ThreadingHTTPServer):
    """Answers in JSON; `on` replaces the answer to a method by a function of the handler and the message, which may
    return the answer or send something else and return None."""
    daemon_threads, block_on_close = True, False

    def __init__(self, **on):
        super().__init__(("127.0.0.1", 0), Handler)
        self.on = {name.replace("_", "/"): answer for name, answer in on.items()}
        self.seen, self.replies, self.sessions = [], [], 0
        self.released = threading.Event()
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, *_):
        pass  # a client that is killed, or that leaves a stream, resets its connection

    def url(self, host="127.0.0.1"):
        return f"http://{host}:{self.server_port}/mcp"

    def methods(self):
        return [name for name, _ in self.seen]

    def headers_of(self, name):
        return [headers for seen, headers in self.seen if seen == name]

    def answer(self, message):
        method = message["method"]
        if method == "initialize":
            self.sessions += 1
            return result(message, {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}},
                                    "serverInfo": {"name": "stub", "version": "1"}})
        if method == "tools/list":
            return result(message, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        return text_of(message, json.dumps(message["params"]["arguments"]))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, value, **headers):
        self.reply(200, json.dumps(value).encode(), Content_Type="application/json; charset=utf-8", **headers)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, value):
        self.wfile.write(f"event: message\nid: 1\ndata: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()

    def hang(self):
        self.server.released.wait()

    def do_DELETE(self):
        self.server.seen.append(("DELETE", self.headers))
        self.reply(200)

    do_GET = do_DELETE

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "method" not in message:
            self.server.replies.append(message)
            self.reply(202)
            return
        self.server.seen.append((message["method"], self.headers))
        made = self.server.on.get(message["method"])
        answer = made(self, message) if made else self.server.answer(message) if "id" in message else None
        if answer is not None:
            session = {"Mcp_Session_Id": f"session-{self.server.sessions}"} if message["method"] == "initialize" else {}
            self.reply_json(answer, **session)
        elif not made:
            self.reply(202)


class HttpTest(MachineTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "questions.jsonl").write_text('{"problem": "p", "answer": "done"}\n')

    def server(self, **on):
        server = Server(**on)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.released.set)
        return server

    def command(self, *options):
        return ["agent", "--client", "null", "--model", "m", "--dataset", self.folder / "questions.jsonl",
                "--client-param", f"script={self.folder / 'script.jsonl'}", "--idle", "0", "--warmup-queries", "0",
                "--output-dir", self.folder / "runs", "--name", "run", "--overwrite", "-q", "--tools", "none", *options]

    def agent(self, url, *options, code=0, calls=1, tool="echo", **env):
        """Calls the tool in so many turns; returns the errors of the calls."""
        turn = {"content": "", "tool_calls": [
            {"type": "function", "function": {"name": tool, "arguments": json.dumps({"text": "hello"})}}]}
        (self.folder / "script.jsonl").write_text((json.dumps(turn) + "\n") * calls + '{"content": "done"}\n')
        done = ipw(None, *self.command("--mcp", url, *options), env=env)
        self.stderr = done.stderr
        self.assertEqual(done.returncode, code, done.stderr)
        if code:
            return []
        trace = json.loads((self.folder / "runs/run/traces.jsonl").read_text())
        errors = [span.get("error") for span in trace["ipw"]["spans"] if span["type"] == "tool_call"]
        self.assertEqual(len(errors), calls)
        return errors


class Sessions(HttpTest):
    def test_session_is_initialized_used_and_ended(self):
        server = self.server()
        self.assertEqual(self.agent(server.url(), calls=2), [None, None])
        self.assertEqual(server.methods(), ["initialize", "notifications/initialized", "tools/list", "tools/call",
                                            "tools/call", "DELETE"])
        first, *others = [headers for _, headers in server.seen]
        self.assertEqual((first["Mcp-Session-Id"], first["MCP-Protocol-Version"]), (None, None))
        for headers in others:
            self.assertEqual((headers["Mcp-Session-Id"], headers["MCP-Protocol-Version"]), ("session-1", "2025-03-26"))
        self.assertEqual(first["Accept"], "application/json, text/event-stream")
        self.assertEqual(first["Content-Type"], "application/json")

    def test_expired_session_is_renewed_once(self):
        expired = []

        def expire(handler, message):
            if handler.headers["Mcp-Session-Id"] == "session-1":
                expired.append(handler.reply(404))
                return None
            return handler.server.answer(message)
        server = self.server(tools_call=expire)
        self.assertEqual(self.agent(server.url(), calls=2), [None, None])
        self.assertEqual((server.sessions, len(expired)), (2, 1))
        server = self.server(tools_call=lambda handler, _: handler.reply(404))
        [error] = self.agent(server.url())
        self.assertIn("HTTP status 404", error)
        self.assertEqual((server.sessions, server.methods().count("tools/call")), (2, 2))

    def test_server_without_sessions(self):
        server = self.server(initialize=lambda handler, message: handler.reply_json(handler.server.answer(message)))
        self.assertEqual(self.agent(server.url()), [None])
        self.assertNotIn("DELETE", server.methods())
        self.assertIsNone(server.headers_of("tools/call")[0]["Mcp-Session-Id"])

    def test_prefix_is_added(self):
        self.assertEqual(self.agent(f"s={self.server().url()}", tool="s_echo"), [None])

    def test_workspace_needs_command(self):
        self.agent(self.server().url() + "/{workspace}", code=2)
        self.assertIn("{workspace} needs a command", self.stderr)


class Tokens(HttpTest):
    def guarded(self):
        def check(handler, message):
            if handler.headers["Authorization"] == f"Bearer {TOKEN}":
                return handler.server.answer(message)
            handler.reply(401, f"not {handler.headers['Authorization']}".encode())
            return None
        return self.server(initialize=check)

    def test_token_is_sent(self):
        server = self.guarded()
        self.assertEqual(self.agent(server.url(), IPW_MCP_TOKEN=TOKEN + "\n"), [None])
        self.assertEqual({headers["Authorization"] for _, headers in server.seen}, {f"Bearer {TOKEN}"})
        self.assertEqual(self.agent(f"my-s={server.url()}", tool="my-s_echo", IPW_MCP_TOKEN_MY_S=TOKEN,
                                    IPW_MCP_TOKEN="other-0123456789"), [None])

    def test_wrong_token_is_hidden(self):
        server = self.guarded()
        self.agent(server.url(), code=1)
        self.assertIn("set IPW_MCP_TOKEN", self.stderr)
        self.agent(server.url(), code=1, IPW_MCP_TOKEN="wrong-0123456789abcdef")
        self.assertIn("access denied for the token in IPW_MCP_TOKEN", self.stderr)
        self.assertIn("***", self.stderr)
        self.assertNotIn("wrong-0123456789abcdef", self.stderr)

    def test_token_is_not_sent_in_plain_text_to_a_name(self):
        server = self.guarded()
        self.agent(server.url("localhost"), code=1, IPW_MCP_TOKEN=TOKEN)
        self.assertIn("over https", self.stderr)
        self.assertIsNone(server.seen[0][1]["Authorization"])

    def test_password_in_url_is_used_and_not_stored(self):
        server = self.server()
        url = server.url().replace("//", "//joe:open-sesame-1234@")
        self.assertEqual(self.agent(url), [None])
        self.assertEqual(server.headers_of("tools/call")[0]["Authorization"], "Basic am9lOm9wZW4tc2VzYW1lLTEyMzQ=")
        stored = [path for path in self.folder.glob("runs/**/*") if path.is_file()]
        self.assertTrue(any(b"joe:***@127.0.0.1" in path.read_bytes() for path in stored))
        self.assertEqual([path for path in stored if b"open-sesame" in path.read_bytes()], [])

    def test_redirect_is_not_followed(self):
        target = self.server()
        server = self.server(initialize=lambda handler, _: handler.reply(307, Location=target.url()))
        self.agent(server.url(), code=1, IPW_MCP_TOKEN=TOKEN)
        self.assertIn("redirects are not followed", self.stderr)
        self.assertEqual(target.seen, [])


class Streams(HttpTest):
    def test_requests_of_server_are_answered_before_its_response(self):
        def ask(handler, message):
            handler.begin_events()
            handler.wfile.write(b": a comment\n\n")
            handler.event({"jsonrpc": "2.0", "method": "notifications/progress",
                           "params": {"progressToken": 1, "progress": 1}})
            handler.event({"jsonrpc": "2.0", "id": "a", "method": "ping"})
            handler.event({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
            until = time.monotonic() + TIMEOUT_S
            while len(handler.server.replies) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            handler.event(text_of(message, "asked"))
        server = self.server(tools_call=ask)
        self.assertEqual(self.agent(server.url()), [None])
        self.assertEqual(server.replies, [{"jsonrpc": "2.0", "id": "a", "result": {}},
                                          {"jsonrpc": "2.0", "id": 7, "error": {
                                              "code": -32601, "message": "not supported by this client"}}])

    def test_stream_that_stays_open_does_not_delay_the_result(self):
        def leave_open(handler, message):
            handler.begin_events()
            handler.event(text_of(message, "here"))
            handler.hang()
        server = self.server(tools_call=leave_open)
        self.assertEqual(self.agent(server.url(), "--tool-timeout", "3600", calls=3), [None] * 3)

    def test_batch_is_split(self):
        def batch(handler, message):
            handler.begin_events()
            handler.event([{"jsonrpc": "2.0", "method": "notifications/message"}, text_of(message, "here")])
        self.assertEqual(self.agent(self.server(tools_call=batch).url()), [None])


class Failures(HttpTest):
    @staticmethod
    def long_json(handler, message):
        handler.reply_json(text_of(message, "x" * TOO_LONG))

    @staticmethod
    def long_event(handler, message):
        handler.begin_events()
        handler.event(text_of(message, "x" * TOO_LONG))

    @staticmethod
    def broken_stream(handler, _):
        handler.begin_events()
        handler.event({"jsonrpc": "2.0", "method": "notifications/message"})

    @staticmethod
    def broken_body(handler, _):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"{")
        handler.close_connection = True

    def test_failed_call_is_a_result_and_the_next_one_works(self):
        for fail, said in ((self.long_json, "a message of more than 16 MiB"),
                           (self.long_event, "a message of more than 16 MiB"),
                           (self.broken_stream, "sent no response"),
                           (self.broken_body, "closed the connection"),
                           (lambda handler, _: handler.reply(202), "sent no response"),
                           (lambda handler, _: handler.reply(200, b"<html>", Content_Type="text/html"), "content type"),
                           (lambda handler, _: handler.reply(200, b"{x", Content_Type="application/json"), "no response"),
                           (lambda handler, _: handler.reply(500, b'{"error": {"message": "out of cheese"}}'), "cheese")):
            failed = []

            def once(handler, message):
                if failed:
                    return handler.server.answer(message)
                failed.append(fail(handler, message))
                return None
            errors = self.agent(self.server(tools_call=once).url(), calls=2)
            self.assertIn(said, errors[0])
            self.assertIsNone(errors[1])

    def test_failed_initialization_ends_the_run(self):
        for fail, said in ((lambda handler, _: handler.reply(404), "is this the URL of an MCP server"),
                           (lambda handler, message: handler.reply_json(
                               handler.server.answer(message), Mcp_Session_Id="a\tb"), "invalid session ID"),
                           (lambda handler, message: handler.reply_json(
                               handler.server.answer(message), Mcp_Session_Id="x" * 3000), "session ID"),
                           (self.long_json, "a message of more than 16 MiB")):
            self.agent(self.server(initialize=fail).url(), code=1)
            self.assertIn(said, self.stderr)
        server = self.server()
        server.shutdown()
        server.server_close()
        self.agent(server.url(), code=1)
        self.assertIn("is the server running there?", self.stderr)

    def test_slow_call_times_out_and_is_canceled(self):
        server = self.server(tools_call=lambda handler, _: handler.hang())
        [error] = self.agent(server.url(), "--tool-timeout", "1")
        self.assertIn("no response within", error)
        self.assertIn("notifications/cancelled", server.methods())

    def test_requests_of_server_do_not_extend_the_timeout(self):
        def ask_forever(handler, _):
            handler.begin_events()
            try:
                while True:
                    handler.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            except OSError:
                pass
        [error] = self.agent(self.server(tools_call=ask_forever).url(), "--tool-timeout", "1")
        self.assertRegex(error, "in time|within")

    def test_signal_ends_the_start(self):
        for method in ("initialize", "tools/list"):
            asked = threading.Event()

            def hang(handler, _):
                asked.set()
                handler.hang()
            server = self.server(**{method.replace("/", "_"): hang})
            (self.folder / "script.jsonl").write_text('{"content": "done"}\n')
            process = subprocess.Popen([IPW, *map(str, self.command("--mcp", server.url()))], env=os.environ, text=True,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
            self.assertTrue(asked.wait(TIMEOUT_S))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, err)


if __name__ == "__main__":
    main_parallel()
