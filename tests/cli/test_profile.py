#!/usr/bin/env python3
# test: real time
"""Command-line tests of ipw profile: report, summary and options, with a fake server."""

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from profiling import MODEL, TEXT, TOKENS, ProfileTest, Run  # noqa: E402
from program import deep_folder, ipw, main_parallel  # noqa: E402

CONTRACT = {"output_dir", "queries", "completed", "failed", "accuracy", "energy",
            "joules_per_output_token", "output_tokens_per_s", "ipj", "ipw", "time_to_first_token_s",
            "conservation_error"}
ENERGY = {"joules", "plus_minus", "method", "source", "coverage", "idle_joules", "active_joules"}
SUMMARY = {"model", "profiler_config", "dataset", "dataset_name", "hardware_label", "generated_at",
           "total_queries", "system_info", "gpu_info", "output_dir", "versions", "client_info"}
CONFIG = {"dataset_id", "client_id", "client_base_url", "dataset_params", "client_params", "model",
          "output_dir", "max_concurrency", "max_queries", "additional_parameters", "warmup_queries"}


def quantile(values, p):
    """Like numpy's default: linear interpolation."""
    values = sorted(values)
    at = p * (len(values) - 1)
    low = math.floor(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


class Report(ProfileTest):
    """Keys and figures that scripts rely on."""

    def graded(self):
        rows = [{"problem": f"{n} [say:text={n}]", "answer": str(n if n % 3 else -1)}
                for n in range(9)]
        return self.dataset(*rows, {"problem": "[status:code=500]", "answer": "?"})

    def test_report_has_every_key(self):
        report = self.profile()
        self.assertLessEqual(CONTRACT, set(report))
        self.assertLessEqual(ENERGY, set(report["energy"]))
        self.assertEqual(set(report["time_to_first_token_s"]), {"p50", "p95"})
        self.assertEqual((report["queries"], report["completed"], report["failed"]), (4, 4, 0))

    def test_output_directory_may_have_a_long_path(self):
        self.out = deep_folder(self.on.root)
        report = self.profile("--max-queries", 2)
        self.assertEqual((report["completed"], Path(report["output_dir"]).parent), (2, self.out))
        self.assertEqual(self.run.summary()["output_dir"], report["output_dir"])
        report = self.profile("--resume", "--max-queries", 4)
        self.assertEqual((report["completed"], len(self.run.records())), (4, 4))

    def test_energy_is_null_without_sensor(self):
        report = self.profile("--grader", "exact")
        self.assertUnknown(report["energy"])
        for key in ("joules_per_output_token", "ipj", "ipw", "conservation_error", "busy_watts",
                    "joules_per_query"):
            self.assertIsNone(report[key], key)
        for key, value in report["joules"].items():
            self.assertIsNone(value, key)
        for record in self.run.records().values():
            self.assertUnknown(record["ipw"]["energy"])
            self.assertNotIn("energy_metrics", record["model_metrics"][MODEL])  # nothing is known

    def test_figures_agree_with_records(self):
        report = self.profile("--grader", "exact", "--concurrency", 3, scenario="mixed",
                              dataset=self.graded())
        records = self.run.records().values()
        good = [r for r in records if r["ipw"]["status"] == "completed"]
        verdicts = [v for v in self.run.verdicts().values() if v is not None]
        self.assertEqual((report["queries"], report["completed"], report["failed"]), (10, 9, 1))
        self.assertEqual((len(records), len(good)), (10, 9))
        self.assertEqual(report["accuracy"], sum(verdicts) / len(verdicts))
        self.assertEqual(Counter(verdicts), {True: 6, False: 3})
        self.assertEqual((report["correct"], report["incorrect"], report["ungraded"]), (6, 3, 0))
        metrics = [r["model_metrics"][MODEL] for r in good]
        self.assertEqual(report["output_tokens"], sum(m["token_metrics"]["output"] for m in metrics))
        self.assertEqual(report["input_tokens"], sum(m["token_metrics"]["input"] for m in metrics))
        begun = [r["ipw"]["started_at"] for r in records]
        ended = [r["ipw"]["started_at"] + r["model_metrics"][MODEL]["latency_metrics"]
                 ["total_query_seconds"] for r in records]
        self.assertAlmostEqual(report["seconds"], max(ended) - min(begun), places=5)
        self.assertAlmostEqual(report["output_tokens_per_s"] * report["seconds"],
                               report["output_tokens"], places=6)
        for key, path in (("latency_s", "total_query_seconds"),
                          ("time_to_first_token_s", "time_to_first_token_seconds"),
                          ("throughput_tokens_per_s", "throughput_tokens_per_sec")):
            values = [m["latency_metrics"][path] for m in metrics]
            row = report["statistics"][key]
            for figure, value in (("avg", statistics.fmean(values)), ("min", min(values)),
                                  ("median", statistics.median(values)), ("max", max(values)),
                                  ("std", statistics.stdev(values)), ("count", len(values)),
                                  ("p95", quantile(values, 0.95))):
                self.assertAlmostEqual(row[figure] / value, 1, places=9, msg=f"{key} {figure}")
        firsts = [m["latency_metrics"]["time_to_first_token_seconds"] for m in metrics]
        for name, p in (("p50", 0.5), ("p95", 0.95)):
            self.assertAlmostEqual(report["time_to_first_token_s"][name], quantile(firsts, p))

    def test_summary_has_keys_of_python_ipw(self):
        report = self.profile("--param", "max_tokens=3", "--max-queries", 2, "--concurrency", 2)
        summary = self.run.summary()
        self.assertLessEqual(SUMMARY, set(summary))
        self.assertLessEqual(CONFIG, set(summary["profiler_config"]))
        config = summary["profiler_config"]
        self.assertEqual(config["client_base_url"], self.service.url() + "/v1")
        self.assertEqual((config["client_id"], config["model"]), ("openai", MODEL))
        self.assertEqual((config["max_concurrency"], config["max_queries"]), (2, 2))
        self.assertEqual(summary["total_queries"], 2)
        self.assertEqual(summary["output_dir"], report["output_dir"])
        self.assertEqual(summary["client_info"]["served_model"], MODEL)
        self.assertIsNone(summary["gpu_info"])
        self.assertIsNone(summary["system_info"]["cpu_count"])
        for key in CONTRACT:
            self.assertEqual(summary["ipw"][key], report[key], key)

    def test_record_content(self):
        self.profile("--grader", "contains", dataset=self.dataset(
            {"problem": "say it", "answer": "bye", "subject": "manners", "level": 3}))
        record = self.run.records()["q000000"]
        self.assertEqual((record["problem"], record["answer"]), ("say it", "bye"))
        self.assertEqual(record["model_answers"][MODEL], TEXT)
        metrics = record["model_metrics"][MODEL]
        self.assertEqual(metrics["token_metrics"], {"input": 11, "output": TOKENS,
                                                    "total": 11 + TOKENS})
        self.assertTrue(metrics["evaluation"]["is_correct"])
        self.assertEqual(record["ipw"]["status"], "completed")
        self.assertEqual(record["ipw"]["finish_reason"], "stop")
        self.assertEqual(record["ipw"]["pieces"], TOKENS)

    def test_arrow_dataset_has_every_record(self):
        source = os.environ.get("IPW_SOURCE", Path(__file__).parent.parent.parent)
        other = Path(source) / ".test-env/python/bin/python3"
        # With pyarrow: datasets, which reads these files in test_python_ipw, takes seconds to start.
        script = ("import json, pathlib, sys, pyarrow\n"
                  "for file in sorted(pathlib.Path(sys.argv[1]).glob('data-*.arrow')):\n"
                  "    for row in pyarrow.ipc.open_stream(file).read_all().to_pylist(): print(json.dumps(row))")
        if not other.exists() or subprocess.run([other, "-c", "import pyarrow"], capture_output=True, check=False).returncode:
            self.skipTest("no interpreter with pyarrow: tools/setup test brings one")
        self.profile("--grader", "exact", scenario="mixed", dataset=self.graded())
        done = subprocess.run([other, "-c", script, self.run.path], capture_output=True, text=True, check=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        records = list(self.run.records().values())
        self.assertEqual(len(rows), len(records))
        for row, record in zip(rows, records):
            self.assertEqual(row["problem"], record["problem"])
            self.assertEqual(row["model_answers"][MODEL], record["model_answers"][MODEL])
            theirs, ours = row["model_metrics"][MODEL], record["model_metrics"][MODEL]
            self.assertEqual(theirs["latency_metrics"]["total_query_seconds"],
                             ours["latency_metrics"]["total_query_seconds"])
            self.assertEqual(theirs["token_metrics"]["output"], ours.get("token_metrics", {}).get("output"))
            self.assertEqual((theirs["evaluation"] or {}).get("is_correct"),
                             ours.get("evaluation", {}).get("is_correct"))
            self.assertIsNone(theirs["energy_metrics"]["per_query_joules"])

    def test_output_file_and_quiet(self):
        file = self.on.root / "report.json"
        self.profile("-q", "-o", file)
        self.assertEqual(json.loads(file.read_text()), json.loads(self.done.stdout))
        self.assertEqual(self.done.stderr, "")

    def test_table_is_on_stderr(self):
        done = ipw(self.on, *self.arguments("--grader", "exact"))
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        for words in ("energy of 4 queries", "to first token", "unknown: no sensor",
                      "accuracy", str(self.directory())):
            self.assertIn(words, done.stderr)
        self.assertNotIn("\x1b", done.stderr)


class Requests(ProfileTest):
    """Requests received by the server."""

    def test_max_queries_takes_first_items(self):
        report = self.profile("--max-queries", 2)
        self.assertEqual(report["queries"], 2)
        self.assertEqual(self.service.questions()[-2:], ["question 0", "question 1"])
        self.assertEqual(set(self.run.records()), {"q000000", "q000001"})

    def test_warm_up_queries_are_additional(self):
        self.profile()
        plain = len(self.service.questions())
        for extra in (1, 6):  # less and more than the size of the dataset
            self.service.requests.clear()
            report = self.profile("--warmup-queries", extra, "--overwrite")
            self.assertEqual(len(self.service.questions()), plain + extra)
            self.assertEqual(report["queries"], 4)
            self.assertEqual(self.service.questions()[-4:], [f"question {n}" for n in range(4)])
            self.assertEqual(len(self.run.records()), 4)

    def test_repeats_have_distinct_keys(self):
        report = self.profile("--repeat", 3, "--max-queries", 2)
        self.assertEqual(report["queries"], 6)
        asked = Counter(self.service.questions()[-6:])
        self.assertEqual(asked, {"question 0": 3, "question 1": 3})
        self.assertEqual(set(self.run.records()), {"q000000", "q000000.r1", "q000000.r2", "q000001",
                                                   "q000001.r1", "q000001.r2"})

    def test_concurrency_is_reached(self):
        self.profile("--concurrency", 5, scenario="normal:gap_ms=30", dataset=self.numbered(15))
        self.assertEqual(self.service.most, 5)
        self.profile("--overwrite", dataset=self.numbered(15))
        self.assertEqual(len(self.run.records()), 15)

    def test_arrivals_are_reproducible_by_seed(self):
        def gaps(seed):
            self.profile("--request-rate", 40, "--seed", seed, "--overwrite", dataset=self.numbered(12))
            spans = {s["key"]: s["from_s"] for s in self.run.lines("spans.jsonl")}
            due = [spans[key] - record["ipw"]["queue_s"]
                   for key, record in sorted(self.run.records().items())]
            for record in self.run.records().values():
                self.assertGreaterEqual(record["ipw"]["queue_s"], 0)
            return [b - a for a, b in zip(due, due[1:])]
        first, again, other = gaps(7), gaps(7), gaps(8)
        for a, b in zip(first, again):
            self.assertAlmostEqual(a, b, places=6)
        self.assertGreater(max(abs(a - b) for a, b in zip(first, other)), 1e-3)
        self.assertGreater(min(first), 0)
        self.assertGreater(statistics.stdev(first), 0.2 * statistics.fmean(first))

    def test_no_queue_time_without_request_rate(self):
        report = self.profile()
        self.assertNotIn("queue_s", self.run.records()["q000000"]["ipw"])
        self.assertNotIn("queue_s", report["statistics"])

    def test_dataset_may_set_output_length(self):
        """--param max_tokens overrides it."""
        rows = self.dataset({"problem": "a", "output_length": 7}, {"problem": "b"},
                            {"problem": "c", "output_length": "long"})
        for options, lengths in (((), [7, None, None]), (("--overwrite", "--param", "max_tokens=3"), [3, 3, 3])):
            self.service.requests.clear()
            self.profile(*options, dataset=rows)
            asked = {body["messages"][-1]["content"]: body.get("max_tokens") for body in self.service.bodies()}
            self.assertEqual([asked[problem] for problem in "abc"], lengths)

    def test_parameters_have_types(self):
        self.profile("--param", "max_tokens=2", "--param", "temperature=0.5", "--param", "echo=false",
                     "--param", "user=me", "--param", "stop=[\"x\", \"y\"]", "--max-queries", 1)
        body = self.service.bodies()[-1]
        self.assertEqual(
            [body[key] for key in ("max_tokens", "temperature", "echo", "user", "stop")],
            [2, 0.5, False, "me", ["x", "y"]])
        self.assertEqual(self.run.metrics("q000000")["token_metrics"]["output"], 2)
        self.assertEqual(self.run.records()["q000000"]["ipw"]["finish_reason"], "length")

    def test_system_prompt_and_template(self):
        self.profile("--system", "Be brief.", "--template", "Q{id}: {problem}\\n({colour}, \\{nothing\\}, {\"a\": {id}})",
                     dataset=self.dataset({"id": "x7", "problem": "why?", "colour": 3}))
        messages = self.service.bodies()[-1]["messages"]
        self.assertEqual(messages, [{"role": "system", "content": "Be brief."},
                                    {"role": "user", "content": 'Qx7: why?\n(3, {nothing}, {"a": x7})'}])

    def test_unknown_placeholder_is_rejected_before_the_run(self):
        dataset = self.dataset({"id": "x7", "problem": "why?", "colour": 3})
        report = self.profile("--template", "{problem} {color}", dataset=dataset, code=2)
        self.assertIsNone(report)
        self.assertIn("unknown placeholder {color} (a literal brace is \\{ or \\})", self.done.stderr)
        self.assertIn("{problem}, {subject}, {id}, {colour}", self.done.stderr)
        self.assertEqual(self.service.bodies(), [])
        # A question without a field of the first one is not sent.
        self.profile("--template", "{problem} {colour}", "--max-failed", "50%",
                     dataset=self.dataset({"problem": "a", "colour": "red"}, {"problem": "b"}))
        asked = [body["messages"][-1]["content"] for body in self.service.bodies()]
        self.assertEqual(asked[-1], "a red")
        self.assertFalse([text for text in asked if text.startswith("b")])
        self.assertIn("unknown placeholder {colour}", self.run.records()["q000001"]["ipw"]["error"])

    def test_cost_by_price_file(self):
        prices = self.on.put("/prices.json", json.dumps(
            {"currency": "EUR", "models": {MODEL: {"input_per_million": 2e6, "output_per_million": 3e6,
                                                   "cached_input_per_million": 1e6}}}))
        report = self.profile("--prices", prices)
        each = 2 * (11 - 4) + 1 * 4 + 3 * TOKENS  # the server reports 4 of the 11 as cached
        self.assertAlmostEqual(report["cost"], 4 * each)
        self.assertEqual(report["currency"], "EUR")
        self.assertAlmostEqual(self.run.metrics("q000000")["cost"]["total_cost_usd"], each)

    def test_flops_by_model_size(self):
        report = self.profile("--parameters", "30B,3B", "--weight-bits", 16)
        self.assertEqual(report["flops_per_token"], 6e9)
        compute = self.run.metrics("q000000")["compute_metrics"]
        self.assertAlmostEqual(compute["flops_per_request"] / (6e9 * (11 + TOKENS)), 1, places=2)


class Names(ProfileTest):
    """Unknown names get a suggestion before anything runs."""

    def test_unknown_names_get_suggestions(self):
        for options, word in ((("--client", "opnai"), "openai"),
                              (("--dataset", "builtn"), "builtin"),
                              (("--grader", "exactt"), "exact"),
                              (("--grader", "judge", "--grader-param", "retrie=1"), "retries"),
                              (("--client-param", "endpoin=chat"), "endpoint"),
                              (("--dataset-param", "problm=x"), "problem"),
                              (("--grader", "judge", "--eval-model", "x", "--eval-client", "olama"),
                               "ollama"),
                              (("--concurency", "3"), "concurrency")):
            with self.subTest(options):
                self.service.requests.clear()
                self.profile(*options, code=2)
                self.assertErrorMessage(word)
                self.assertEqual(self.service.questions(), [])
                self.assertFalse(self.out.exists())
                shutil.rmtree(self.out, ignore_errors=True)

    def test_unknown_model_gets_suggestion(self):
        self.profile("--model", "tiny-1c", code=2)
        self.assertErrorMessage("tiny-1c", "tiny-1b")
        self.assertFalse(self.out.exists())

    def test_runs_of_different_loads_have_distinct_names(self):
        few = {"dataset": self.numbered(2)}
        self.profile(**few)
        self.profile("-c", 2, **few)
        self.profile("--request-rate", 50, **few)
        self.profile("--name", "before", **few)
        self.profile("--name", "before", code=2, **few)
        self.assertErrorMessage("--name NAME")
        self.profile(code=2, **few)
        names = sorted(path.name for path in self.out.iterdir() if path.is_dir())
        plain = next(name for name in names if name.endswith("_questions"))
        self.assertEqual(names, ["before", plain, plain + "_c2", plain + "_rate50"])

    def test_list_models_of_server(self):
        for client in ("openai", "vllm"):
            done = ipw(None, "list", "models", "--client", client, "--client-base-url", self.service.url())
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("tiny-1b", done.stdout.splitlines())
        done = ipw(None, "list", "models", "--client-base-url", self.service.url(), "--json")
        self.assertIn("tiny-1b", json.loads(done.stdout)["models"])

    def test_missing_and_invalid_options_are_rejected(self):
        malformed = self.on.put("/prices.json", '{"models": 7}')
        for arguments, word in (((), "--client"), (("--client", "null"), "--model"),
                                (("--client", "null", "--model", "m", "--resume", "--overwrite"),
                                 "mutually exclusive"),
                                (("--client", "null", "--model", "m", "--parameters", "huge"), "huge"),
                                (("--client", "null", "--model", "m", "--prices", "/nowhere"),
                                 "/nowhere"),
                                (("--client", "null", "--model", "m", "--prices", malformed),
                                 "prices.json")):
            done = ipw(self.on, "profile", *arguments, "--output-dir", self.out)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)
            self.assertFalse(self.out.exists())


class DefaultGraders(ProfileTest):
    """Datasets with expected answers, without --grader."""

    def test_default_grader_follows_expected_answer(self):
        wanted = {"choice": ("B", "I'd go with B"), "numeric": ("1234", "It is 1 234 in all."),
                  "math": ("\\sqrt{2}", "\\sqrt{2}"), "contains": ("blue whale", "The blue whale.")}
        rows = self.dataset(*({"problem": f"[say:text={text}]", "answer": expected}
                              for expected, text in wanted.values()))
        report = self.profile(scenario="mixed", dataset=rows)
        self.assertEqual((report["correct"], report["ungraded"]), (4, 0))
        self.assertIsNone(report["ungraded_reason"])
        used = [json.loads(record["model_metrics"][MODEL]["evaluation"]["metadata"])["grader"]
                for record in self.run.records().values()]
        self.assertEqual(used, list(wanted))

    def test_ungraded_answers_have_reason_and_option(self):
        long = "It is a long text, which no rule can compare with another one word by word."
        for more, answer, words in (((), "", "no expected answers"),
                                    ((), long, "pass --grader f1"),
                                    (("--grader", "numeric"), "many", "has no number: many"),
                                    (("--grader", "judge"), "x", "pass --eval-model")):
            rows = self.dataset({"problem": "why?", "answer": answer}, name=f"set{len(words)}")
            done = ipw(self.on, *self.arguments(*more, "--overwrite", dataset=rows))
            self.assertIn("accuracy      unknown: no answer was graded; ", done.stderr)
            self.assertIn(words, done.stderr.split("no answer was graded; ")[1].splitlines()[0])

    def test_grader_none_disables_grading(self):
        report = self.profile("--grader", "none")
        self.assertEqual((report["accuracy"], report["ungraded"]), (None, 4))


class Judges(ProfileTest):
    """Answers graded by another model."""

    def rows(self):
        return self.dataset({"problem": "a [say:text=yes]", "answer": "yes"},
                            {"problem": "b [say:text=no]", "answer": "yes"},
                            {"problem": "c [status:code=500]", "answer": "yes"})

    def judged(self, *more, judge="judge", **options):
        return self.profile("--grader", "judge", "--eval-base-url", self.service.url(judge),
                            *more, scenario="mixed", dataset=self.rows(), **options)

    def test_coherence_is_the_mean_rating(self):
        """Texts of prompts, without a reference; its metric of all answers is the mean score."""
        rows = self.dataset(*({"problem": f"{word} [say:text=Once upon a time.]", "answer": ""} for word in ("a", "b", "c")))
        report = self.profile("--grader", "coherence", "--eval-model", "rater", "--eval-base-url", self.service.url("say:text=8"),
                              scenario="mixed", dataset=rows)
        self.assertEqual((report["correct"], report["ungraded"]), (3, 0))
        quality, = report["quality"]
        self.assertEqual((quality["name"], quality["count"], quality["better"]), ("coherence", 3, "higher"))
        self.assertAlmostEqual(quality["value"], 0.8)
        self.assertAlmostEqual(report["score"], 0.8)

    def test_judge_verdicts(self):
        report = self.judged("--eval-model", "tiny-3b-chat", "--eval-param", "temperature=0")
        self.assertEqual(self.run.verdicts(), {"q000000": True, "q000001": False, "q000002": None})
        self.assertEqual((report["accuracy"], report["failed"]), (0.5, 1))
        bodies = self.service.bodies("judge")
        self.assertEqual({body["model"] for body in bodies}, {"tiny-3b-chat"})
        self.assertEqual({body["temperature"] for body in bodies}, {0})
        self.assertEqual(len(bodies), 2)  # failed queries are not judged

    def test_answers_without_judge_are_graded_on_resume(self):
        report = self.judged("--concurrency", 2)
        self.assertIn("warning: answers not graded: pass --eval-model", self.done.stderr)
        self.assertIsNone(report["accuracy"])
        asked = len(self.service.questions("mixed"))
        report = self.judged("--eval-model", "tiny-3b-chat", "--resume")
        self.assertEqual(report["accuracy"], 0.5)
        self.assertEqual(self.run.verdicts(), {"q000000": True, "q000001": False, "q000002": None})
        again = self.service.questions("mixed")[asked:]
        self.assertFalse([q for q in again if "say" in q], again)  # only the failed ones

    def test_password_in_judge_url_is_not_saved(self):
        url = self.service.url("judge").replace("://", "://me:hidden@")
        self.profile("--grader", "judge", "--eval-base-url", url, "--eval-model", "tiny-3b-chat")
        kept = [path for path in self.out.glob("**/*") if path.is_file()]
        self.assertGreater(len(kept), 5)
        self.assertFalse([path for path in kept if b"hidden" in path.read_bytes()])

    def test_row_with_judge_grader_reports_missing_judge(self):
        rows = self.dataset({"problem": "a [say:text=yes]", "answer": "yes", "by": "judge"},
                            {"problem": "b [say:text=no]", "answer": "yes", "by": "exact"})
        judge = ("--eval-base-url", self.service.url("judge"), "--eval-model", "tiny-3b-chat",
                 "--dataset-param", "grader=by")
        report = self.profile(*judge, scenario="mixed", dataset=rows)
        self.assertEqual((report["incorrect"], report["ungraded"]), (1, 1))
        evaluation = self.run.metrics("q000000")["evaluation"]
        self.assertIn("--grader judge", json.loads(evaluation["metadata"])["reason"])
        report = self.profile(*judge, "--grader", "judge", "--resume", scenario="mixed", dataset=rows)
        self.assertEqual((report["correct"], report["incorrect"]), (1, 1))

    def test_unavailable_judge(self):
        report = self.judged("--eval-model", "x", judge="status:code=500", code=1)
        self.assertEqual(report["completed"], 2)
        self.assertIsNone(report["accuracy"])
        report = self.judged("--eval-model", "x", "--resume")
        self.assertEqual(report["accuracy"], 0.5)

    def test_failed_judge_is_retried_on_resume(self):
        report = self.judged("--eval-model", "tiny-3b-chat", judge="die")
        self.assertIsNone(report["accuracy"])
        self.assertEqual(report["ungraded"], 2)
        report = self.judged("--eval-model", "tiny-3b-chat", "--resume")
        self.assertEqual(report["accuracy"], 0.5)


class Lists(ProfileTest):
    """ipw list of drivers."""

    def test_list_as_text_and_json(self):
        text = ipw(self.on, "list", "all")
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        kinds = json.loads(ipw(self.on, "list", "--json").stdout)
        for kind, name in (("clients", "openai"), ("datasets", "builtin"), ("graders", "judge"),
                           ("sensors", "rapl"), ("stores", "arrow"), ("presets", "gsm8k")):
            self.assertIn(f"{kind}:", text.stdout)
            self.assertIn(name, text.stdout)
            self.assertIn(name, [row["name"] for row in kinds[kind]])

    def test_list_one_kind(self):
        done = ipw(self.on, "list", "graders")
        self.assertIn("numeric", done.stdout)
        self.assertNotIn("openai", done.stdout)
        self.assertIn("retries=COUNT", ipw(self.on, "list", "graders", "-v").stdout)
        self.assertEqual(set(json.loads(ipw(self.on, "list", "graders", "--json").stdout)),
                         {"graders"})

    def test_unknown_kind_gets_suggestion(self):
        done = ipw(self.on, "list", "grader")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("graders", done.stderr)


class OtherClients(ProfileTest):
    def test_ollama_and_null_clients(self):
        self.profile("--client", "ollama", "--model", "tiny-1b:latest")
        record = self.run.records()["q000000"]
        self.assertEqual(record["model_answers"]["tiny-1b:latest"], TEXT)
        self.assertEqual(record["ipw"]["server_load_s"], 1.5)
        done = ipw(self.on, "profile", "--client", "null", "--model", "m", "--idle", 0, "--json",
                   "--output-dir", self.on.root / "null", "--max-queries", 3, "--warmup-queries", 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(Run(json.loads(done.stdout)["output_dir"]).records()), 3)


if __name__ == "__main__":
    main_parallel(jobs=3)
