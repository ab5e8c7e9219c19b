#!/usr/bin/env python3
# test: real time, asan
"""Secrets are not leaked: what each of two servers receives, and what a run writes."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from machines import Machine
from profiling import MODEL, ScenarioHandler, ProfileTest, Service
from program import IPW, TIMEOUT_S, MachineTest, ipw

KEY, HEADER, PASSWORD, TOKEN = "sk-api-KEY-1", "hdr-SECRET-2", "url-PASS-3", "hf-TOKEN-4"
SECRETS = (KEY, HEADER, PASSWORD, TOKEN)


class Echo(ScenarioHandler):
    """Scenarios that disclose what they received.

    echo_error   401 with every credential in the message;  echo_answer: all of them as the answer
    elsewhere    GET is redirected to the other server, named by port=
    """

    def credentials(self):
        names = ("Authorization", "X-Api-Key", "X-Other")
        return " ".join(self.headers.get(name, "-") for name in names) + f" {PASSWORD} {TOKEN}"

    def scenario_echo_error(self):
        self.document({"error": {"message": "x" * 60 + f"Incorrect key: {self.credentials()}"}}, 401)

    def scenario_echo_answer(self):
        self.stream([self.credentials()])

    def scenario_elsewhere(self):
        self.document(b"", 302, Location=f"http://127.0.0.1:{self.options['port']}/normal{self.rest}")

    def answer_other(self):
        return False if self.scenario == "elsewhere" else super().answer_other()


class EchoService(Service):
    def __init__(self):
        super().__init__()
        self.RequestHandlerClass = Echo


def received(service):
    with service.lock:
        return json.dumps(service.requests)


class Secrets(ProfileTest):
    @classmethod
    def setUpClass(cls):
        cls.service, cls.other = EchoService(), EchoService()
        for service in (cls.service, cls.other):
            cls.addClassCleanup(service.server_close)
            cls.addClassCleanup(service.shutdown)

    def setUp(self):
        super().setUp()
        with self.other.lock:
            self.other.requests.clear()

    def assertNoSecretIn(self, folder, *texts):
        """No secret is in any file below, nor in the output."""
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        self.assertTrue(files)
        for where, data in [(str(p), p.read_bytes()) for p in files] + [("output", t.encode()) for t in texts]:
            for secret in SECRETS:
                self.assertNotIn(secret.encode(), data, where)

    def secret_run(self, scenario, *more, **options):
        url = self.service.url(scenario).replace("://", f"://me:{PASSWORD}@")
        environment = {"IPW_API_KEY": KEY, "MY_HEADER": HEADER, "HF_TOKEN": TOKEN, "IPW_LOG": "debug"}
        return self.profile("--client-base-url", url, "--client-param", "header.X-Api-Key=env:MY_HEADER",
                            "--client-param", f"header.X-Other={HEADER}", *more, env=environment, **options)

    def test_keys_echoed_by_server_are_not_saved(self):
        questions = self.dataset("is it? [echo_error]", "and now? [echo_answer]", "plain")
        self.secret_run("mixed", dataset=questions)
        sent = received(self.service)
        self.assertIn(KEY, sent)
        self.assertIn(HEADER, sent)
        records = self.run.records()
        self.assertIn("Incorrect key: Bearer *** ***", records["q000000"]["ipw"]["error"])
        self.assertIn("***", records["q000001"]["model_answers"][MODEL])
        report = ipw(self.on, "report", self.run.path)
        analyzed = ipw(self.on, "analyze", "--json", self.run.path)
        exported = ipw(self.on, "export", self.run.path, "--to", "csv", "-o", self.out / "all.csv")
        texts = [text for done in (self.done, report, analyzed, exported) for text in (done.stdout, done.stderr)]
        self.assertNoSecretIn(self.out, *texts)

    def test_error_before_the_run_does_not_reveal_key(self):
        self.profile("--client-base-url", self.service.url("status:code=401"), code=1, env={"IPW_API_KEY": KEY})
        self.secret_run("echo_error:all=1", code=1)
        self.assertIn("Incorrect key", self.done.stderr)
        for secret in SECRETS:
            self.assertNotIn(secret, self.done.stderr)

    def test_headers_are_not_sent_to_other_origin(self):
        port = self.other.server_address[1]
        self.profile("--client-base-url", self.service.url(f"elsewhere:port={port}"), "--client-param",
                     f"header.X-Api-Key={HEADER}", env={"IPW_API_KEY": KEY}, code=1)  # POST is not redirected
        self.assertIn(HEADER, received(self.service))
        with self.other.lock:
            self.assertTrue(self.other.requests)
        for secret in SECRETS:
            self.assertNotIn(secret, received(self.other))

    def test_headers_are_sent_after_redirect_to_same_origin(self):
        own = self.service.server_address[1]
        self.profile("--client-base-url", self.service.url(f"elsewhere:port={own}"), "--client-param",
                     f"header.X-Api-Key={HEADER}", code=1)
        with self.service.lock:
            followed = [r for r in self.service.requests if r["path"].startswith("/normal")]
        self.assertTrue(followed)
        self.assertIn(HEADER, json.dumps(followed))

    def test_headers_from_files(self):
        place = self.on.put("/header.txt", HEADER + "\n")
        self.profile("--client-param", f"header.X-Api-Key=@{place}")
        self.assertIn(HEADER, received(self.service))
        self.assertNoSecretIn(self.out, self.done.stdout, self.done.stderr)
        self.profile("--overwrite", "--client-param", "header.X-Api-Key=@/no/such/file", code=2)
        self.assertIn("/no/such/file", self.done.stderr)
        self.profile("--overwrite", "--client-param", "header.X-Api-Key=env:IPW_NO_SUCH", code=2)
        self.assertIn("IPW_NO_SUCH is not set", self.done.stderr)

    def test_run_with_headers_can_be_resumed(self):
        self.secret_run("normal", "--max-queries", 1)
        report = self.secret_run("normal", "--resume")
        self.assertEqual(report["completed"], 4)
        self.assertNoSecretIn(self.out)

    def test_dataset_password_is_not_saved(self):
        cache = self.on.root / "cache"
        port = self.other.server_address[1]
        rows = {"rows": [{"row_idx": 0, "row": {"question": "q", "answer": "a"}}], "num_rows_total": 1}
        Echo.do_GET = lambda handler: handler.dataset(rows) if "/rows?" in handler.path else handler.answer()
        Echo.dataset = lambda handler, value: (handler.read_path(), handler.document(value))
        self.addCleanup(delattr, Echo, "do_GET")
        self.profile("--dataset", "hub", "--dataset-param", "dataset=a/b,config=c,split=s", "--dataset-param",
                     f"base_url=http://me:{PASSWORD}@127.0.0.1:{port}",
                     env={"HF_TOKEN": TOKEN, "XDG_CACHE_HOME": str(cache), "IPW_LOG": "debug"})
        self.assertEqual(self.run.summary()["profiler_config"]["dataset_params"]["base_url"],
                         f"http://127.0.0.1:{port}")
        self.assertNoSecretIn(self.out, self.done.stdout, self.done.stderr)
        for path in cache.rglob("*"):
            self.assertNotIn(PASSWORD, str(path))


class Commands(MachineTest):
    def test_saved_command_has_no_secrets(self):
        on = self.machine(Machine)
        out = on.root / "out"
        script = ["sh", "-c", 'test "$1" = --api-key && test "$2" = ' + HEADER, "x", "--api-key", HEADER,
                  f"http://me:{PASSWORD}@127.0.0.1/", f"Bearer {KEY}"]
        done = subprocess.run([IPW, "run", "--output-dir", str(out), "--", *script], capture_output=True,
                              text=True, env={**on.environment(), "SERVICE_API_KEY": KEY}, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)  # the server received them
        saved = [path for path in out.rglob("*") if path.is_file()]
        self.assertTrue(saved)
        for secret in (KEY, PASSWORD):
            self.assertNotIn(secret, done.stderr)
            for path in saved:
                self.assertNotIn(secret.encode(), path.read_bytes(), path)
        self.assertNotIn(f"--api-key {HEADER}", done.stderr)

    def test_password_in_malformed_database_address(self):
        """The library that opens it takes parts of such a password for a port or a host, and quotes them."""
        with tempfile.TemporaryDirectory() as folder:
            for address in ("postgres://u:PASS/x@127.0.0.1:1/e", "postgres://u:a@PASS@127.0.0.1:1/e", "postgres://u:PASS@[b/e",
                            "postgres://u:PASS%zz@127.0.0.1:1/e", "postgres://127.0.0.1:1/e?password=PASS=x"):
                for words in (["db", "list", "--db", address], ["db", "init", address], ["serve", "--db", address],
                              ["run", "--db", address, "--output-dir", folder, "--", "true"]):
                    done = subprocess.run([IPW, *words], capture_output=True, text=True, timeout=TIMEOUT_S)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                    self.assertIn("%2F", done.stderr)
                    self.assertNotIn("PASS", done.stdout + done.stderr, words)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
