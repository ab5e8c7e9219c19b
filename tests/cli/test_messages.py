#!/usr/bin/env python3
# test: real time
"""Anthropic's official client through ipw proxy, and --client anthropic, against a server that sends exact bytes.

$IPW_PYTHON may name an interpreter that has the package `anthropic`; without it the test is skipped."""

import collections.abc
import json
import os
import sys
import threading
import time
import types
import typing
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()
from program import TIMEOUT_S, ipw, main_parallel  # noqa: E402
from proxies import LAST_CHUNK, STREAM_HEAD, ProxyTest, chunk, response, until  # noqa: E402

try:
    import anthropic
    import pydantic
    import typing_extensions
    from anthropic.types import message_create_params
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has anthropic)")
    sys.exit(77)

httpx = sys.modules[anthropic.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]]

MODEL = "claude-none-1"
MESSAGES = "/v1/messages"
ADD = {"name": "add", "description": "Adds.", "input_schema": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}
PROMPT = {"input_tokens": 5, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 300}
QUESTION = {"model": MODEL, "max_tokens": 64, "messages": [{"role": "user", "content": "How much is a joule?"}]}


def message(content, reason="end_turn", output=7, **more):
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": {**PROMPT, "output_tokens": output}, **more}


def events(content, reason="end_turn", output=7):
    """The events of a message, each with its bytes: the content in chunks of three characters."""
    def event(kind, **more):
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more}, ensure_ascii=False)}\n\n".encode()

    yield event("message_start", message={**message([], None, 1)})
    yield event("ping")
    for index, block in enumerate(content):
        kind = block["type"]
        name, delta = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta"),
                       "tool_use": ("partial_json", "input_json_delta")}[kind]
        whole = json.dumps(block["input"]) if kind == "tool_use" else block[name]
        empty = {"input": {}} if kind == "tool_use" else {name: ""}
        yield event("content_block_start", index=index, content_block={**block, **empty})
        for at in range(0, len(whole), 3):
            yield event("content_block_delta", index=index, delta={"type": delta, name: whole[at:at + 3]})
        if kind == "thinking":
            yield event("content_block_delta", index=index, delta={"type": "signature_delta", "signature": "EqQB"})
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": output})
    yield event("message_stop")


THOUGHT = [{"type": "thinking", "thinking": "A unit.", "signature": ""},
           {"type": "text", "text": "One watt-second, wörld \U0001f389"}]
CALL = [{"type": "text", "text": "I add."},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 17, "b": 24}},
        {"type": "tool_use", "id": "toolu_2", "name": "add", "input": {"a": 1, "b": 2}}]


OVERLOADED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'


class Tap(httpx.SyncByteStream):
    """Copies the bytes of a response as the client's HTTP library receives them."""

    def __init__(self, stream, copy):
        self.stream, self.copy = stream, copy

    def __iter__(self):
        for piece in self.stream:
            self.copy.append((time.monotonic(), piece))
            yield piece

    def close(self):
        self.stream.close()


class Transport(httpx.HTTPTransport):
    def handle_request(self, request):
        response = super().handle_request(request)
        self.received = []
        response.stream = Tap(response.stream, self.received)
        return response


class Client:
    """Anthropic's client, with the bytes of its last response."""

    def __init__(self, url, **options):
        self.transport = Transport()
        self.api = anthropic.Anthropic(base_url=url, max_retries=0, timeout=TIMEOUT_S, **{
            "api_key": "sk-ant-secret-of-a-client", **options},
            http_client=anthropic.DefaultHttpxClient(transport=self.transport))

    def bytes(self):
        return b"".join(piece for _, piece in self.transport.received)


class Server:
    """Answers with the content that the question or the results of tools ask for, as a stream or a document, and
    remembers the bytes of every body that it sent."""

    def __init__(self, gap_s=0):
        self.gap_s, self.sent, self.times = gap_s, [], []

    def content(self, asked):
        last = asked["messages"][-1]["content"]
        results = [block for block in last if block["type"] == "tool_result"] if isinstance(last, list) else []
        if results:
            return [{"type": "text", "text": "Results: " + " ".join(block["content"] for block in results)}], "end_turn", 5
        if asked.get("tools"):
            return CALL, "tool_use", 31
        return THOUGHT, "max_tokens" if asked["max_tokens"] < 9 else "end_turn", 12

    def body(self, connection, data, status="200 OK", headers=()):
        self.sent.append(data)
        connection.sendall(response(data, status, [("Content-Type", "application/json"), *headers]))

    def stream(self, connection, pieces):
        self.sent.append(b"".join(pieces))
        whole, times = self.sent[-1], []
        connection.sendall(STREAM_HEAD)
        if not self.gap_s:  # at sizes that have nothing to do with the events
            pieces = [whole[at:at + 37] for at in range(0, len(whole), 37)]
        for piece in pieces:
            connection.sendall(chunk(piece))
            times.append(time.monotonic())
            time.sleep(self.gap_s)
        self.times.append(times)
        connection.sendall(LAST_CHUNK)

    def __call__(self, connection, line, headers, body):
        asked = json.loads(body or b"{}")
        path = line.split()[1].partition("?")[0]
        if path == MESSAGES + "/count_tokens":
            self.body(connection, b'{ "input_tokens": 325 }')
        elif path != MESSAGES:
            self.body(connection, json.dumps({"data": [{"type": "model", "id": MODEL, "display_name": "N",
                                                        "created_at": "2026-01-01T00:00:00Z"}],
                                              "has_more": False, "first_id": MODEL, "last_id": MODEL}).encode())
        elif asked["model"].startswith("status-"):
            code = asked["model"].removeprefix("status-")
            self.body(connection, json.dumps({"type": "error", "error": {"type": "some_error", "message": f"No: {code}"},
                                              "request_id": "req_1"}).encode(), f"{code} Nope",
                      [("retry-after", "7"), ("request-id", "req_1")])
        elif asked["model"] == "overloaded":
            self.stream(connection, [*list(events(THOUGHT))[:5], OVERLOADED])
        elif asked.get("stream"):
            self.stream(connection, list(events(*self.content(asked))))
        else:
            self.body(connection, json.dumps(message(*self.content(asked)), indent=1).encode() + b"\n")


def plain(value):
    return value.model_dump() if isinstance(value, pydantic.BaseModel) else value


def ask_everything(client, check):
    """Every kind of request; check() is called after each one with what the client made of the response."""
    api = client.api
    check(plain(api.messages.create(**QUESTION)))
    check([plain(event) for event in api.messages.create(**QUESTION, stream=True)])
    with api.messages.stream(**QUESTION, system="Be brief.") as stream:
        check([list(stream.text_stream), plain(stream.get_final_message())])
    check(plain(api.messages.create(**{**QUESTION, "max_tokens": 4})))
    for streams in (False, True):  # a round trip of tools
        turns = list(QUESTION["messages"])
        for _ in range(2):
            asked = {**QUESTION, "messages": turns, "tools": [ADD]}
            if streams:
                with api.messages.stream(**asked) as stream:
                    reply = stream.get_final_message()
            else:
                reply = api.messages.create(**asked)
            check(plain(reply))
            calls = [block for block in reply.content if block.type == "tool_use"]
            turns += [{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                                    "content": str(call.input["a"] + call.input["b"])}
                                                   for call in calls]}]
    check(plain(api.messages.count_tokens(model=MODEL, messages=QUESTION["messages"])))
    check([plain(model) for model in api.models.list()])
    for code in (400, 429, 529):
        try:
            api.messages.create(**{**QUESTION, "model": f"status-{code}"})
        except anthropic.APIStatusError as problem:
            check([type(problem).__name__, problem.status_code, problem.body, problem.response.headers["retry-after"],
                   problem.request_id])
    try:
        list(api.messages.create(**{**QUESTION, "model": "overloaded"}, stream=True))
    except anthropic.APIStatusError as problem:
        check([type(problem).__name__, problem.body])


def counts(record):
    """Tokens of the prompt and the output, and those of the prompt that were cached."""
    metrics, = record["model_metrics"].values()
    tokens = metrics.get("token_metrics", {})
    return tokens.get("input"), tokens.get("output"), record["ipw"].get("prompt_cached_tokens")


class OfficialClient(ProxyTest):
    def test_bytes_and_results_are_those_without_the_proxy(self):
        server, results, bodies = Server(), {}, {}
        upstream = self.upstream(server)
        proxy = self.proxy(upstream)
        for way, url in (("direct", upstream.url), ("proxy", proxy.url)):
            results[way], client, begin = [], Client(url), len(upstream.requests)

            def check(result):
                results[way].append(result)
                self.assertEqual(client.bytes(), server.sent[-1])

            ask_everything(client, check)
            bodies[way] = [(line, body) for line, _, body in upstream.requests[begin:]]
        self.assertEqual(results["proxy"], results["direct"])
        self.assertEqual(bodies["proxy"], bodies["direct"])
        self.assertEqual(len(results["proxy"]), 14)
        self.assertEqual(proxy.end(), 0, proxy.stderr)
        records = proxy.records()
        # No record of count_tokens and of the list of models; the results of tools are 41 and 3.
        fields = [(record["ipw"]["status"], record["ipw"].get("finish_reason"), *counts(record)[1:])
                  for record in records]
        self.assertEqual(fields, [
            *[("completed", "stop", 12, 300)] * 3, ("completed", "length", 12, 300),
            *[("completed", "tool_calls", 31, 300), ("completed", "stop", 5, 300)] * 2,
            *[("failed", None, None, None)] * 4])
        for record in records[:8]:
            self.assertEqual(counts(record)[0], 325)
            self.assertEqual(record["dataset_metadata"]["model"], MODEL)
            self.assertTrue(record["dataset_metadata"]["key"].startswith("key-"))
        self.assertEqual([record["ipw"]["http_status"] for record in records[8:]], [400, 429, 529, 200])
        self.assertIn("Overloaded", records[11]["ipw"]["error"])
        self.assertNotIn("sk-ant-secret", proxy.stderr + proxy.stdout + json.dumps(records))

    def test_times_are_those_of_the_content(self):
        """The server sends an event every 30 ms; what the client observes bounds the figures from above."""
        server = Server(gap_s=0.03)
        proxy = self.proxy(self.upstream(server))
        client, begin = Client(proxy.url), time.monotonic()
        for _ in client.api.messages.create(**QUESTION, stream=True):
            pass
        end = time.monotonic()
        seen = b""
        for first, piece in client.transport.received:
            seen += piece
            if b"thinking_delta" in seen:
                break
        proxy.end()
        record, = proxy.records()
        chunks = sum(len(block[block["type"]]) + 2 for block in THOUGHT) // 3
        self.assertEqual(record["ipw"]["pieces"], chunks)
        latency = record["model_metrics"]["mixed"]["latency_metrics"]
        # Three events precede the first thinking, and 4 follow the last chunk.
        self.assertGreaterEqual(latency["time_to_first_token_seconds"], 3 * 0.03)
        self.assertLessEqual(latency["time_to_first_token_seconds"], first - begin)
        self.assertGreaterEqual(latency["total_query_seconds"], len(server.times[0]) * 0.03)
        self.assertLessEqual(latency["total_query_seconds"], end - begin)

    def test_canceled_stream(self):
        gone = threading.Event()

        def answer(connection, *_):
            connection.sendall(STREAM_HEAD + chunk(b"".join(list(events(THOUGHT))[:6])))
            connection.settimeout(TIMEOUT_S)
            if connection.recv(1) == b"":
                gone.set()
            return False

        proxy = self.proxy(self.upstream(answer))
        client = Client(proxy.url)
        with client.api.messages.create(**QUESTION, stream=True) as stream:
            for event in stream:
                if event.type == "content_block_delta":
                    break
        self.assertTrue(gone.wait(TIMEOUT_S))
        until(lambda: [r for r in proxy.recent() if r["state"] == "canceled"])
        proxy.end()
        record, = proxy.records()
        self.assertEqual((record["dataset_metadata"]["canceled"], record["ipw"].get("finish_reason")), (True, None))
        self.assertEqual(counts(record), (None, None, None))

    def test_error_in_a_stream_is_a_failure(self):
        """Even if the client disconnects there, and the server does not end the stream."""
        def answer(connection, *_):
            connection.sendall(STREAM_HEAD + chunk(b"".join(list(events(THOUGHT))[:6]) + OVERLOADED))
            connection.settimeout(TIMEOUT_S)
            connection.recv(1)
            return False

        proxy = self.proxy(self.upstream(answer))
        with self.assertRaises(anthropic.APIStatusError):
            list(Client(proxy.url).api.messages.create(**QUESTION, stream=True))
        until(lambda: [r for r in proxy.recent() if r["state"] == "failed"])
        proxy.end()
        record, = proxy.records()
        self.assertIn("Overloaded", record["ipw"]["error"])

    def test_stored_question_is_the_users(self):
        proxy = self.proxy(self.upstream(Server()), "--store-content")
        api = Client(proxy.url).api
        blocks = [{"type": "text", "text": "How much is "}, {"type": "text", "text": "a joule?"}]
        turns = [{"role": "user", "content": blocks}]
        api.messages.create(**{**QUESTION, "messages": turns}, system="Be brief.", tools=[ADD])
        turns += [{"role": "assistant", "content": CALL[1:2]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "41"}]}]
        api.messages.create(**{**QUESTION, "messages": turns}, tools=[ADD])
        proxy.end()
        self.assertEqual([(record["problem"], record["model_answers"]["mixed"]) for record in proxy.records()],
                         [("How much is a joule?", "I add."), ("How much is a joule?", "Results: 41")])

    def test_usage_is_not_injected_and_energy_is_returned(self):
        server = Server()
        upstream = self.upstream(server)
        proxy = self.proxy(upstream, "--inject-usage", "--energy-header")
        client = Client(proxy.url)
        got = [event.type for event in client.api.messages.create(**QUESTION, stream=True)]
        self.assertEqual(got[-1], "message_stop")
        self.assertEqual(json.loads(upstream.requests[0][2]), {**QUESTION, "stream": True})
        self.assertTrue(client.bytes().startswith(server.sent[0]))
        self.assertRegex(client.bytes()[len(server.sent[0]):], rb"^: x-ipw-energy-joules \S+")

    def test_token_of_the_proxy_is_replaced_by_its_key(self):
        upstream = self.upstream(Server())
        proxy = self.proxy(upstream, env={"IPW_PROXY_TOKEN": "let-me-in-42", "IPW_API_KEY": "sk-upstream-7"})
        for options, header, key in (({"api_key": "let-me-in-42"}, "authorization", "Bearer sk-upstream-7"),
                                     ({"api_key": None, "default_headers": {"X-Api-Key": "let-me-in-42"}},  # before 2.0
                                      "x-api-key", "sk-upstream-7")):
            Client(proxy.url, **options).api.messages.create(**QUESTION)
            headers = dict(upstream.requests[-1][1])
            self.assertEqual({name: headers[name] for name in ("x-api-key", "authorization") if name in headers},
                             {header: key})

    def test_messages_of_other_apis_are_not_inference(self):
        """Threads of assistants have messages, too."""
        upstream = self.upstream(lambda connection, *_: connection.sendall(response(b'{"id":"msg"}')))
        proxy = self.proxy(upstream)
        for path in ("/v1/threads/t/messages", MESSAGES + "/count_tokens", MESSAGES + "/batches"):
            self.assertEqual(proxy.ask(path, b'{"role":"user","content":"a"}')[2], b'{"id":"msg"}')
        proxy.end()
        self.assertEqual(proxy.records(), [])

    def test_path_without_version(self):
        """The upstream URL has the version."""
        upstream = self.upstream(Server())
        proxy = self.proxy(upstream.url + "/v1")
        proxy.ask("/messages", json.dumps(QUESTION).encode())
        self.assertEqual(upstream.requests[0][0], f"POST {MESSAGES} HTTP/1.1")
        proxy.end()
        self.assertEqual([record["ipw"]["status"] for record in proxy.records()], ["completed"])


def fits(value, kind):
    """Whether a JSON value has a type of the client's request: dictionaries with their required and no other keys.
    (Pydantic reads the iterables in them lazily, and does not notice keys that the type lacks.)"""
    origin, items = typing.get_origin(kind), typing.get_args(kind)
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        required = {key for key, hint in hints.items() if typing.get_origin(hint) is typing_extensions.Required}
        return (isinstance(value, dict) and required <= set(value) <= set(hints)
                and all(fits(item, hints[key]) for key, item in value.items()))
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing.Annotated):
        return fits(value, items[0])
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, item) for item in items)
    if origin is typing.Literal or origin is typing_extensions.Literal:
        return value in items
    if origin in (collections.abc.Iterable, collections.abc.Sequence, list):
        return isinstance(value, list) and all(fits(item, items[0]) for item in value)
    if origin in (dict, collections.abc.Mapping):
        return isinstance(value, dict) and all(fits(item, items[1]) for item in value.values())
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return kind in (object, typing.Any) or type(value) is kind


class Types(unittest.TestCase):
    def test_wrong_requests_do_not_fit(self):
        kind = message_create_params.MessageCreateParamsStreaming
        asked = {**QUESTION, "stream": True, "tools": [ADD]}
        self.assertTrue(fits(asked, kind))
        turn = {"role": "user", "content": [{"type": "text", "text": "a"}]}
        for wrong in ({"seed": 1}, {"max_tokens": "9"}, {"stop_sequences": "a"}, {"stream": False}, {"system": 7},
                      {"messages": [{**turn, "role": "tool"}]}, {"messages": [{**turn, "content": [{"type": "text"}]}]},
                      {"messages": [{**turn, "content": [{"type": "tool_result", "content": "a"}]}]},
                      {"tools": [{"type": "function", "function": {"name": "add", "parameters": {}}}]}):
            self.assertFalse(fits({**asked, **wrong}, kind), wrong)


class OurClient(ProxyTest):
    """--client anthropic: what it sends is valid by the types of Anthropic's client."""

    def run_command(self, command, url, *options, code=0, env=None):
        (self.root / "questions.jsonl").write_text('{"problem": "17 + 24?", "answer": "41"}\n')
        done = ipw(None, command, "--client", "anthropic", "--client-base-url", url, "--model", MODEL, "--dataset",
                   self.root / "questions.jsonl", "--idle", "0", "--warmup-queries", "0", "--output-dir",
                   self.root / "runs", "--name", "run", "--overwrite", "--json", *options,
                   env={"ANTHROPIC_API_KEY": "sk-ant-7", **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout) if done.stdout else done.stderr

    def records(self):
        lines = map(json.loads, (self.root / "runs/run/records.jsonl").read_text().splitlines())
        return [line for line in lines if line["kind"] == "query"]

    def bodies(self, upstream):
        """The bodies of all requests for messages, validated."""
        bodies = []
        for line, headers, body in upstream.requests:
            self.assertEqual((dict(headers)["x-api-key"], dict(headers)["anthropic-version"]), ("sk-ant-7", "2023-06-01"))
            if not line.startswith("POST"):
                continue
            self.assertEqual(line, f"POST {MESSAGES} HTTP/1.1")
            asked = json.loads(body)
            streams = asked.get("stream")
            kind = (message_create_params.MessageCreateParamsStreaming if streams else
                    message_create_params.MessageCreateParamsNonStreaming)
            self.assertTrue(fits(asked, kind), asked)
            roles = [turn["role"] for turn in asked["messages"]]
            self.assertEqual(roles, ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2))
            bodies.append(asked)
        return bodies

    def test_profile(self):
        upstream = self.upstream(Server())
        for params, limit in (([], 4096), (["--param", "max_tokens=4,stop=END"], 4),
                              (["--param", "stream=false"], 4096)):
            with self.subTest(params):
                upstream.requests.clear()
                result = self.run_command("profile", upstream.url, "--system", "Be brief.", *params)
                self.assertEqual(result["completed"], 1)
                warm_up, asked = self.bodies(upstream)
                self.assertEqual((warm_up["max_tokens"], asked["max_tokens"]), (1, limit))
                self.assertEqual(asked["system"], "Be brief.")
                record, = self.records()
                self.assertEqual(counts(record), (325, 12, 300))
                self.assertEqual(record["ipw"]["finish_reason"], "length" if limit == 4 else "stop")
                self.assertEqual(record["model_answers"][MODEL], THOUGHT[1]["text"])
        self.assertEqual(self.bodies(upstream)[1].get("stream"), False)

    def test_agent_calls_tools(self):
        """Both calls of a turn are answered in one message."""
        calls = [{"type": "tool_use", "id": f"toolu_{i}", "name": "calculator", "input": {"expression": text}}
                 for i, text in enumerate(("17 + 24", "6 * 7"))]
        server = Server()
        server.content = lambda asked: ((calls, "tool_use", 31) if asked.get("tools") and len(asked["messages"]) == 1
                                        else Server.content(server, asked))
        upstream = self.upstream(server)
        result = self.run_command("agent", upstream.url, "--tools", "calculator")
        self.assertEqual(result["completed"], 1)
        _, first, second = self.bodies(upstream)
        self.assertEqual([tool["name"] for tool in first["tools"]], ["calculator"])
        self.assertEqual(second["messages"][1], {"role": "assistant", "content": calls})
        results = second["messages"][2]["content"]
        self.assertEqual([block["tool_use_id"] for block in results], ["toolu_0", "toolu_1"])
        self.assertEqual(["41" in results[0]["content"], "42" in results[1]["content"]], [True, True])
        record, = self.records()
        self.assertIn("Results: ", record["model_answers"][MODEL])

    def test_tools_in_text_if_the_service_has_none(self):
        """The text form stops at the word after which the model would invent a result."""
        def answer(connection, line, headers, body):
            asked = json.loads(body or b"{}")
            if asked.get("tools"):
                server.body(connection, b'{"type":"error","error":{"type":"invalid_request_error","message":'
                            b'"tools are not supported"}}', "400 Bad Request")
            else:
                server(connection, line, headers, body)

        server = Server()
        upstream = self.upstream(answer)
        self.assertEqual(self.run_command("agent", upstream.url, "--tools", "calculator")["completed"], 1)
        self.assertEqual(self.bodies(upstream)[-1]["stop_sequences"], ["\nObservation:"])

    def test_external_agent(self):
        """It finds the proxy by the variables that the official client reads."""
        program = self.root / "agent.py"
        program.write_text("""
import json, os, urllib.request
asked = {"model": os.environ["IPW_MODEL"], "max_tokens": 64,
         "messages": [{"role": "user", "content": os.environ["IPW_PROBLEM"]}]}
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01", "content-type": "application/json"}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(asked).encode(), headers)
print(json.load(urllib.request.urlopen(request))["content"][-1]["text"])
""")
        upstream = self.upstream(Server())
        result = self.run_command("agent", upstream.url, "--exec", f"{sys.executable} {program}")
        self.assertEqual(result["completed"], 1)
        record, = self.records()
        self.assertEqual(record["model_answers"][MODEL].strip(), THOUGHT[1]["text"])
        self.assertEqual(counts(record)[:2], (325, 12))

    def test_retries_wait_as_requested(self):
        """529 with retry-after, then an error within the stream, then an answer."""
        answered = []

        def answer(connection, line, headers, body):
            asked = json.loads(body or b"{}")
            if asked and asked["max_tokens"] > 1:
                answered.append(time.monotonic())
                if len(answered) == 1:
                    server.body(connection, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
                                "529 Overloaded", [("retry-after", "1")])
                    return
                if len(answered) == 2:
                    body = json.dumps({**asked, "model": "overloaded"}).encode()
            server(connection, line, headers, body)

        server = Server()
        result = self.run_command("profile", self.upstream(answer).url, "--retries", "2")
        self.assertEqual((result["completed"], len(answered)), (1, 3))
        self.assertGreaterEqual(answered[1] - answered[0], 1)

    def test_perplexity_is_refused(self):
        text = self.root / "text.txt"
        text.write_text("A joule is a watt-second. " * 100)
        done = ipw(None, "profile", "--client", "anthropic", "--client-base-url", "http://127.0.0.1:1", "--model", MODEL,
                   "--task", "perplexity", "--dataset", text)
        self.assertEqual(done.returncode, 2)
        self.assertIn("client anthropic returns no log-probabilities", done.stderr)

    def test_models_are_listed(self):
        upstream = self.upstream(Server())
        done = ipw(None, "list", "models", "--client", "anthropic", "--client-base-url", upstream.url,
                   env={"ANTHROPIC_API_KEY": "sk-ant-7"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(MODEL, done.stdout)


if __name__ == "__main__":
    os.environ.pop("IPW_API_KEY", None)
    main_parallel()
