"""Real inference servers for a test to measure, on a free loopback port, gone when the test is.

    with llama_server(path) as url:
        urlopen(f"{url}/v1/models")

A server that set-up did not bring raises Skip, which unittest understands; main() then ends the
script the way ctest understands."""

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2]))
ENVIRONMENT = SOURCE / ".test-env"
TIMEOUT_S = 60
PR_SET_PDEATHSIG = 1


class Skip(unittest.SkipTest):
    """The server is not on this machine; says how to bring it."""


class Address(str):
    """The base URL, without /v1; and who answers there."""
    model = ""  # the name to ask for
    pid = 0     # the process that listens; the work may be done by a child of it


@contextlib.contextmanager
def llama_server(model_path, parallel=4, threads=1, context=2048):
    """llama.cpp's server with `parallel` slots of `context` tokens each.  One thread is the default
    because more wait for each other in busy loops, which a busy machine stretches to seconds."""
    python = present("python/bin/python", "python/ready", "test")
    name = Path(model_path).stem
    options = {"alias": name, "parallel": parallel, "threads": threads, "context": context}
    command = [python, Path(__file__).with_name("llama_serve.py"), model_path, json.dumps(options)]
    with started(command, r"^address (http://\S+)$") as url:
        wait_for(f"{url}/health")
        url.model = name
        yield url


@contextlib.contextmanager
def ollama_server(model_path, parallel=4, threads=1, context=2048):
    """Ollama with that model created, as its name without suffix, and loaded."""
    program = present("ollama/ollama", "ollama/ready", "ollama")
    name = Path(model_path).stem
    with tempfile.TemporaryDirectory(prefix="ipw-ollama-") as home:
        # Nothing of the user's own Ollama, and no call to its makers.
        environment = {key: value for key, value in os.environ.items() if "OLLAMA" not in key}
        environment |= {"HOME": home, "OLLAMA_MODELS": f"{home}/models", "OLLAMA_NO_CLOUD": "1",
                        "OLLAMA_HOST": "127.0.0.1:0", "OLLAMA_NUM_PARALLEL": str(parallel),
                        "OLLAMA_CONTEXT_LENGTH": str(context), "OLLAMA_KEEP_ALIVE": "-1"}
        listening = r'msg="Listening on (127\.0\.0\.1:\d+) '
        with started([program, "serve"], listening, environment) as url:
            wait_for(f"{url}/api/version")
            recipe = Path(home, "Modelfile")
            recipe.write_text(f"FROM {Path(model_path).absolute()}\n"
                              f"PARAMETER num_thread {threads}\n")
            subprocess.run([program, "create", name, "-f", recipe], check=True, timeout=TIMEOUT_S,
                           env={**environment, "OLLAMA_HOST": url}, stdin=subprocess.DEVNULL,
                           capture_output=True)
            post(f"{url}/api/generate", {"model": name})  # without a prompt: loads
            url.model = name
            yield url


def present(program, ready, group):
    """The program's path, where set-up finished the folder it is in."""
    if not (ENVIRONMENT / ready).exists():
        raise Skip(f"no {ENVIRONMENT / program}: tools/setup {group} brings it")
    return ENVIRONMENT / program


@contextlib.contextmanager
def started(command, pattern, environment=None):
    """The command, from when its output matches the pattern, whose group is the address.  It ends
    with the block; and with the thread that started it, should that be killed."""
    libc = ctypes.CDLL(None)
    with tempfile.NamedTemporaryFile("w+", prefix="ipw-server-") as log:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=log,
            stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        try:
            address = Address(found(pattern, log, process))
            address.pid = process.pid
            yield address
        finally:
            end(process)


def found(pattern, log, process):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        code = process.poll()  # before the look, so that the last words are seen
        said = Path(log.name).read_text(errors="replace")
        match = re.search(pattern, said, re.M)
        if match:
            return match[1] if "://" in match[1] else f"http://{match[1]}"
        if code is not None:
            raise RuntimeError(f"{process.args[0]} ended with {code}:\n{said[-2000:]}")
        time.sleep(0.02)
    raise TimeoutError(f"{process.args[0]} does not listen after {TIMEOUT_S} s:\n{said[-2000:]}")


def end(process):
    """Ends the process, and what it may have left in its session."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(url):
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return get(url)
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


# ---- asking ----

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # past any proxy


def get(url):
    with DIRECT.open(url, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def post(url, body):
    with opened(url, body) as answer:
        return json.load(answer)


def opened(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return DIRECT.open(request, timeout=TIMEOUT_S)


def stream(url, body):
    """The server-sent events of an answer, each as JSON; the last must be [DONE]."""
    with opened(url, body) as answer:
        kind = answer.headers.get_content_type()
        assert kind == "text/event-stream", kind
        events = [line[len(b"data: "):].strip() for line in answer if line.startswith(b"data: ")]
    assert events.pop() == b"[DONE]", events
    return [json.loads(event) for event in events]


def main():
    """unittest.main, but it says what was skipped, and ends with 77 where that was everything."""
    result = unittest.main(exit=False).result
    for _, reason in result.skipped:
        print("skipped:", reason)
    if result.wasSuccessful() and result.skipped and not result.testsRun:
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
