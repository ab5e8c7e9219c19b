#!/usr/bin/env python3
"""Takes a training of tools-2m into the repository.

    publish_tools.py --trained FOLDER [--build build]

Writes the GGUF file and tools.json (what the training measured), and with --build the file's lines of SHA256SUMS, which
need the quantized files of a build.  Needs NumPy and gguf.
"""
import argparse
import hashlib
import json
from pathlib import Path

from export import export
from shapes import TOOLS_NAME, TOOLS_SHAPE

HERE = Path(__file__).parent

# ChatML with functions as conversations.py writes them, which is how ipw and llama.cpp's server write them too.
CHAT_TEMPLATE = """\
{%- set first = messages[0] if messages and messages[0].role == 'system' else none -%}
{%- if tools or first -%}
{{- '<|im_start|>system\\n' -}}
{%- if first -%}{{- first.content -}}{%- endif -%}
{%- if tools and first -%}{{- '\\n\\n' -}}{%- endif -%}
{%- if tools -%}
{{- '# Tools\\n\\nYou can call functions to help with the question. Their signatures are given in <tools></tools>:\\n<tools>' -}}
{%- for tool in tools -%}{{- '\\n' -}}{{- tool | tojson -}}{%- endfor -%}
{{- '\\n</tools>\\n\\nTo call a function, write a JSON object with its name and arguments in <tool_call></tool_call>:\\n<tool_call>\\n{"name": <function name>, "arguments": <object of arguments>}\\n</tool_call>' -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}
{{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' -}}
{%- elif message.role == 'assistant' -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if message.content -%}{{- message.content -}}{%- endif -%}
{%- for tool_call in message.tool_calls or [] -%}
{%- if tool_call.function -%}{%- set tool_call = tool_call.function -%}{%- endif -%}
{%- if message.content or not loop.first -%}{{- '\\n' -}}{%- endif -%}
{{- '<tool_call>\\n{"name": "' + tool_call.name + '", "arguments": ' -}}
{{- tool_call.arguments | tojson -}}
{{- '}\\n</tool_call>' -}}
{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- elif message.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' -}}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""


def write_checksums(build):
    path = HERE / "SHA256SUMS"
    lines = [line for line in path.read_text().splitlines() if TOOLS_NAME not in line]
    for precision in ("f16", "q8_0", "q4_0"):
        file = build / "models" / f"{TOOLS_NAME}-{precision}.gguf"
        lines.append(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--trained", type=Path, required=True, help="what train_tools.py wrote")
    parser.add_argument("--build", type=Path, help="a build folder of ipw, after the model is there")
    options = parser.parse_args()
    export(TOOLS_NAME, options.trained / f"{TOOLS_NAME}.npz", options.trained / "tokenizer.json",
           HERE / f"{TOOLS_NAME}-f16.gguf", TOOLS_SHAPE, CHAT_TEMPLATE,
           "Trained from nothing to answer arithmetic by calling a calculator")
    result = json.loads((options.trained / "tools-result.json").read_text())
    (HERE / "tools.json").write_text(json.dumps(result, indent=1) + "\n")
    if options.build:
        write_checksums(options.build)


if __name__ == "__main__":
    main()
