#!/usr/bin/env python3
"""A small OpenAI-compatible server around a transformers model with random weights.

For measurements without real weights: the work of a dense model does not depend on their values; the
output is meaningless.  Each word of the prompt and of the answer is a token.  Continuous batching: a
new request is prefilled between two decode steps of the others, then decoded in the same batch.

    python3 serve_transformers.py --port 8000 --layers 16 --hidden 2048
    ipw profile --client openai --client-base-url http://127.0.0.1:8000 --model random ...
"""
import argparse
import json
import queue
import threading
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

VOCABULARY = 32000


class Request:
    """One request: its prompt tokens, and the queue of its output."""

    def __init__(self, prompt, wanted):
        self.tokens = [zlib.crc32(word.encode()) % VOCABULARY for word in prompt.split()] or [1]
        self.wanted = wanted
        self.made = 0
        self.out = queue.SimpleQueue()


def layers_of(cache):
    """Keys and values of each layer, for several versions of transformers."""
    if hasattr(cache, "layers"):
        return [(layer.keys, layer.values) for layer in cache.layers]
    return list(zip(cache.key_cache, cache.value_cache))


def cache_of(layers):
    cache = DynamicCache()
    for index, (keys, values) in enumerate(layers):
        cache.update(keys, values, index)
    return cache


def pad_left(tensor, length):
    return torch.nn.functional.pad(tensor, (0, 0, length - tensor.shape[2], 0))


class Engine(threading.Thread):
    """Prefills new requests one by one and decodes all requests in flight in one batch."""

    def __init__(self, model, most):
        super().__init__(daemon=True)
        self.model, self.most = model, most
        self.waiting = queue.SimpleQueue()
        self.active, self.lengths = [], []
        self.layers, self.last = None, None

    def run(self):
        with torch.inference_mode():
            while True:
                self.admit()
                self.step()

    def admit(self):
        while len(self.active) < self.most:
            try:
                request = self.waiting.get(block=not self.active)
            except queue.Empty:
                return
            self.prefill(request)
            if self.active and self.waiting.empty():
                return

    def prefill(self, request):
        ids = torch.tensor([request.tokens], device=self.model.device)
        out = self.model(input_ids=ids, use_cache=True, past_key_values=DynamicCache())
        token = out.logits[:, -1].argmax(-1)
        fresh = layers_of(out.past_key_values)
        if self.active:
            length = max(self.layers[0][0].shape[2], fresh[0][0].shape[2])
            self.layers = [
                tuple(torch.cat([pad_left(old, length), pad_left(new, length)]) for old, new in zip(a, b))
                for a, b in zip(self.layers, fresh)
            ]
            self.last = torch.cat([self.last, token])
        else:
            self.layers, self.last = fresh, token
        self.active.append(request)
        self.lengths.append(len(request.tokens))
        self.give([token.item()], first=len(self.active) - 1)

    def step(self):
        if not self.active:
            return
        width = self.layers[0][0].shape[2]
        lengths = torch.tensor(self.lengths, device=self.model.device)
        places = torch.arange(width + 1, device=self.model.device)
        mask = (places[None, :] >= width - lengths[:, None]).long()
        out = self.model(input_ids=self.last[:, None], attention_mask=mask,
                         position_ids=lengths[:, None], past_key_values=cache_of(self.layers),
                         use_cache=True)
        self.layers = layers_of(out.past_key_values)
        self.last = out.logits[:, -1].argmax(-1)
        self.lengths = [length + 1 for length in self.lengths]
        self.give(self.last.tolist())

    def give(self, tokens, first=0):
        for request, token in zip(self.active[first:], tokens):
            request.made += 1
            request.out.put(f"t{token} ")
        self.drop_finished()

    def drop_finished(self):
        keep = [i for i, request in enumerate(self.active) if request.made < request.wanted]
        if len(keep) == len(self.active):
            return
        for i, request in enumerate(self.active):
            if i not in keep:
                request.out.put(None)
        self.active = [self.active[i] for i in keep]
        self.lengths = [self.lengths[i] for i in keep]
        if not keep:
            self.layers = self.last = None
            return
        rows = torch.tensor(keep, device=self.model.device)
        longest = max(self.lengths)
        self.layers = [tuple(t.index_select(0, rows)[:, :, -longest:] for t in pair)
                       for pair in self.layers]
        self.last = self.last.index_select(0, rows)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine = None
    name = "random"

    def log_message(self, *_):
        pass

    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer({"object": "list", "data": [{"id": self.name, "object": "model"}]})

    def event(self, body):
        data = b"data: " + (body if isinstance(body, bytes) else json.dumps(body).encode()) + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = " ".join(message["content"] for message in asked["messages"])
        request = Request(prompt, int(asked.get("max_tokens") or 64))
        self.engine.waiting.put(request)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while (piece := request.out.get()) is not None:
            self.event({"choices": [{"index": 0, "delta": {"content": piece}}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
        self.event({"choices": [], "usage": {"prompt_tokens": len(request.tokens),
                                             "completion_tokens": request.made}})
        self.event(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--most", type=int, default=64, help="maximum batch size")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=options.hidden,
                         intermediate_size=options.hidden * 4, num_hidden_layers=options.layers,
                         num_attention_heads=options.hidden // 64,
                         num_key_value_heads=max(1, options.hidden // 256),
                         max_position_embeddings=8192)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = LlamaForCausalLM(config)
    Handler.engine = Engine(model.eval(), options.most)
    Handler.engine.start()
    size = sum(p.numel() for p in model.parameters())
    print(f"{size / 1e9:.3f} B parameters on {device}, port {options.port}", flush=True)
    Server(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
