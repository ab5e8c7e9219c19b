#!/usr/bin/env python3
"""Tools of agents from outside: the calculator agrees with Python, errors included, on expressions made by chance from
a fixed seed; http_get fetches from allowed hosts only, redirections included; `ipw list tools` describes them."""

import http.server
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
from program import TIMEOUT_S, ipw  # noqa: E402

TOOL_CALL = Path(os.environ.get("IPW_BUILD", "build")) / "tests/tools/tool_call"
CASES = 3000
NAMES = {name: getattr(math, name) for name in
         "sqrt cbrt exp log log2 log10 sin cos tan asin acos atan sinh cosh tanh degrees radians floor ceil factorial gcd "
         "lcm atan2 hypot pi e tau".split() if hasattr(math, name)}
NAMES.update(abs=abs, round=round, int=int, float=float, min=min, max=max, pow=pow)


def call(tool, calls, *params):
    """The results of (name, arguments) calls, as (is an error, text)."""
    with tempfile.TemporaryDirectory() as folder:
        lines = "".join(f"{name}\t{json.dumps(arguments)}\n" for name, arguments in calls)
        done = subprocess.run([TOOL_CALL, folder, tool, *params], input=lines, capture_output=True, text=True,
                              timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    results = [line.split("\t", 1) for line in done.stdout.splitlines()]
    assert len(results) == len(calls)
    return [(kind == "error", json.loads(text)) for kind, text in results]


def calculate(expressions):
    return call("calculator", [("calculator", {"expression": text}) for text in expressions])


def expected(expression):
    """Python's value; None for an error, and for what is no real number."""
    try:
        value = eval(expression, {"__builtins__": {}, "math": math}, NAMES)  # of our own making
    except (ArithmeticError, ValueError, TypeError, SyntaxError, NameError):
        return None
    return None if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)) else value


class Expressions:
    """Expressions by chance: every operator, function and kind of number, with white space anywhere."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self):
        kind = self.random.randrange(6)
        if kind < 3:
            return str(self.random.randrange(0, 10 ** self.random.choice((1, 2, 6, 15))))
        if kind == 3:
            return f"{self.random.uniform(0, 100):.{self.random.randrange(1, 6)}f}"
        if kind == 4:
            return f"{self.random.randrange(1, 99)}e{self.random.randrange(-5, 6)}"
        return self.random.choice(("pi", "e", ".5", "1_000", "0", "math.pi"))

    def make(self, depth):
        space = self.random.choice(("", "", " ", "  "))
        kind = self.random.randrange(10) if depth else 0
        if kind < 2:
            return self.number()
        if kind < 6:
            sign = self.random.choice(("+", "-", "*", "/", "//", "%", "**"))
            right = str(self.random.randrange(-3, 6)) if sign == "**" else self.make(depth - 1)
            return self.make(depth - 1) + space + sign + space + right
        if kind < 8:
            return "(" + space + self.make(depth - 1) + space + ")"
        if kind == 8:
            return self.random.choice("+-") + self.make(depth - 1)
        name = self.random.choice(("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "atan", "abs", "round", "floor",
                                   "ceil", "int", "max", "min", "hypot", "atan2", "gcd", "factorial", "math.sqrt"))
        count = 2 if name in ("max", "min", "hypot", "atan2", "gcd") else 1
        return name + "(" + ", ".join(self.make(depth - 1) for _ in range(count)) + ")"


class Calculator(unittest.TestCase):
    def check(self, expression, is_error, text):
        value = expected(expression)
        if value is None:
            self.assertTrue(is_error, f"{expression}: {text}, where Python has no value")
            return
        if is_error:
            # Only what would be larger than its range may fail where Python has a value.
            self.assertIn("too large", text, f"{expression} is {value}")
            return
        if isinstance(value, int) and "rounded" not in text:
            self.assertEqual(int(text), value, expression)
        else:
            found = float(text.split(" ")[0])
            self.assertTrue(math.isclose(found, value, rel_tol=4e-15, abs_tol=1e-300), f"{expression}: {text}, {value}")

    def test_agrees_with_python(self):
        maker = Expressions(15)
        expressions = [maker.make(4) for _ in range(CASES)]
        # What Python would compute for hours, or what is ill-conditioned, is no test of a calculator.
        expressions = [text for text in expressions if len(text) < 200 and text.count("factorial") == 0
                       and text.count("**") < 3 and not ("sin" in text or "cos" in text)]
        for expression, (is_error, text) in zip(expressions, calculate(expressions)):
            with self.subTest(expression):
                self.check(expression, is_error, text)
        self.assertGreater(len(expressions), CASES / 3)

    def test_known_cases(self):
        cases = ["-2 ** 2", "2 ** -1", "2 ** 3 ** 2", "-7 // 2", "-7 % 3", "7 % -3", "-7.5 // 2", "-7.5 % 2", "7.5 % -2",
                 "round(2.5)", "round(3.5)", "round(-2.5)", "round(2.675, 2)", "round(1234, -2)", "2 ** 100",
                 "123456789 * 987654321", "99999999999 * 99999999999", "0.1 + 0.2", "1e308 * 10", "sqrt(-1)", "log(0)",
                 "log(8, 2)", "factorial(20)", "factorial(-1)", "5 / 0", "5 // 0", "5 % 0", "5.0 % 0", "0 ** -1",
                 "(-8) ** 0.5", "1 +", "(1", "1)", "", "2 2", "foo(1)", "foo", "1..2", "1e", "gcd(12, 18)",
                 "lcm(4, 6)", "abs(-3)", "10 ** 400", "2 ** 64", "-(2 ** 64)", "int(-2.7)", "ceil(2.1)", "floor(-2.1)",
                 "max(1, 2.5, 2)", "sin(0)", "tau", "exp(1000)", "1_000_000 + 1", "1__0", "asin(2)", "sqrt(1, 2)"]
        for expression, (is_error, text) in zip(cases, calculate(cases)):
            with self.subTest(expression):
                self.check(expression, is_error, text)

    def test_what_models_write(self):
        self.assertEqual(calculate(["2^10", "3 × 4 − 2", "12 ÷ 4", "4 / 2", "sqroot(4)"]),
                         [(False, "1024"), (False, "10"), (False, "3"), (False, "2"), unittest.mock.ANY])

    def test_deep_nesting_is_refused(self):
        for text in ("(" * 10_000 + "1" + ")" * 10_000, "-" * 10_000 + "1", "2" + "**2" * 10_000, "abs(" * 5000):
            self.assertTrue(calculate([text])[0][0])


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/go/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/go/"))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = b"x" * 10_0000 if self.path == "/long" else f"page {self.path} of {self.headers['Host']}".encode()
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class HttpGet(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def get(self, *urls, allow):
        return call("http_get", [("http_get", {"url": url}) for url in urls], f"http_get.allow={allow}")

    def test_allowed_hosts_only(self):
        ours, name = f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"
        results = self.get(ours + "/a", name + "/a", ours + "/missing", ours + "/long", "file:///etc/passwd",
                           f"http://user@127.0.0.1:{self.port}@localhost/", allow="127.0.0.1")
        self.assertEqual(results[0][0], False)
        self.assertIn("page /a", results[0][1])
        self.assertTrue(results[1][0])
        self.assertIn("not an allowed host", results[1][1])
        self.assertEqual(results[2], (True, "Error: HTTP status 404"))
        self.assertFalse(results[3][0])
        self.assertIn("truncated", results[3][1])
        self.assertTrue(results[4][0])
        self.assertTrue(results[5][0])

    def test_ports_and_domains(self):
        ours = f"http://127.0.0.1:{self.port}/a"
        self.assertFalse(self.get(ours, allow=f"127.0.0.1:{self.port}")[0][0])
        self.assertTrue(self.get(ours, allow="127.0.0.1:1")[0][0])
        self.assertTrue(self.get(ours, allow="*.0.0.2;27.0.0.1;*.127.0.0.1")[0][0])
        self.assertFalse(self.get(ours, allow="example.org;*.0.0.1")[0][0])
        name = f"http://localhost:{self.port}/a"
        self.assertFalse(self.get(name, allow="LocalHost")[0][0])
        self.assertFalse(self.get(name, allow=f"LOCALHOST:{self.port}")[0][0])
        # one that is allowed fails otherwise: nobody listens there
        self.assertNotIn("not an allowed host", self.get("http://[::1]:1/a", allow="[::1]")[0][1])
        self.assertIn("not an allowed host", self.get("http://[::1]:1/a", allow="[::1]:2;[::2]")[0][1])

    def test_redirections_are_held_to_the_list(self):
        ours, name = f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}"
        inside, outside = self.get(f"{ours}/go/{ours}/b", f"{ours}/go/{name}/b", allow="127.0.0.1")
        self.assertEqual(inside[0], False)
        self.assertIn("page /b", inside[1])
        self.assertTrue(outside[0])
        self.assertIn("redirected to", outside[1])


class Listing(unittest.TestCase):
    def test_list_tools(self):
        done = ipw(None, "list", "tools", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [entry["name"] for entry in json.loads(done.stdout)["tools"]]
        self.assertEqual(names, ["calculator", "think", "file_read", "file_write", "shell", "python", "http_get", "mcp", "null"])
        self.assertIn("http_get", ipw(None, "list", "tools", "-v").stdout)

    def test_list_agents(self):
        """Every protocol that `ipw agent` takes, and programs."""
        rows = json.loads(ipw(None, "list", "agents", "--json").stdout)["agents"]
        said = ipw(None, "agent", "--protocol", "nothing").stderr
        for name in (row["name"] for row in rows):
            self.assertTrue(name == "exec" or name in said, (name, said))


if __name__ == "__main__":
    unittest.main()
