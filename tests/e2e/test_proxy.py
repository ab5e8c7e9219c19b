#!/usr/bin/env python3
# test: real time
"""The official clients of OpenAI, in Python and JavaScript, and Anthropic with llama.cpp's server: results through
`ipw proxy` equal those without it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
import make_gguf  # noqa: E402
import oracle  # noqa: E402
import servers  # noqa: E402
from program import TIMEOUT_S  # noqa: E402
from proxies import Proxy  # noqa: E402

oracle.use()
try:
    import anthropic
    import openai
except ImportError:
    anthropic = openai = None

JAVASCRIPT = servers.ENVIRONMENT / "node/openai/index.mjs"


def node_version():
    """The major version of Node.js; 0 without it."""
    if not shutil.which("node"):
        return 0
    said = subprocess.run(["node", "-p", "process.versions.node"], capture_output=True, text=True, check=False).stdout
    return int(said.split(".")[0] or 0)

QUESTION = {"messages": [{"role": "user", "content": "A joule is"}], "max_tokens": 12, "temperature": 0, "seed": 1}
# Fields that differ between any two responses.
OWN = {"id", "created", "created_at", "timings"}

SCRIPT = """
const [client, url, model, question] = process.argv.slice(1);
const { default: OpenAI } = await import(client);
const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "sk-none-needed", maxRetries: 0 });
const asked = { model, ...JSON.parse(question) };
const got = {};
got.models = (await openai.models.list()).data;
got.whole = await openai.chat.completions.create(asked);
got.text = await openai.completions.create({ model, prompt: "A joule is", max_tokens: 8, temperature: 0 });
got.pieces = [];
for await (const piece of await openai.chat.completions.create(
    { ...asked, stream: true, stream_options: { include_usage: true } })) got.pieces.push(piece);
try { await openai.chat.completions.create({ model, messages: "wrong" }); }
catch (error) { got.error = { status: error.status, message: error.message, type: error.constructor.name }; }
console.log(JSON.stringify(got));
"""


def without_own(value):
    if isinstance(value, dict):
        return {key: without_own(item) for key, item in value.items() if key not in OWN}
    return [without_own(item) for item in value] if isinstance(value, list) else value


def by_python(url):
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none-needed", max_retries=0)
    asked = {"model": url.model, **QUESTION}
    got = {"models": [model.model_dump() for model in client.models.list()],
           "whole": client.chat.completions.create(**asked).model_dump(),
           "text": client.completions.create(model=url.model, prompt="A joule is", max_tokens=8,
                                             temperature=0).model_dump(),
           "pieces": [piece.model_dump() for piece in client.chat.completions.create(
               **asked, stream=True, stream_options={"include_usage": True})]}
    try:
        client.chat.completions.create(model=url.model, messages="wrong")
    except openai.APIStatusError as error:
        got["error"] = {"status": error.status_code, "type": type(error).__name__, "body": error.body}
    return got


def by_anthropic(url):
    client = anthropic.Anthropic(base_url=url, api_key="sk-none-needed", max_retries=0)
    asked = {"model": url.model, "messages": QUESTION["messages"], "max_tokens": 12,
             "extra_body": {"temperature": 0, "seed": 1}}
    got = {"whole": client.messages.create(**asked).model_dump(),
           "counted": client.messages.count_tokens(model=url.model, messages=QUESTION["messages"]).model_dump()}
    try:
        client.messages.create(**{**asked, "messages": [{"role": "user", "content": "too long " * 4000}]})
    except anthropic.APIStatusError as error:
        got["error"] = {"status": error.status_code, "type": type(error).__name__, "body": error.body}
    with client.messages.stream(**asked) as stream:  # the last one: the server closes its connection without notice
        got["events"] = [event.model_dump() for event in stream]
    return got


def by_javascript(url):
    done = subprocess.run(["node", "--input-type=module", "-e", SCRIPT, str(JAVASCRIPT), url, url.model,
                           json.dumps(QUESTION)], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class OfficialClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="ipw-proxy-")
        cls.addClassCleanup(cls.folder.cleanup)
        model = Path(cls.folder.name, "random.gguf")
        make_gguf.make(model)
        cls.url = cls.enterClassContext(servers.llama_server(model, parallel=2))

    def check(self, ask, *options):
        with tempfile.TemporaryDirectory() as root:
            proxy = Proxy(str(self.url), root, *options)
            self.addCleanup(proxy.close)
            through = servers.Address(proxy.url)
            through.model = self.url.model
            ask(self.url)  # the prompt cache is in the same state for both
            direct, proxied = ask(self.url), ask(through)
            self.assertEqual(without_own(proxied), without_own(direct))
            self.assertEqual(direct["error"]["status"], proxied["error"]["status"])
            self.assertGreater(len(direct["pieces"]), 3)
            self.assertEqual(proxy.end(), 0)
            records = proxy.records()
            self.assertEqual([r["ipw"]["status"] for r in records], ["completed"] * 3 + ["failed"])
            usage = direct["whole"]["usage"]
            for record in (records[0], records[2]):
                tokens = record["model_metrics"]["mixed"]["token_metrics"]
                self.assertEqual((tokens["input"], tokens["output"]),
                                 (usage["prompt_tokens"], usage["completion_tokens"]))
            self.assertEqual(records[2]["ipw"]["pieces"], sum(
                bool(p["choices"] and p["choices"][0]["delta"].get("content")) for p in direct["pieces"]))
            self.assertEqual(len(proxy.energies()), len(records))

    @unittest.skipUnless(openai, "the Python package openai is not installed: tools/setup test")
    def test_python_client(self):
        self.check(by_python)

    @unittest.skipUnless(openai, "the Python package openai is not installed: tools/setup test")
    def test_injected_usage_is_hidden_from_client(self):
        """With --inject-usage, usage is recorded but not sent to a client that did not request it."""
        def stream(url):
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none-needed", max_retries=0)
            return [piece.model_dump() for piece in client.chat.completions.create(
                model=url.model, **QUESTION, stream=True)]

        with tempfile.TemporaryDirectory() as root:
            proxy = Proxy(str(self.url), root, "--inject-usage")
            self.addCleanup(proxy.close)
            through = servers.Address(proxy.url)
            through.model = self.url.model
            self.assertEqual(without_own(stream(through)), without_own(stream(self.url)))
            proxy.end()
            record, = proxy.records()
            self.assertEqual(record["model_metrics"]["mixed"]["token_metrics"]["output"], 12)

    @unittest.skipUnless(anthropic, "the Python package anthropic is not installed: tools/setup test")
    def test_anthropic_client(self):
        """The Messages API of the same server; the prompt is cached from the second request on."""
        with tempfile.TemporaryDirectory() as root:
            proxy = Proxy(str(self.url), root)
            self.addCleanup(proxy.close)
            through = servers.Address(proxy.url)
            through.model = self.url.model
            by_anthropic(self.url)
            direct, proxied = by_anthropic(self.url), by_anthropic(through)
            self.assertEqual(without_own(proxied), without_own(direct))
            self.assertGreaterEqual(direct["error"]["status"], 400)
            self.assertEqual(proxy.end(), 0)
            records = proxy.records()
            self.assertEqual([r["ipw"]["status"] for r in records], ["completed", "failed", "completed"])
            usage = direct["whole"]["usage"]
            for record in records[::2]:
                tokens = record["model_metrics"]["mixed"]["token_metrics"]
                self.assertEqual((tokens["input"], tokens["output"]), (direct["counted"]["input_tokens"], 12))
                self.assertEqual(tokens["input"], usage["input_tokens"] + usage["cache_read_input_tokens"])
                self.assertEqual(record["ipw"]["prompt_cached_tokens"], usage["cache_read_input_tokens"])
                self.assertEqual(record["ipw"]["finish_reason"], "length")
            self.assertEqual(records[2]["ipw"]["pieces"], sum(event["type"] == "text" for event in direct["events"]))
            summary = json.loads(Path(root, "runs/run/summary.json").read_text())["ipw"]
            self.assertEqual(summary["unrecorded_inference"]["requests"], 0)

    @unittest.skipUnless(shutil.which("node") and JAVASCRIPT.exists(),
                         "node or the npm package openai is not there: tools/setup test")
    @unittest.skipIf(node_version() < 20, "the npm package openai needs Node 20 or later")
    def test_javascript_client(self):
        self.check(by_javascript)


class OwnEndpoints(unittest.TestCase):
    """The endpoints of llama.cpp's server that are not OpenAI's."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ipw-proxy-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        make_gguf.make(self.root / "random.gguf", layers=2, fills=True)

    def ask_all(self, requests, pooling=None):
        """Answers and records of the requests."""
        url = self.enterContext(servers.llama_server(self.root / "random.gguf", parallel=2, pooling=pooling))
        proxy = Proxy(str(url), self.root, "--store-content")
        self.addCleanup(proxy.close)
        answers = []
        for path, body in requests:
            with servers.opened(f"{proxy.url}{path}", body) as answer:
                answers.append(answer.read())
        self.assertEqual(proxy.end(), 0)
        summary = json.loads((self.root / "runs/run/summary.json").read_text())["ipw"]
        self.assertEqual(summary["unrecorded_inference"]["requests"], 0)
        records = proxy.records()
        self.assertEqual([r["dataset_metadata"]["path"] for r in records], [path for path, _ in requests])
        self.assertEqual({r["ipw"]["status"] for r in records}, {"completed"})
        self.assertEqual(len(proxy.energies()), len(records))
        return answers, records

    def test_completions(self):
        common = {"n_predict": 6, "temperature": 0, "seed": 1}
        fill = {"input_prefix": "A joule is ", "input_suffix": " watt", **common}
        answers, records = self.ask_all([
            ("/completion", {"prompt": "A joule is", **common}),
            ("/completion", {"prompt": "A joule is", "stream": True, **common}),
            ("/completions", {"prompt": "A joule is", "stream": True, **common}),
            ("/infill", {**fill}), ("/infill", {**fill, "stream": True})])
        for answer, record in zip(answers, records):
            with self.subTest(record["dataset_metadata"]):
                events = [json.loads(line.removeprefix(b"data: ")) for line in answer.splitlines() if line]
                last, metrics = events[-1], record["model_metrics"]["mixed"]
                self.assertEqual((metrics["token_metrics"]["input"], metrics["token_metrics"]["output"]),
                                 (last["tokens_evaluated"], 6))
                self.assertEqual(record["model_answers"]["mixed"], "".join(e["content"] for e in events))
                self.assertEqual(record["ipw"]["finish_reason"], "length")
                self.assertEqual(record["ipw"]["pieces"], sum(bool(e["content"]) for e in events))
                self.assertTrue(record["problem"].startswith("A joule is"))

    def test_reranks(self):
        asked = {"query": "A joule", "documents": ["one", "another one"]}
        answers, records = self.ask_all([(path, asked) for path in ("/rerank", "/v1/rerank", "/v1/reranking")], "RANK")
        for answer, record in zip(answers, records):
            self.assertEqual(record["model_metrics"]["mixed"]["token_metrics"]["input"],
                             json.loads(answer)["usage"]["prompt_tokens"])

    def test_embeddings(self):
        _, records = self.ask_all([("/embedding", {"content": "A joule"}), ("/v1/embeddings", {"input": "A joule"})],
                                  "MEAN")
        self.assertNotIn("token_metrics", records[0]["model_metrics"]["mixed"], "its answer has no counts")
        self.assertEqual(records[1]["model_metrics"]["mixed"]["token_metrics"]["input"], 5)


if __name__ == "__main__":
    servers.main()
