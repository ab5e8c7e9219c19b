"""Tests of server behavior that ipw relies on, for every real server."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import make_gguf
import servers

ANSWER_TOKENS = 40
CONCURRENT = 4


class ServerContract:
    """Mixin for a TestCase whose `serve` is a context manager of servers.py."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-model-")
        cls.addClassCleanup(folder.cleanup)
        cls.model_path = Path(folder.name, "random.gguf")
        make_gguf.make(cls.model_path)
        server = cls.serve(cls.model_path, parallel=CONCURRENT)
        cls.url = server.__enter__()
        cls.addClassCleanup(server.__exit__, None, None, None)

    def ask(self, path, **question):
        return servers.stream(f"{self.url}{path}", {
            "model": self.url.model, "stream": True, "stream_options": {"include_usage": True},
            "max_tokens": ANSWER_TOKENS, **question})

    def assertAnswered(self, events, piece):
        """Each token is a separate event, and the counts agree."""
        choices = [event["choices"][0] for event in events if event["choices"]]
        pieces = [text for text in map(piece, choices) if text]
        self.assertEqual(len(pieces), ANSWER_TOKENS)
        self.assertEqual([choice["finish_reason"] for choice in choices if choice["finish_reason"]],
                         ["length"])
        # The last event counts: Ollama's completions have zeros in earlier events.
        usage = events[-1]["usage"]
        self.assertEqual(usage["completion_tokens"], ANSWER_TOKENS)
        self.assertGreater(usage["prompt_tokens"], 0)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + ANSWER_TOKENS)

    def chat(self, content="How warm is a joule?"):
        return self.ask("/v1/chat/completions", messages=[{"role": "user", "content": content}])

    def test_model_is_listed(self):
        listed = servers.get(f"{self.url}/v1/models")["data"]
        self.assertEqual([each["id"].removesuffix(":latest") for each in listed], [self.url.model])

    def test_chat_streams_tokens_and_ends_with_usage(self):
        self.assertAnswered(self.chat(), lambda choice: choice["delta"].get("content"))

    def test_completion_streams_tokens(self):
        self.assertAnswered(self.ask("/v1/completions", prompt="A joule is"),
                            lambda choice: choice["text"])

    def test_concurrent_requests_are_answered(self):
        with ThreadPoolExecutor(CONCURRENT) as pool:
            for events in pool.map(self.chat, map(str, range(CONCURRENT))):
                self.assertAnswered(events, lambda choice: choice["delta"].get("content"))

    def test_server_process_ends_with_its_context(self):
        with self.serve(self.model_path) as second:
            self.assertNotEqual(second, self.url)
            self.assertTrue(alive(second.pid))
        self.assertFalse(alive(second.pid))
        self.assertAnswered(self.chat(), lambda choice: choice["delta"].get("content"))


def alive(pid):
    return Path(f"/proc/{pid}").exists()
