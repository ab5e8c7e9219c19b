#!/usr/bin/env python3
"""A fake inference server with the APIs of OpenAI, Ollama and Anthropic, and faults on request.

The URL path selects a scenario, so one server serves all tests and threads concurrently:

    http://127.0.0.1:PORT/SCENARIO[:option=value,option=value]/v1/chat/completions
    http://127.0.0.1:PORT/SCENARIO[:option=value,option=value]/api/generate
    http://127.0.0.1:PORT/SCENARIO[:option=value,option=value]/v1/messages

As a program, `inference_server.py LOG` prints its port, appends each request to LOG as a line of JSON, and ends at the
end of its standard input.  In Python, use Server().

Scenarios (of completion requests; other requests, such as model lists, are answered alike in most of them):
    normal      a streamed answer with usage
    empty       an answer with no tokens
    whole       one JSON document, even if the request asks for a stream
    interrupted pieces=N chunks, then [DONE] without a finish_reason, as when another request aborts it
    miscounted  count=N: an answer with this token count, right or wrong;  no_usage: no counts;  no_done: a
                finish_reason but no [DONE];  cut: neither
    status      code=503, body=openai|ollama|anthropic|text|html|none, retry_after=SECONDS
    hang        after=request|headers|content
    die         how=rst|close, after=request|headers|content
    malformed   an event that is not JSON, after the first chunk
    error       an error object in the stream
    huge_line   mb=100: one line without an end
    many        mb=70, piece=a: endless content, in lines of normal length
    tools       two calls of tools of the request, one of them without an id, and after their results an answer that
                quotes them; without tools as normal.  how=same_index: like servers that give every call index 0
    no_tools    rejects tools with the error of as=ollama|llama|vllm|strict
    old         rejects stream_options;  new: rejects max_tokens
    llama       llama.cpp: timings, one model named after its file;  thinking: separate reasoning content
    alias       the model "latest", which is not listed, has an entry of its own
    no_list     no list of models;  loading: status 503 to all requests
    long_header kb=1024: a response header of this length
    moved       a redirect to the scenario normal;  garbage: not HTTP

Options of every scenario: head_ms before the headers, first_ms between headers and content, gap_ms between chunks,
frame=chunked|length|close, gzip=1, eol=lf|crlf|cr, split=BYTES per write.
"""

import gzip
import http.server
import json
import socket
import struct
import sys
import threading
import time
import zlib

PIECES = ["Hello", ", w\u00f6rld", " \U0001f389", " and\n", "\"good\" bye\\", "."]
TEXT = "".join(PIECES)
MODELS = ["tiny-1b", "tiny-3b-chat", "other/large:70b"]
END = {"cr": "\r", "crlf": "\r\n", "lf": "\n"}


class ConnectionEnded(Exception):
    """The scenario closes the connection here."""


def openai_chunk(piece=None, reason=None, chat=True, **more):
    choice = {"index": 0, "finish_reason": reason}
    if chat:
        choice["delta"] = {"content": piece} if piece is not None else {}
    else:
        choice["text"] = piece or ""
    return {"id": "x", "object": "chunk", "choices": [choice], **more}


def openai_usage(count):
    return {"prompt_tokens": 11, "completion_tokens": count, "total_tokens": 11 + count,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 0}}


def anthropic_usage(count=None):
    """Of message_start without a count, of message_delta with one: the same prompt as openai_usage, by its parts."""
    if count is not None:
        return {"output_tokens": count}
    return {"input_tokens": 5, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 4, "output_tokens": 1}


def anthropic_message(content, reason, usage):
    return {"id": "msg_x", "type": "message", "role": "assistant", "model": "tiny-1b", "content": content,
            "stop_reason": reason, "stop_sequence": None, **({"usage": usage} if usage else {})}


def ollama_chunk(piece, chat, **more):
    body = {"message": {"role": "assistant", "content": piece}} if chat else {"response": piece}
    return {"model": "tiny-1b", "done": False, **body, **more}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "PlayServer/1"
    sys_version = ""

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.connection_number = self.server.next_connection()

    # ---- sending

    def pause(self, name):
        time.sleep(float(self.options.get(name, 0)) / 1000)

    def begin(self, kind, length=None, code=200, **headers):
        self.pause("head_ms")
        self.frame = self.options.get("frame", "chunked") if length is None else "length"
        self.compressor = None
        self.send_response(code)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        if length is not None:
            self.send_header("Content-Length", str(length))
        elif self.frame == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        if self.options.get("gzip"):
            self.compressor = zlib.compressobj(wbits=31)
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.flush()
        self.pause("first_ms")

    def send(self, data):
        if self.compressor:
            data = self.compressor.compress(data) + self.compressor.flush(zlib.Z_SYNC_FLUSH)
        step = int(self.options.get("split", 0)) or len(data) or 1
        for at in range(0, len(data), step):
            self.send_frame(data[at:at + step])

    def send_frame(self, data):
        if self.frame == "chunked":
            data = b"%x\r\n%s\r\n" % (len(data), data)
        self.wfile.write(data)
        self.wfile.flush()

    def finish_body(self):
        if self.compressor:
            self.send_frame(self.compressor.flush())
        if self.frame == "chunked":
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

    def document(self, value, code=200, kind="application/json", **headers):
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        if self.options.get("gzip"):
            data = gzip.compress(data)
        options, self.options = self.options, dict(self.options, split=0, gzip="")
        if options.get("gzip"):
            headers["Content_Encoding"] = "gzip"
        self.begin(kind, len(data), code, **headers)
        self.send(data)
        self.options = options

    def hang(self):
        self.connection.settimeout(60)
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass
        raise ConnectionEnded

    def die(self):
        if self.options.get("how", "rst") == "rst":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        raise ConnectionEnded

    # ---- streams

    def is_ollama(self):
        return self.rest.startswith("/api/")

    def is_anthropic(self):
        return self.rest == "/v1/messages"

    def start_stream(self):
        self.blocks, self.block = 0, None  # started so far, and the open one
        self.has_started = False
        kind = "application/x-ndjson" if self.is_ollama() else "text/event-stream; charset=utf-8"
        self.begin(kind)

    def event(self, value):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        end = END[self.options.get("eol", "lf")]
        if self.is_ollama():
            self.send((text + (end if end != "\r" else "\n")).encode())
        elif self.is_anthropic() and isinstance(value, dict):
            self.send(f"event: {value.get('type')}{end}data: {text}{end}{end}".encode())
        else:
            self.send(f": ping{end}data: {text}{end}{end}".encode())

    # Events of Anthropic's API: blocks are numbered, and open one at a time.

    def start_message(self, usage=True):
        if not self.has_started:
            message = anthropic_message([], None, anthropic_usage() if usage else None)
            self.event({"type": "message_start", "message": message})
            self.event({"type": "ping"})
        self.has_started = True

    def end_block(self):
        if self.block:
            self.event({"type": "content_block_stop", "index": self.index})
        self.block = None

    def start_block(self, **block):
        self.start_message(self.scenario != "no_usage")
        self.end_block()
        self.block = block["type"]
        self.index = 0 if self.options.get("how") == "same_index" else self.blocks
        self.blocks += 1
        self.event({"type": "content_block_start", "index": self.index, "content_block": block})

    def delta(self, kind, text):
        name = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}[kind]
        self.event({"type": "content_block_delta", "index": self.index, "delta": {"type": kind, name: text}})

    def end_message(self, count, usage, done, reason):
        reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
        self.start_message(usage)
        self.end_block()
        self.event({"type": "message_delta", "delta": {"stop_reason": reasons[reason], "stop_sequence": None},
                    **({"usage": anthropic_usage(count)} if usage else {})})
        if done:
            self.event({"type": "message_stop"})

    def piece(self, text, **more):
        if self.is_anthropic():
            if self.block != "text":
                self.start_block(type="text", text="")
            self.delta("text_delta", text)
        elif self.is_ollama():
            self.event(ollama_chunk(text, self.rest == "/api/chat", **more))
        else:
            self.event(openai_chunk(text, None, "chat" in self.rest, **more))

    def ending(self, count, usage=True, done=True, reason="stop"):
        if self.is_anthropic():
            self.end_message(count, usage, done, reason)
            return
        if self.is_ollama():
            last = {"done": True, "done_reason": reason, "total_duration": 5000000000}
            if usage:
                last |= {"load_duration": 1500000000, "prompt_eval_count": 11,
                         "prompt_eval_duration": 250000000, "eval_count": count,
                         "eval_duration": 3000000000}
            self.event(ollama_chunk("", self.rest == "/api/chat", **last))
            return
        wanted = (self.asked.get("stream_options") or {}).get("include_usage")
        self.event(openai_chunk(None, reason, "chat" in self.rest))
        if usage and wanted:
            self.event({"id": "x", "choices": [], "usage": openai_usage(count)})
        if done:
            self.event("[DONE]")

    def stream(self, pieces=PIECES, **ending):
        self.start_stream()
        limit = self.asked.get("max_tokens", self.asked.get("max_completion_tokens"))
        limit = self.asked.get("options", {}).get("num_predict", limit)
        if isinstance(limit, int) and limit < len(pieces):
            pieces, ending = pieces[:limit], dict(ending, reason="length")
        for number, piece in enumerate(pieces):
            if number:
                self.pause("gap_ms")
            self.piece(piece)
        self.ending(len(pieces), **ending)
        self.finish_body()

    # ---- scenarios of completion requests

    def scenario_normal(self):
        self.stream()

    def scenario_empty(self):
        self.stream([])

    def scenario_no_usage(self):
        self.stream(usage=False)

    def scenario_miscounted(self):
        self.start_stream()
        for piece in PIECES:
            self.piece(piece)
        self.ending(int(self.options["count"]))
        self.finish_body()

    def scenario_no_done(self):
        self.stream(done=False)

    def scenario_cut(self):
        self.start_stream()
        self.piece("Hel")
        self.piece("lo")
        self.finish_body()

    def scenario_interrupted(self):
        self.start_stream()
        if self.is_anthropic():
            self.start_message()
        else:
            self.event({"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]})
        for piece in PIECES[:int(self.options.get("pieces", 0))]:
            self.piece(piece)
        if not self.is_ollama() and not self.is_anthropic():
            self.event("[DONE]")
        self.finish_body()

    def scenario_whole(self):
        if self.is_ollama():
            chat = self.rest == "/api/chat"
            self.document(ollama_chunk(TEXT, chat, done=True, done_reason="stop", eval_count=6))
        elif self.is_anthropic():
            self.document(anthropic_message([{"type": "text", "text": TEXT}], "end_turn",
                                            {**anthropic_usage(), "output_tokens": 6}))
        elif "chat" in self.rest:
            choice = {"index": 0, "finish_reason": "stop", "message": {"content": TEXT}}
            self.document({"choices": [choice], "usage": openai_usage(6)})
        else:
            choice = {"index": 0, "finish_reason": "stop", "text": TEXT}
            self.document({"choices": [choice], "usage": openai_usage(6)})

    def scenario_status(self):
        bodies = {"openai": b'{"error":{"message":"the moon is\\nfull","type":"lunar"}}',
                  "anthropic": b'{"type":"error","error":{"type":"overloaded_error","message":"the moon is full"}}',
                  "ollama": b'{"error":"the moon is full"}', "text": b"the moon is full\n",
                  "html": b"<html>the moon is full</html>", "none": b""}
        headers = {}
        if "retry_after" in self.options:
            headers["Retry_After"] = self.options["retry_after"].replace("_", " ")
        body = bodies[self.options.get("body", "openai")] * int(self.options.get("times", 1))
        self.document(body, int(self.options.get("code", 503)), **headers)

    def fault(self, act):
        after = self.options.get("after", "content")
        if after == "request":
            act()
        self.start_stream()
        if after == "headers":
            act()
        self.piece("Hel")
        self.piece("lo")
        time.sleep(0.02)  # so that the chunks are sent before the reset
        act()

    def scenario_hang(self):
        self.fault(self.hang)

    def scenario_die(self):
        self.fault(self.die)

    def scenario_malformed(self):
        self.start_stream()
        self.piece("Hello")
        self.event('{"choices": [oops')
        self.ending(1)
        self.finish_body()

    def scenario_error(self):
        self.start_stream()
        self.piece("Hello")
        if self.is_anthropic():
            self.event({"type": "error", "error": {"type": "overloaded_error", "message": "out of moons"}})
        else:
            self.event({"error": "out of moons" if self.is_ollama() else
                        {"message": "out of moons", "type": "server_error", "code": 500}})
        self.finish_body()

    def scenario_huge_line(self):
        self.start_stream()
        self.piece("Hello")
        self.send(b"data: " if not self.is_ollama() else b"{")
        for _ in range(int(self.options.get("mb", 100))):
            self.send(b"a" * (1 << 20))
        self.finish_body()

    def scenario_many(self):
        self.start_stream()
        for _ in range(int(self.options.get("mb", 70))):
            self.piece(self.options.get("piece", "a") * (1 << 20))
        self.ending(1)
        self.finish_body()

    def scenario_old(self):
        if "stream_options" in self.asked:
            self.document({"error": {"message": "Unrecognized request argument: stream_options"}},
                          400)
        else:
            self.stream()

    def scenario_new(self):
        if "max_tokens" in self.asked:
            self.document({"error": {"message": "Unsupported parameter: 'max_tokens'. Use "
                                                "'max_completion_tokens' instead."}}, 400)
        else:
            self.stream()

    def scenario_llama(self):
        self.start_stream()
        for number, piece in enumerate(PIECES):
            self.piece(piece, timings={"prompt_n": 7, "cache_n": 4, "prompt_ms": 125.0,
                                       "predicted_n": number + 1, "predicted_ms": 100.0 * number})
        self.ending(len(PIECES), usage=False)
        self.finish_body()

    def scenario_thinking(self):
        self.start_stream()
        if self.is_anthropic():
            self.start_block(type="thinking", thinking="", signature="")
        for name in ("reasoning_content", "reasoning"):
            if self.is_anthropic():
                self.delta("thinking_delta", f"{name}? ")
            elif self.is_ollama():
                self.event(ollama_chunk("", self.rest == "/api/chat", thinking=f"{name}? "))
            else:
                self.event({"choices": [{"delta": {name: f"{name}? ", "content": None}}]})
        self.piece("42")
        self.ending(3)
        self.finish_body()

    def call_pieces(self):
        """OpenAI stream chunks: tool calls as interleaved deltas, split within their arguments."""
        same = self.options.get("how") == "same_index"

        def delta(index, arguments, **more):
            name = {"name": more.pop("name")} if "name" in more else {}
            return {"index": 0 if same else index, **more, "function": {"arguments": arguments, **name}}

        first = [delta(0, "", id="c1", type="function", name="add"), delta(0, '{"a": 1, '),
                 delta(0, '"b": "x\\"}"}')]
        second = [delta(1, "", type="function", name="noop", **({"id": "c2"} if same else {}))]
        if same:
            return [[piece] for piece in first + second]
        return [[first[0]], [first[1], second[0]], [first[2]]]

    def scenario_tools(self):
        messages = self.asked.get("messages", [])
        results = [m["content"] for m in messages if m["role"] == "tool"]
        if self.is_anthropic():  # all of one turn are in one message
            results = [block["content"] for block in messages[-1]["content"] if block["type"] == "tool_result"]
        if "tools" not in self.asked:
            self.stream()
        elif results:
            self.stream(["Results:", *[f" {text}" for text in results]])
        elif self.is_ollama():
            self.start_stream()
            for call in ({"name": "add", "arguments": {"a": 1, "b": "x\"}"}}, {"name": "noop", "arguments": {}}):
                message = {"role": "assistant", "content": "", "tool_calls": [{"function": call}]}
                self.event({"model": "tiny-1b", "done": False, "message": message})
            self.ending(9)
            self.finish_body()
        elif self.is_anthropic():
            self.start_stream()
            self.start_block(type="tool_use", id="c1", name="add", input={})
            for piece in ("", '{"a": 1, ', '"b": "x\\"}"}'):
                self.delta("input_json_delta", piece)
            self.start_block(type="tool_use", name="noop", input={})
            self.ending(9, reason="tool_calls")
            self.finish_body()
        else:
            self.start_stream()
            self.event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]})
            for calls in self.call_pieces():
                self.event({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
            self.ending(9, reason="tool_calls")
            self.finish_body()

    def scenario_no_tools(self):
        said = {"ollama": (400, {"error": "tiny-1b does not support tools"}),
                "llama": (500, {"error": {"code": 500, "message": "tools param requires --jinja flag"}}),
                "vllm": (400, {"message": '"auto" tool choice requires --enable-auto-tool-choice'}),
                "strict": (422, {"detail": [{"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}]})}
        if "tools" in self.asked:
            code, body = said[self.options.get("as", "ollama")]
            self.document(body, code)
        else:
            self.stream()

    def scenario_alias(self):
        self.stream()

    def scenario_no_list(self):
        self.stream()

    def scenario_loading(self):
        self.document({"error": {"message": "Loading model", "code": 503}}, 503)

    def scenario_long_header(self):
        self.document({"status": "ok"}, X_Long="x" * (1024 * int(self.options.get("kb", 1024))))

    def scenario_moved(self):
        self.document(b"", 307, Location=f"/normal{self.rest}")

    def scenario_garbage(self):
        self.wfile.write(b"220 mail.example ESMTP\r\n\r\n")
        self.wfile.flush()
        raise ConnectionEnded

    # ---- other requests

    def answer_other(self):
        """Answers GET requests and Ollama's show; true if answered."""
        name = self.scenario
        if name in ("status", "loading", "moved", "long_header", "garbage") or self.options.get("all"):
            return False
        if name == "no_list" and self.rest in ("/v1/models", "/api/tags"):
            self.document({"detail": "Not Found"}, 404)
            return True
        models = ["/models/tiny-1b.Q4_K_M.gguf"] if name == "llama" else MODELS
        owner = "llamacpp" if name == "llama" else "vllm"
        extra = ({"meta": {"n_ctx_train": 32768, "n_params": 1200000000, "size": 800000000}}
                 if name == "llama" else {"max_model_len": 8192, "root": "/weights/tiny"})
        documents = {
            **({"/v1/models/latest": {"id": models[0], "type": "model"}} if name == "alias" else {}),
            "/v1/models": {"object": "list",
                           "data": [{"id": m, "owned_by": owner, **extra} for m in models]},
            "/health": {"status": "ok"},
            "/version": {"version": "0.9.1"},
            "/props": {"build_info": "b4242-abc", "model_path": models[0], "total_slots": 4,
                       "default_generation_settings": {"n_ctx": 4096},
                       **({"chat_template_caps": {"supports_tools": True}} if name == "tools" else {})},
            "/api/version": {"version": "0.12.3"},
            "/api/tags": {"models": [{"name": m} for m in ["tiny-1b:latest", "tiny-3b-chat:q8"]]},
            "/api/show": {"details": {"format": "gguf", "family": "llama", "parameter_size": "1.2B",
                                      "quantization_level": "Q4_K_M"},
                          "model_info": {"general.architecture": "llama",
                                         "general.parameter_count": 1235814432,
                                         "llama.context_length": 131072},
                          **({"capabilities": ["completion", *["tools"] * (name == "tools")]}
                             if "tools" in name else {})},
            "/api/ps": {"models": [{"name": "tiny-1b:latest", "size": 900, "size_vram": 450,
                                    "context_length": 4096, "digest": "d1"}]},
        }
        if self.rest in documents:
            self.document(documents[self.rest])
            return True
        return False

    def read_path(self):
        path = self.path
        if path.startswith("http://"):  # absolute form, as sent to a proxy
            path = "/" + path.split("/", 3)[3]
        _, scenario, *rest = path.split("/")
        self.scenario, _, options = scenario.partition(":")
        self.options = dict(pair.partition("=")[::2] for pair in options.split(",") if pair)
        self.rest = ("/" + "/".join(rest)).partition("?")[0]

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        self.read_path()
        self.server.record({"method": self.command, "path": self.path, "body": body,
                            "headers": {k.lower(): v for k, v in self.headers.items()},
                            "connection": self.connection_number})
        try:
            self.asked = json.loads(body) if body else {}
        except ValueError:
            self.asked = {}
        act = getattr(self, "scenario_" + self.scenario, None)
        try:
            if not act:
                self.document({"error": f"no scenario {self.scenario}"}, 404)
            elif not self.answer_other():
                act()
        except (ConnectionEnded, ConnectionError):
            self.close_connection = True

    do_GET = do_POST = answer


class Server(http.server.ThreadingHTTPServer):
    """Serves from its own thread; `requests` has the requests received."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, log=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = self.server_address[1]
        self.requests = []
        self.log = log
        self.lock = threading.Lock()
        self.connections = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def next_connection(self):
        with self.lock:
            self.connections += 1
            return self.connections

    def record(self, request):
        with self.lock:
            self.requests.append({**request, "received": time.monotonic()})
            if self.log:
                self.log.write(json.dumps(request) + "\n")
                self.log.flush()

    def url(self, scenario="normal"):
        return f"http://127.0.0.1:{self.port}/{scenario}"

    def handle_error(self, request, client_address):
        pass  # clients disconnect in many scenarios


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as log:
        server = Server(log)
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
