"""Real inference servers for tests, on a free loopback port, ended with the test.

    with llama_server(path) as url:
        urlopen(f"{url}/v1/models")

A server that set-up did not install raises Skip, which unittest reports; main() then exits with the status that ctest
treats as a skip."""

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
    """The server is not installed; the message says how to install it."""


class Address(str):
    """The base URL, without /v1, with model and process id."""
    model = ""  # name of the model
    pid = 0     # the listening process; a child may do the work


@contextlib.contextmanager
def llama_server(model_path, parallel=4, threads=1, context=2048, pooling=None):
    """llama.cpp's server with `parallel` slots of `context` tokens each.  The default is one thread, because several
    wait for each other in spin loops, which take seconds on a busy machine.  pooling, MEAN or RANK: it serves embeddings
    or reranks instead."""
    python = present("python/bin/python", "python/ready", "test")
    name = Path(model_path).stem
    options = {"alias": name, "parallel": parallel, "threads": threads, "context": context, "pooling": pooling}
    command = [python, Path(__file__).with_name("llama_serve.py"), model_path, json.dumps(options)]
    with started(command, r"^address (http://\S+)$") as url:
        wait_for(f"{url}/health")
        url.model = name
        yield url


@contextlib.contextmanager
def ollama_server(model_path, parallel=4, threads=1, context=2048):
    """Ollama with the model created, named without suffix, and loaded."""
    program = present("ollama/ollama", "ollama/ready", "ollama")
    name = Path(model_path).stem
    with tempfile.TemporaryDirectory(prefix="ipw-ollama-") as home:
        # Independent of the user's Ollama, without network access.
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
            post(f"{url}/api/generate", {"model": name})  # an empty prompt loads the model
            url.model = name
            yield url


def present(program, ready, group):
    """The path of the program, if set-up has completed its folder."""
    if not (ENVIRONMENT / ready).exists():
        raise Skip(f"no {ENVIRONMENT / program}: tools/setup {group} installs it")
    return ENVIRONMENT / program


@contextlib.contextmanager
def started(command, pattern, environment=None):
    """Runs the command and waits for output that matches the pattern, whose group is the address.  The process ends
    with the block, or if the starting thread is killed."""
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
        code = process.poll()  # before reading, so that the last output is seen
        said = Path(log.name).read_text(errors="replace")
        match = re.search(pattern, said, re.M)
        if match:
            return match[1] if "://" in match[1] else f"http://{match[1]}"
        if code is not None:
            raise RuntimeError(f"{process.args[0]} ended with {code}:\n{said[-2000:]}")
        time.sleep(0.02)
    raise TimeoutError(f"{process.args[0]} does not listen after {TIMEOUT_S} s:\n{said[-2000:]}")


def end(process):
    """Ends the process and the remaining processes of its session."""
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


# ---- requests ----

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # bypasses any proxy


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
    """The server-sent events of a response as JSON; the last must be [DONE]."""
    with opened(url, body) as answer:
        kind = answer.headers.get_content_type()
        assert kind == "text/event-stream", kind
        events = [line[len(b"data: "):].strip() for line in answer if line.startswith(b"data: ")]
    assert events.pop() == b"[DONE]", events
    return [json.loads(event) for event in events]


def main():
    """unittest.main, but reports skipped tests and exits with status 77 if all were skipped."""
    result = unittest.main(exit=False).result
    for _, reason in result.skipped:
        print("skipped:", reason)
    if result.wasSuccessful() and result.skipped and not result.testsRun:
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
