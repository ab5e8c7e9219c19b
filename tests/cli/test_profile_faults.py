#!/usr/bin/env python3
# test: real time, asan
"""ipw profile with faults of the server, the dataset, the directory and the disk."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Nvidia  # noqa: E402
from profiling import MODEL, TEXT, TOKENS, ProfileTest, Run  # noqa: E402
from program import IPW, NAN, ipw, main_parallel  # noqa: E402

ARROW = "data-00000-of-00001.arrow"


def listing(path):
    """All files below a directory with their content, except the owner of the lock."""
    return {str(p.relative_to(path)): p.name != ".lock" and p.is_file() and p.read_bytes()
            for p in Path(path).rglob("*")}


class FailedQuery(ProfileTest):
    """A failed query is recorded with the reason, and the run continues."""

    def mixed(self, fault, *more, **options):
        report = self.profile(*more, scenario="mixed", dataset=self.dataset(
            "first", f"second [{fault}]", "third"), **options)
        return report, self.run.records()["q000001"]

    def test_faults_of_server_fail_one_query(self):
        for fault, reason, status in (
                ("status:code=400", "the moon is full", 400),
                ("status:code=404,body=text", "the moon is full", 404),
                ("status:code=500,body=none", "500", 500),
                ("status:code=503,body=html", "503", 503),
                ("die:after=request", "", None),
                ("die:after=content", "", 200),
                ("die:how=close", "", 200),
                ("malformed", "", 200),
                ("error", "out of moons", 200),
                ("cut", "", 200),
                ("garbage", "", None)):
            with self.subTest(fault):
                report, record = self.mixed(fault, "--overwrite", "--grader", "exact")
                self.assertEqual((report["completed"], report["failed"]), (2, 1))
                own = record["ipw"]
                self.assertEqual(own["status"], "failed")
                self.assertTrue(own["error"])
                self.assertIn(reason, own["error"])
                self.assertNotIn("\n", own["error"])
                self.assertEqual(own.get("http_status"), status)
                self.assertNotIn("evaluation", record["model_metrics"][MODEL])
                seconds = record["model_metrics"][MODEL]["latency_metrics"]["total_query_seconds"]
                self.assertTrue(0 <= seconds < 30, seconds)
                self.assertLess(abs(own["started_at"] - time.time()), 60)
                self.assertEqual(set(self.run.records()), {"q000000", "q000001", "q000002"})

    def test_partial_answer_is_kept(self):
        _, record = self.mixed("die:after=content")
        self.assertEqual(record["model_answers"][MODEL], "Hello")

    def test_hanging_request_times_out(self):
        for after in ("request", "headers", "content"):
            report, record = self.mixed(f"hang:after={after}", "--timeout", 1, "--overwrite")
            self.assertEqual((report["completed"], report["failed"]), (2, 1))
            self.assertIn("1 s", record["ipw"]["error"])
            seconds = record["model_metrics"][MODEL]["latency_metrics"]["total_query_seconds"]
            self.assertGreater(seconds, 0.9)

    def test_huge_line_fails_one_query(self):
        report, record = self.mixed("huge_line:mb=100")
        self.assertEqual((report["completed"], report["failed"]), (2, 1))
        self.assertTrue(record["ipw"]["error"])
        self.assertLess((self.run.path / "records.jsonl").stat().st_size, 1 << 20)

    def test_long_answer_is_kept_and_too_long_one_fails(self):
        report, record = self.mixed("many:mb=4")
        self.assertEqual((report["queries"], report["completed"]), (3, 3))
        self.assertEqual(len(record["model_answers"][MODEL]), 4 << 20)
        # Six bytes each in JSON, stored twice.
        report, record = self.mixed("many:mb=23,piece=\1", "--overwrite")
        self.assertEqual((report["queries"], report["completed"], report["failed"]), (3, 2, 1))
        self.assertIn("too long for the journal", record["ipw"]["error"])
        self.assertGreater(record["ipw"]["pieces"], 0)

    def test_missing_token_counts_are_null(self):
        report, record = self.mixed("no_usage")
        self.assertEqual(report["completed"], 3)
        self.assertEqual(record["model_answers"][MODEL], TEXT)
        metrics = record["model_metrics"][MODEL]
        self.assertNotIn("token_metrics", metrics)
        self.assertNotIn("throughput_tokens_per_sec", metrics["latency_metrics"])
        self.assertEqual(report["statistics"]["output_tokens"]["count"], 2)
        self.assertEqual(report["output_tokens"], 2 * TOKENS)

    def test_impossible_counts_are_unknown(self):
        for count, words in ((0, "0 output tokens"), (10**6, "1000000 output tokens")):
            report, record = self.mixed(f"miscounted:count={count}", "--overwrite")
            self.assertEqual(report["completed"], 3)
            self.assertIn(words, record["ipw"]["tokens_note"])
            self.assertEqual(report["output_tokens"], 2 * TOKENS)
            self.assertIn("tokens unknown for 1 of 3 queries", self.done.stderr)

    def test_run_without_token_counts(self):
        report = self.profile(scenario="no_usage")
        for key in ("output_tokens", "input_tokens", "output_tokens_per_s"):
            self.assertIsNone(report[key], key)
        self.assertNotRegex(self.done.stderr, NAN)
        self.assertIsNone(report["joules_per_output_token"])
        self.assertEqual(report["tokens_note"], "the server sent no usage")
        self.assertEqual(report["chunks"], 4 * TOKENS)  # one chunk each
        line, = [line for line in self.done.stderr.split("\n") if "tokens unknown" in line]
        self.assertIn("--param stream=false", line)
        self.assertIn(f"{4 * TOKENS}, of one token or more each", self.done.stderr)
        quality = json.loads(ipw(self.on, "analyze", "--json", "--analysis", "quality", self.run.path).stdout)
        self.assertIn("the server sent no usage", json.dumps(quality))
        whole = self.profile("--overwrite", "--param", "stream=false", scenario="whole")
        self.assertEqual((whole["output_tokens"], whole["tokens_note"]), (4 * TOKENS, None))

    def test_empty_answer_is_a_failure(self):
        """Also if the stream ends early: counted as an answer, it would seem cheap and wrong."""
        for fault, reason in (("empty", "empty (finish_reason: stop)"), ("interrupted", "finish"),
                              ("interrupted:pieces=3", "finish"), ("cut", "finish")):
            report, record = self.mixed(fault, "--overwrite", "--grader", "exact")
            self.assertEqual((report["completed"], report["failed"]), (2, 1), fault)
            self.assertIn(reason, record["ipw"]["error"])
            self.assertEqual(report["failure_reason"], record["ipw"]["error"])
            self.assertNotIn("evaluation", record["model_metrics"][MODEL])
            self.assertEqual(report["statistics"]["latency_s"]["count"], 2)
            self.assertEqual(report["incorrect"], 2)  # of those that were answered
            self.assertIn("1 of 3 queries failed", self.done.stderr)

    def test_unfinished_ollama_answers_fail(self):
        report = self.profile("--client", "ollama", "--model", "tiny-1b", scenario="mixed",
                              dataset=self.dataset("first", "second [interrupted:pieces=3]", "third [empty]"))
        self.assertEqual((report["completed"], report["failed"]), (1, 2))

    def test_answer_truncated_at_token_limit_is_completed(self):
        report = self.profile("--param", "max_tokens=2", "--max-failed", "0")
        self.assertEqual((report["completed"], report["failed"], report["cut"]), (4, 0, 4))
        self.assertIn("4 answers were truncated at the token limit", self.done.stderr)

    def test_several_choices_are_rejected(self):
        self.profile("--param", "n=2", code=1)
        self.assertIn("n=2", self.run.records()["q000000"]["ipw"]["error"])
        self.profile("--param", "n=2", "--warmup-queries", 1, "--overwrite", code=2)
        self.assertIn("n=2", self.done.stderr)

    def test_max_failed_sets_exit_status(self):
        rows = [f"question {n}" for n in range(19)] + ["last [status:code=500]"]
        for option, code in (("5%", 0), ("4%", 1), ("1", 0), ("0", 1), (None, 0)):
            limit = ["--max-failed", option] if option else ["--max-failed", "5%"]
            self.profile("--overwrite", *limit, scenario="mixed", dataset=self.dataset(*rows), code=code)
        self.assertEqual(self.done.returncode, 0)
        arguments = self.arguments("--overwrite", scenario="mixed", dataset=self.dataset("a", "b [status:code=500]"))
        at = arguments.index("--max-failed")
        done = ipw(self.on, *arguments[:at], *arguments[at + 2:])
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 of 2 queries failed, more than --max-failed 5% allows", done.stderr)
        for wrong in ("x", "-1", "101%", "%", ""):
            self.profile("--overwrite", "--max-failed", wrong, code=2)

    def test_transfer_encodings_and_stream_variants(self):
        for scenario in ("normal:gzip=1", "normal:frame=close", "normal:split=1", "normal:eol=crlf",
                     "whole", "no_done", "old", "new"):
            self.profile("--overwrite", "--param", "max_tokens=100", scenario=scenario)
            self.assertEqual(set(self.run.answers().values()), {TEXT}, scenario)

    def test_reasoning_is_stored_separately(self):
        _, record = self.mixed("thinking")
        self.assertEqual(record["model_answers"][MODEL], "42")
        self.assertIn("reasoning?", record["reasoning"])


class Retries(ProfileTest):
    def test_interrupted_stream_is_retried(self):
        for scenario in ("interrupted", "empty", "cut"):
            report = self.profile("--retries", 2, "--max-failed", 0, "--overwrite",
                                  scenario=f"flaky:fails=1,by={scenario},pieces=2",
                                  dataset=self.dataset(f"question 1 {scenario}", f"question 2 {scenario}"))
            self.assertEqual((report["completed"], report["failed"]), (2, 0), scenario)
            record = self.run.records()["q000001"]
            self.assertEqual(record["ipw"]["attempts"], 2)
            self.assertEqual(record["model_answers"][MODEL], TEXT)

    def test_transient_failure_is_retried(self):
        began = time.monotonic()
        report = self.profile("--retries", 2, "--max-queries", 1,
                              scenario="flaky:fails=2,code=503,retry_after=0.2")
        self.assertGreater(time.monotonic() - began, 0.4)
        self.assertEqual((report["completed"], report["failed"]), (1, 0))
        record = self.run.records()["q000000"]
        self.assertEqual(record["ipw"]["attempts"], 3)
        self.assertEqual(set(record["ipw"]["failed_attempts"]), {"1", "2"})
        self.assertEqual(self.service.times("question 0"), 3)

    def test_retry_after_is_respected(self):
        began = time.monotonic()
        self.profile("--retries", 1, "--max-queries", 1,
                     scenario="flaky:fails=1,code=429,retry_after=1")
        self.assertGreater(time.monotonic() - began, 1)

    def test_retries_are_limited(self):
        report = self.profile("--retries", 1, "--max-queries", 1, code=1,
                              scenario="flaky:fails=9,code=503,retry_after=0")
        self.assertEqual(report["failed"], 1)
        self.assertEqual(self.service.times("question 0"), 2)
        self.assertEqual(self.run.records()["q000000"]["ipw"]["attempts"], 2)

    def test_permanent_failures_are_not_retried(self):
        self.profile("--retries", 3, "--max-queries", 1, code=1, scenario="flaky:fails=9,code=400")
        self.assertEqual(self.service.times("question 0"), 1)


class UnavailableServer(ProfileTest):
    def test_no_server_is_listening(self):
        self.profile("--client-base-url", "http://127.0.0.1:9", code=1)
        self.assertErrorMessage("127.0.0.1:9")
        self.assertFalse(self.out.exists())

    def test_server_that_rejects_or_is_not_http(self):
        for scenario in ("loading", "garbage", "status:code=500"):
            self.profile(code=1, scenario=scenario)
            self.assertErrorMessage(f"127.0.0.1:{self.service.port}")
            self.assertFalse(self.out.exists(), scenario)

    def test_server_that_hangs(self):
        began = time.monotonic()
        self.profile("--timeout", 1, code=1, scenario="hang:after=request,all=1")
        self.assertErrorMessage("no response within 1 s")
        self.profile("--timeout", 60, code=1, scenario="hang:after=request,all=1")
        self.assertLess(time.monotonic() - began, 60)
        self.assertIn("no response within 10 s", self.done.stderr)
        # Without a terminal, plain progress lines are printed occasionally.
        self.assertRegex(self.done.stderr, r"(?m)\Aipw profile: preparing [\d.]+ s$")

    def test_run_fails_if_all_queries_fail(self):
        report = self.profile(code=1, scenario="mixed", dataset=self.dataset(
            "a [error]", "b [die]", "c [status:code=500]"))
        self.assertEqual((report["completed"], report["failed"]), (0, 3))
        self.assertIsNone(report["accuracy"])
        self.assertIsNone(report["time_to_first_token_s"]["p50"])
        self.assertIn("every query failed", self.done.stderr)
        self.assertEqual(len(self.run.records()), 3)

    def test_failed_warm_up_has_reason(self):
        self.profile("--warmup-queries", 2, code=1, scenario="mixed",
                     dataset=self.dataset("a [status:code=500]"))
        self.assertErrorMessage("warm-up", "the moon is full")
        self.assertEqual(list(self.out.iterdir()), [])  # no run was started

    def test_failed_warm_up_keeps_existing_run(self):
        rows = self.dataset("question 0 [status:code=500]", "question 1")
        self.profile(scenario="mixed", dataset=rows)
        before = {path: path.read_bytes() for path in self.directory().iterdir()}
        self.profile("--warmup-queries", 1, "--resume", code=1, scenario="mixed", dataset=rows)
        self.assertEqual(set(self.directory().iterdir()), set(before))


class Datasets(ProfileTest):
    def file(self, content, name="rows.jsonl"):
        path = self.on.root / name
        path.write_bytes(content)
        return path

    def test_missing_and_empty_dataset(self):
        for path, words in ((self.on.root / "none.jsonl", "none.jsonl"),
                            (self.file(b"", "empty.jsonl"), "empty.jsonl"),
                            (self.file(b"\n\n", "blank.jsonl"), "blank.jsonl")):
            self.profile(code=2 if "none" in words else 1, dataset=path)
            self.assertErrorMessage(words)
            self.assertFalse(self.out.exists())

    def test_crlf_and_byte_order_mark(self):
        rows = b'{"problem": "p\xc3\xb6", "answer": "x"}\r\n{"problem": "q", "answer": "y"}\r\n'
        report = self.profile(dataset=self.file(b"\xef\xbb\xbf" + rows))
        self.assertEqual(report["queries"], 2)
        self.assertEqual(self.service.questions()[-2:], ["p\u00f6", "q"])

    def test_unusable_rows_are_skipped_and_reported(self):
        rows = (b'{"problem": "p"}', b'{"answer": "x"}', b'{"problem": ', b'{"problem": "z"}')
        report = self.profile(dataset=self.file(b"\n".join(rows)))
        self.assertEqual(report["queries"], 2)
        self.assertEqual(self.service.questions()[-2:], ["p", "z"])
        summary = self.run.summary()["ipw"]
        self.assertEqual(summary["rows_left_out"], 2)
        self.assertIn("rows.jsonl", summary["first_row_left_out"])
        self.assertIn("warning: 2 rows of the dataset skipped: ", self.done.stderr)
        self.assertIn(summary["first_row_left_out"], self.done.stderr)
        report = self.profile("--overwrite", "--repeat", 3, dataset=self.file(b"\n".join(rows)))
        self.assertEqual(report["queries"], 6)
        self.assertEqual(self.run.summary()["ipw"]["rows_left_out"], 2)  # not once per repeat

    def test_invalid_utf8_is_replaced(self):
        self.profile(dataset=self.file(b'{"problem": "a\xff\xfeb"}'))
        self.assertRegex(self.service.questions()[-1], "^a\ufffd+b$")
        self.assertEqual(self.run.records()["q000000"]["problem"], self.service.questions()[-1])

    def test_csv_dataset(self):
        path = self.file(b"\xef\xbb\xbfquestion,answer\r\n\"a,\"\"b\"\"\",c\r\n", "rows.csv")
        self.profile(dataset=path)
        self.assertEqual(self.service.questions()[-1], 'a,"b"')

    def test_special_characters_round_trip(self):
        odd = 'tab\t quote" back\\ nul-free \u2028 \U0001f600 </script>'
        self.profile(dataset=self.dataset(odd))
        self.assertEqual(self.service.questions()[-1], odd)
        self.assertEqual(self.run.records()["q000000"]["problem"], odd)


class Directories(ProfileTest):
    """Existing files are not modified without confirmation."""

    def test_a_run_is_not_replaced_without_confirmation(self):
        self.profile()
        before = listing(self.directory())
        self.profile(code=2)
        self.assertErrorMessage("already holds a run", "--resume", "--overwrite")
        self.assertEqual(listing(self.directory()), before)

    def test_overwrite_and_yes_replace_run(self):
        for word in ("--overwrite", "--yes"):
            self.profile()
            report = self.profile(word, "--max-queries", 1)
            self.assertEqual(report["queries"], 1)
            self.assertEqual(len(self.run.records()), 1)
            shutil.rmtree(self.out)

    def test_replacing_a_resumed_run_removes_its_files(self):
        self.profile("--max-queries", 1)
        self.profile("--resume")
        self.assertTrue((self.directory() / "samples-2.csv").exists())
        self.profile("--overwrite")
        self.assertFalse((self.directory() / "samples-2.csv").exists())

    def test_directory_deleted_during_run_is_reported(self):
        process = self.start(dataset=self.numbered(40), scenario="normal:gap_ms=10")
        self.until(lambda: self.service.times("question 1"), "a second question")
        shutil.rmtree(self.directory())
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("was deleted or moved while the run was writing to it", err)

    def test_directory_with_foreign_files_is_refused(self):
        self.profile()
        where = self.directory()
        shutil.rmtree(where)
        (where / "deep").mkdir(parents=True)
        (where / "deep" / "thesis.tex").write_text("years of work")
        before = listing(where)
        for word in ((), ("--overwrite",), ("--resume",), ("--yes",)):
            self.profile(*word, code=2)
            self.assertErrorMessage("files that do not belong to a run", str(where))
            self.assertEqual(listing(where), before)

    def test_foreign_file_in_run_survives_replacement(self):
        self.profile()
        (self.directory() / "notes.txt").write_text("mine")
        self.profile("--overwrite")
        self.assertEqual((self.directory() / "notes.txt").read_text(), "mine")

    def test_does_not_write_through_symlinks(self):
        """Symlinks planted in a run directory do not redirect writes of the next start."""
        outside = self.on.root / "outside"
        outside.mkdir()
        victim = outside / "precious"
        for name, words in ((".lock", ()), (".lock", ("--resume",)), (".lock", ("--overwrite",)),
                            ("spans.jsonl", ("--resume",)), ("samples-2.csv", ("--resume",)),
                            ("records.jsonl", ("--resume",)), ("summary.json", ("--resume",)),
                            ("state.json", ("--resume",)), (ARROW, ("--resume",))):
            with self.subTest(name=name, words=words):
                shutil.rmtree(self.out, ignore_errors=True)
                self.profile("--max-queries", 2)
                link = self.directory() / name
                victim.write_bytes(link.read_bytes() if link.exists() else b"precious")
                before = listing(outside)
                link.unlink(missing_ok=True)
                link.symlink_to(victim)
                self.profile(*words, code=1)
                self.assertErrorMessage(f"{name} is a symbolic link")
                self.assertEqual(listing(outside), before)
                self.assertTrue(link.is_symlink())
        # Replacing the run removes the links, not their targets.
        shutil.rmtree(self.out)
        self.profile("--max-queries", 2)
        for name in ("summary.json", "samples.csv", "report.html"):
            (self.directory() / name).unlink(missing_ok=True)
            (self.directory() / name).symlink_to(victim)
        before = listing(outside)
        self.profile("--overwrite")
        self.assertEqual(listing(outside), before)
        self.assertFalse((self.directory() / "summary.json").is_symlink())

    def test_file_instead_of_directory(self):
        self.out.write_text("a file")
        self.profile(code=1)
        self.assertErrorMessage("not a directory")

    def test_empty_output_directory_is_rejected(self):
        self.profile("--output-dir", "", code=2)
        self.assertErrorMessage("--output-dir is empty")

    def test_unwritable_output_directory(self):
        self.out.mkdir(mode=0o555)
        if os.geteuid() == 0:  # root ignores the mode
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", self.out],
                                     capture_output=True, check=False)
            if mounted.returncode:
                self.skipTest("root, and cannot mount a read-only file system here")
            self.addCleanup(subprocess.run, ["umount", "-l", self.out], check=False)
        self.profile(code=1)
        self.assertErrorMessage(str(self.out))
        self.assertEqual(list(self.out.iterdir()), [])

    def test_concurrent_run_is_refused(self):
        first = self.start("--concurrency", 1, scenario="normal:gap_ms=200")
        self.until(lambda: self.service.now > 0 and list(self.out.glob("*/records.jsonl")),
                   "the first run")
        for word in ("--resume", "--overwrite"):
            self.profile(word, code=1)
            self.assertErrorMessage("another run is writing", str(first.pid))
        out, err = first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0, err)
        self.assertEqual(json.loads(out)["completed"], 4)


class FullDisks(ProfileTest):
    """A clear error, and a valid journal that can be resumed."""

    ROWS = 400

    def long(self):
        return self.dataset(*(f"{n} " + "long " * 200 for n in range(self.ROWS)))

    def check(self, process, dataset, cause="(?i)no space|full"):
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("ipw profile: ", err)
        self.assertRegex(err, cause)
        for name in ("records.jsonl", "spans.jsonl"):
            text = (self.directory() / name).read_text()
            self.assertTrue(text.endswith("\n"))
            for line in text.splitlines():
                json.loads(line)
        temporary = [p.name for p in self.directory().iterdir() if p.name.endswith(".tmp")]
        self.assertEqual(temporary, [])
        done = set(Run(self.directory()).records())
        self.assertTrue(0 < len(done) < self.ROWS, len(done))
        return done

    def test_full_file_system(self):
        self.out.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=640k", "none", self.out],
                          capture_output=True, check=False).returncode:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.out], check=False)
        dataset = self.long()
        done = self.check(self.start("--concurrency", 2, dataset=dataset), dataset)
        subprocess.run(["mount", "-o", "remount,size=64m", self.out], check=True)
        self.service.requests.clear()
        report = self.profile("--resume", "--concurrency", 4, dataset=dataset)
        self.assertEqual(report["completed"], self.ROWS)
        asked = {int(q.split()[0]) for q in self.service.questions() if "long" in q}
        self.assertEqual(asked, set(range(self.ROWS)) - {int(key[1:]) for key in done})

    def test_file_size_limit(self):
        dataset = self.long()
        process = subprocess.Popen(
            [IPW, *map(str, self.arguments("--json", dataset=dataset))], text=True,
            env=self.on.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)))
        self.addCleanup(self.stop, process)
        self.check(process, dataset, "ulimit -f")

    def limited(self, machine, bytes_most, *more, **options):
        """Runs with a file size limit; returns the report, or None."""
        arguments = self.arguments("--json", *more, **options)
        self.done = subprocess.run(
            [IPW, *map(str, arguments)], text=True, env=machine.environment(), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=60, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_most, bytes_most)))
        return json.loads(self.done.stdout) if self.done.stdout else None

    def assertInterrupted(self, report):
        """The run is marked interrupted, and all its queries have energies."""
        self.assertEqual(self.done.returncode, 1, self.done.stderr)
        self.assertIn("the run was interrupted, and --resume continues it", self.done.stderr)
        lines = Run(self.directory()).lines()
        energies = {line["key"] for line in lines if line["kind"] == "energy"}
        self.assertLessEqual({line["key"] for line in lines if line["kind"] == "query"}, energies)
        self.assertEqual(lines[-1]["kind"], "end")
        if report:
            self.assertIs(report["interrupted"], True)
        if (self.directory() / "summary.json").exists():
            quality = ipw(self.on, "analyze", "--json", "--analysis", "quality", self.directory()).stdout
            self.assertIn('"interrupted: --resume continues it"', quality)

    def assertNothingLost(self, report, count):
        self.assertEqual((report["completed"], report["energy_known"]), (count, count))
        self.assertIs(report["interrupted"], False)
        joules = report["joules"]
        parts = sum(joules[part] or 0 for part in ("queries", "failed", "idle", "unattributed"))
        self.assertAlmostEqual(parts / report["energy"]["joules"], 1, delta=1e-6)
        self.assertLess(report["conservation_error"], 1e-6)
        self.assertEqual(joules["failed"], 0)  # no query was completed
        # An answer whose line did not fit was requested again: its first energy belongs to no record.
        lines = self.run.lines()
        lines = lines[:[line["kind"] for line in lines].index("end")]
        kept = {line["key"] for line in lines if line["kind"] == "query"}
        refused = sum(line["ipw"]["energy"]["joules"] for line in lines
                      if line["kind"] == "energy" and line["key"] not in kept)
        self.assertGreaterEqual(joules["unattributed"], refused * (1 - 1e-9))
        if refused:
            self.assertIn(f"{refused:.3g} J of requests without a record", report["energy"]["note"])
        else:
            self.assertIsNone(report["energy"]["note"])

    def test_no_energy_is_lost(self):
        """Wherever the journal ends, it has the energies of its queries, or the run stops earlier."""
        machine = self.machine(Nvidia, "power 0 constant 100")
        dataset = self.numbered(40)
        for limit in range(30_000, 75_000, 9_000):
            with self.subTest(limit):
                shutil.rmtree(self.out, ignore_errors=True)
                options = {"scenario": "normal:gap_ms=2", "dataset": dataset}
                self.assertInterrupted(self.limited(machine, limit, "-c", 2, **options))
                self.assertNothingLost(self.profile("--resume", "-c", 2, machine=machine, **options), 40)

    def test_no_energy_is_lost_on_a_full_file_system(self):
        machine = self.machine(Nvidia, "power 0 constant 100")
        dataset = self.numbered(60)
        for size in ("96k", "140k", "200k"):
            with self.subTest(size):
                self.out.mkdir(exist_ok=True)
                if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.out],
                                  capture_output=True, check=False).returncode:
                    self.skipTest("cannot mount a small file system here")
                self.addCleanup(subprocess.run, ["umount", "-l", self.out], check=False, capture_output=True)
                options = {"scenario": "normal:gap_ms=2", "dataset": dataset, "machine": machine}
                process = self.start("-c", 2, **options)
                out, err = process.communicate(timeout=60)
                self.done = subprocess.CompletedProcess([], process.returncode, out, err)
                self.assertInterrupted(json.loads(out) if out else None)
                subprocess.run(["mount", "-o", "remount,size=64m", self.out], check=True)
                self.assertNothingLost(self.profile("--resume", "-c", 2, **options), 60)
                subprocess.run(["umount", "-l", self.out], check=True)

    def test_energy_of_lost_records_is_unattributed(self):
        """Total energy at 100 W against records of which a part is lost: it belongs to neither failed nor completed
        queries."""
        machine = self.machine(Nvidia, "power 0 constant 100")
        options = {"scenario": "normal:gap_ms=5", "dataset": self.numbered(20), "machine": machine}
        process = self.start(**options)
        self.until(lambda: self.service.times("question 12"), "a journal of some length")
        os.truncate(next(self.out.glob("*/records.jsonl")), 0)
        out, err = process.communicate(timeout=60)
        report = json.loads(out)
        joules = report["joules"]
        self.assertEqual(joules["failed"], 0, err)
        self.assertGreater(joules["unattributed"], 0.3 * report["energy"]["joules"])
        self.assertIn("without a record are unattributed", report["energy"]["note"])
        parts = sum(joules[part] or 0 for part in ("queries", "failed", "idle", "unattributed"))
        self.assertAlmostEqual(abs(parts / report["energy"]["joules"] - 1), report["conservation_error"], delta=1e-9)

    def test_unwritable_report_fails(self):
        done = ipw(self.on, *self.arguments("-o", "/dev/full"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("/dev/full", done.stderr)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = ipw(self.on, *self.arguments("--json", "--overwrite"), stdout=full,
                       stderr=subprocess.PIPE, capture_output=False)
        self.assertEqual(done.returncode, 1, done.stderr)


if __name__ == "__main__":
    main_parallel()
