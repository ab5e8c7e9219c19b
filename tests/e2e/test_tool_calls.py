#!/usr/bin/env python3
# test: real time
"""Tool calls with real inference: parsed by llama.cpp's server, and by ipw's in-process client; a model without a tool
template is recognized."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import make_gguf  # noqa: E402
import servers  # noqa: E402

BUILD = Path(os.environ["IPW_BUILD"])
TOOL = {"name": "add", "description": "Adds two numbers.",
        "parameters": {"type": "object", "required": ["a", "b"],
                       "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}
ARGUMENTS = {"a": 2, "b": 3}
SAYS = '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call>'
TEMPLATE = """{%- if tools %}<|im_start|>system
<tools>
{%- for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
<tool_call>
{"name": NAME, "arguments": OBJECT}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.tool_calls %}<|im_start|>assistant
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def talk(driver, url, model, lines, *params):
    done = subprocess.run([BUILD / "tests/tools/client_ask", driver, url, model, *params], text=True,
                          input="".join(json.dumps(line) + "\n" for line in lines),
                          capture_output=True, check=True, timeout=300)
    return [json.loads(line) for line in done.stdout.splitlines()]


class ToolCallsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-model-")
        cls.addClassCleanup(folder.cleanup)
        cls.caller, cls.plain = Path(folder.name, "caller.gguf"), Path(folder.name, "plain.gguf")
        make_gguf.make(cls.caller, layers=2, says=SAYS, template=TEMPLATE)
        make_gguf.make(cls.plain, layers=2)

    def assertCalls(self, replies):
        """The first reply calls the tool; the next prompt is longer by the call and its result."""
        first, second = replies
        for reply in replies:
            self.assertNotIn("error", reply)
            self.assertEqual([(call["name"], call["arguments"]) for call in reply["calls"]],
                             [("add", ARGUMENTS)])
            self.assertTrue(all(call["id"] for call in reply["calls"]))
            self.assertEqual((reply["content"], reply["tools"]), ("", "yes"))
            self.assertGreater(reply["output_tokens"], 0)
            self.assertTrue(reply["has_first_token"])
        self.assertNotEqual(first["calls"][0]["id"], second["calls"][0]["id"])
        self.assertGreater(second["prompt_tokens"], first["prompt_tokens"] + 10)

    LINES = [{"user": "What is 2 + 3?", "tools": [TOOL], "params": "max_tokens=1"},
             {"results": ["5"], "tools": [TOOL], "params": "max_tokens=1"}]

    def test_server_and_in_process_client_find_same_calls(self):
        with servers.llama_server(self.caller, parallel=1) as url:
            for stream in "true", "false":
                lines = [dict(line, params=f"max_tokens=1,stream={stream}") for line in self.LINES]
                for client in "openai", "anthropic":
                    with self.subTest(client, stream=stream):
                        self.assertCalls(talk(client, url, url.model, lines))
        self.assertCalls(talk("llama", "-", self.caller, self.LINES, "threads=1"))

    def test_template_without_tools_is_recognized(self):
        with servers.llama_server(self.plain, parallel=1) as url:
            for client in "openai", "anthropic":
                reply, = talk(client, url, url.model, [{"user": "Q", "params": "max_tokens=1"}])
                self.assertEqual((reply["tools"], reply["calls"]), ("no", []))
        reply, = talk("llama", "-", self.plain, self.LINES[:1], "threads=1")
        self.assertTrue(reply["rejects_tools"])
        self.assertEqual(reply["tools"], "no")
        self.assertIn("no tools", reply["error"])


if __name__ == "__main__":
    servers.main()
