#!/usr/bin/env python3
# test: real time, asan
"""--against: two settings whose runs alternate are compared at the end, on machines in virtual time, where the energy of
a run is exactly its power times its duration."""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import oracle  # noqa: E402

oracle.use()

from golden import VirtualServer, in_virtual_time  # noqa: E402
from program import IPW, TIMEOUT_S, ipw, main_parallel  # noqa: E402
from rundirs import query, summary, write_run  # noqa: E402

try:
    import scipy.stats as st
except ImportError:
    st = None

WATTS = 40 + 25 + 300  # of VirtualServer
# Logs its name, and sleeps for the next of its durations.  It starts no other program: in virtual time, a wait for one
# may take some.
WORK = """echo $1 >>order
read next <$1.next
while [ $next -ge 0 ]; do read line; next=$((next - 1)); done <$1.durations
read next <$1.next
echo $((next + 1)) >$1.next
case $line in
interrupt) kill -INT $PPID; line=0.3 ;;
fail) exit 3 ;;
esac
exec sleep $line
"""


class AgainstTest(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="ipw-against-test-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.on = VirtualServer()
        self.addCleanup(self.on.close)
        (self.root / "work.sh").write_text(WORK)

    def call(self, *arguments, code=0):
        environment = {**self.on.environment(), "TMPDIR": str(self.root / "tmp")}
        (self.root / "tmp").mkdir(exist_ok=True)
        self.done = subprocess.run([*in_virtual_time(self.root), os.path.abspath(IPW), *map(str, arguments)],
                                   cwd=self.root, env=environment, text=True, capture_output=True,
                                   stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        self.assertEqual(self.done.returncode, code, self.done.stderr)
        return json.loads(self.done.stdout) if self.done.stdout.startswith("{") else None

    def durations(self, name, durations):
        (self.root / f"{name}.durations").write_text("".join(f"{one}\n" for one in durations))
        (self.root / f"{name}.next").write_text("0\n")

    def pair(self, *options, a="a", b="b", **others):
        return self.call("run", "--against", f"sh work.sh {b}", *options, "--", "sh", "work.sh", a, **others)

    def order(self):
        return "".join((self.root / "order").read_text().split())

    def draw(self, seed, count, more=0.0):
        """Durations of 0.5 s with 1 % noise."""
        rng = random.Random(seed)
        return [round(0.5 * (1 + more) * (1 + 0.01 * rng.gauss(0, 1)), 6) for _ in range(count)]

    def saved(self, parent="runs"):
        """The directories of both sides."""
        found = {}
        for path in (self.root / parent).iterdir():
            if path.is_dir():
                found[json.loads((path / "summary.json").read_text())["series"]["side"]] = path
        return found["a"], found["b"]

    def joules(self, run):
        """Of the repeats in order."""
        records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
        found = {one["ipw"]["repeat"]: one["ipw"]["energy"]["joules"] for one in records if one["kind"] == "query"}
        return [found[i] for i in sorted(found)]


class Commands(AgainstTest):
    def test_runs_alternate_in_balanced_order_and_are_saved_as_two_runs(self):
        self.durations("a", self.draw(1, 4))
        self.durations("b", self.draw(2, 4))
        report = self.pair("-r", 4, "--save", "--json")
        self.assertEqual(self.order(), "abbaabba")
        a, b = self.saved()
        summaries = [json.loads((path / "summary.json").read_text()) for path in (a, b)]
        self.assertEqual([one["ipw"]["queries"] for one in summaries], [4, 4])
        self.assertEqual(summaries[0]["series"]["id"], summaries[1]["series"]["id"])
        self.assertIsNone(summaries[0]["series"]["until_decided"])
        one, = report["comparisons"]
        self.assertEqual(one["series"], {"pairs": 4, "until_decided": None, "look": 1})
        self.assertEqual([report["baseline"]["directory"], one["directory"]],
                         [f"runs/{a.name}", f"runs/{b.name}"])
        again = self.call("compare", report["baseline"]["directory"], one["directory"], "--json")
        self.assertEqual(again, report)

    @unittest.skipIf(st is None, "SciPy is not here (IPW_PYTHON names an interpreter with it)")
    def test_figures_are_those_of_a_paired_t_test(self):
        """Energies are power times duration but for the resolution of the sensors; the test is SciPy's."""
        self.durations("a", self.draw(3, 6))
        self.durations("b", self.draw(4, 6, more=0.03))
        energy = self.pair("-r", 6, "--save", "--json")["comparisons"][0]["metrics"]["energy_per_query"]
        a, b = (self.joules(path) for path in self.saved())
        for joules, durations in ((a, self.draw(3, 6)), (b, self.draw(4, 6, more=0.03))):
            for found, duration in zip(joules, durations):
                self.assertAlmostEqual(found, WATTS * duration, delta=0.005 * WATTS * duration)
        found = st.ttest_rel(b, a)
        self.assertEqual((energy["test"], energy["dof"]), ("paired t", 5))
        self.assertAlmostEqual(energy["difference"], statistics.mean(b) - statistics.mean(a), places=9)
        self.assertAlmostEqual(energy["p_value"], found.pvalue, places=9)
        for end, expected in zip(energy["difference_interval_95"], found.confidence_interval()):
            self.assertAlmostEqual(end, expected, places=6)

    def test_equal_commands_are_not_decided(self):
        self.durations("a", self.draw(5, 8))
        report = self.pair("-r", 4, "--until-decided", "--json", a="a", b="a")
        self.assertEqual(self.order(), "a" * 8)
        self.assertIn("not decided after 4 pairs", self.done.stderr)
        energy = report["comparisons"][0]["metrics"]["energy_per_query"]
        self.assertEqual(energy["verdict"], "no evidence")

    def test_a_series_ends_when_it_is_decided(self):
        self.durations("a", self.draw(6, 20))
        self.durations("b", self.draw(7, 20, more=0.2))
        report = self.pair("-r", 20, "--until-decided", "--json", "--save")
        pairs = len(self.order()) // 2
        self.assertGreaterEqual(pairs, 3)
        self.assertLess(pairs, 5)
        self.assertIn(f"decided after {pairs} of at most 20 pairs", self.done.stderr)
        one, = report["comparisons"]
        self.assertEqual((one["series"]["pairs"], one["series"]["until_decided"]), (pairs, 20))
        self.assertEqual(one["metrics"]["energy_per_query"]["verdict"], "worse")
        self.assertLess(one["series"]["look"], 0.35)
        self.assertIn("at most 20 (--until-decided)", one["basis"])
        again = self.call("compare", *(f"runs/{path.name}" for path in self.saved()), "--json")
        self.assertEqual(again, report)

    def test_interrupted_series_keeps_what_was_measured(self):
        self.durations("a", self.draw(8, 5))
        self.durations("b", [*self.draw(9, 2, more=0.2), "interrupt", 0.5, 0.5])
        report = self.pair("-r", 5, "--save", "--json", code=130)
        self.assertEqual(self.order(), "abbaab")
        a, b = (json.loads((path / "summary.json").read_text()) for path in self.saved())
        self.assertEqual([a["ipw"]["queries"], b["ipw"]["queries"]], [3, 3])
        self.assertTrue(b["ipw"]["interrupted"])
        self.assertGreaterEqual(report["comparisons"][0]["series"]["pairs"], 2)

    def test_failing_command_ends_the_series(self):
        for options, code, order, pairs in (((), 3, "abba"[:3], 1), (("--ignore-failure",), 3, "abbaab", 2)):
            (self.root / "order").unlink(missing_ok=True)
            self.durations("a", [0.4, 0.5, 0.6])
            self.durations("b", [0.4, "fail", 0.6])
            report = self.pair("-r", 3, "--json", *options, code=code)
            self.assertEqual(self.order(), order)
            self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
            self.assertIn("the command of --against ended with exit status 3", self.done.stderr)
            self.assertEqual("--ignore-failure" in self.done.stderr, not options)
            self.assertEqual(report["comparisons"][0]["series"]["pairs"], pairs)
        self.durations("a", [0.4])
        self.durations("b", ["fail"])
        self.assertIsNone(self.pair("-r", 3, "--json", code=3))

    def test_unsaved_runs_leave_nothing(self):
        self.durations("a", [0.4, 0.5])
        self.durations("b", [0.4, 0.5])
        report = self.pair("-r", 2, "--json")
        self.assertIsNone(report["baseline"]["directory"])
        self.assertEqual(report["comparisons"][0]["directories"], [])
        self.assertEqual(list((self.root / "tmp").iterdir()), [])
        self.assertFalse((self.root / "runs").exists())
        self.durations("a", [0.4, 0.5])
        self.durations("b", [0.4, 0.5])
        self.pair("-r", 2)
        self.assertIn("not saved", self.done.stderr)
        self.assertIn("2 pairs of runs that alternated", self.done.stderr)

    def test_words_are_split_as_by_a_shell(self):
        script = "printf '%s|' \"$@\" >>words"
        self.call("run", "-r", 1, "--against", f"sh -c '{script.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'"
                  " x 'a b' \"c d\" e\\ f $EMPTY '*'", "--", "true")
        self.assertEqual((self.root / "words").read_text(), "a b|c d|e f|*|")

    def test_usage_errors_are_one_line(self):
        sleep = ("--", "sleep", "0.1")
        for arguments, code, words in (
                (("--until-decided", *sleep), 2, "--until-decided needs --against"),
                (("--against", "sleep 1", "--until-decided", "-r", "2", *sleep), 2, "--repeat from 3"),
                (("--against", "sleep 1", "--until-decided", "-r", "1000", *sleep), 2, "to 200"),
                (("--against", "sleep 1", "--repeat-runs", "2", "--save", *sleep), 2, "mutually exclusive"),
                (("--against", "sleep 1", "--against", "sleep 2", *sleep), 2, "more than once"),
                (("--against", "a | b", *sleep), 2, "sh -c"),
                (("--against", "echo $(date)", *sleep), 2, "sh -c"),
                (("--against", "echo 'x", *sleep), 2, "unbalanced quotes"),
                (("--against", "", *sleep), 2, "missing command"),
                (("--against", "no-such-command-here x", *sleep), 127, "cannot run 'no-such-command-here'"),
                (("--against", "sleep 1", "--format", "page", *sleep), 2, "--format must be one of"),
                (("--against", "sleep 1"), 2, "missing command")):
            self.call("run", *arguments, code=code)
            self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
            self.assertIn(words, self.done.stderr)


class Saved(AgainstTest):
    """Comparisons of saved series: what pairs and looks change in a verdict."""

    def series(self, name, joules, until_decided=None, series="s"):
        queries = [query(0, joules=value, repeat=i) for i, value in enumerate(joules)]
        for i, one in enumerate(queries):
            one["ipw"]["started_at"] += 10 * i
        whole = {**summary(queries), "run_kind": "run",
                 "series": {"id": series, "side": name[0], "until_decided": until_decided}}
        return write_run(self.root / name, queries, whole=whole, kind="run")

    def energy(self, a, b):
        report = json.loads(ipw(None, "compare", a, b, "--json").stdout)
        return report["comparisons"][0]["metrics"]["energy_per_query"]

    # Both sides wander by 10 %; b is 2 % higher in each pair.
    A = [100, 110, 95, 104, 90, 107]
    B = [102.1, 112.0, 96.8, 106.3, 91.7, 109.2]

    def test_pairs_cancel_what_both_runs_share(self):
        paired = self.energy(self.series("a", self.A), self.series("b", self.B))
        apart = self.energy(self.root / "a", self.series("c", self.B, series="other"))
        self.assertEqual((paired["test"], paired["verdict"]), ("paired t", "worse"))
        self.assertEqual(apart["verdict"], "no evidence")

    def test_repeats_count_as_runs(self):
        a, b = self.series("a", self.A), self.series("b", self.B)
        for bound, code in (("+1%", 1), ("+5%", 0)):
            done = ipw(None, "compare", a, b, "--confident", "--fail-if", f"energy_per_query > {bound}")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertNotIn("one run", done.stdout + done.stderr)

    def test_repeats_are_paired_by_their_number(self):
        a, b = self.series("a", self.A), self.series("b", self.B)
        lines = (b / "records.jsonl").read_text().splitlines()
        (b / "records.jsonl").write_text("\n".join([lines[0], *reversed(lines[2:-1]), lines[-1]]) + "\n")
        found = self.energy(a, b)  # without the first, and in another order
        self.assertEqual(found["dof"], 4)
        between = [y - x for x, y in zip(self.A[1:], self.B[1:])]
        error = statistics.stdev(between) / len(between) ** 0.5
        high = found["difference_interval_95"][1]
        mean = statistics.mean(self.B[1:]) - statistics.mean(self.A[1:])
        self.assertAlmostEqual(high, mean + 2.7764451 * error, places=6)

    def test_a_series_that_ends_when_decided_needs_more(self):
        fixed = self.energy(self.series("a", self.A[:4]), self.series("b", [v + d for v, d in zip(
            self.A, (1, 2, 3, 2))]))
        looked = self.energy(self.series("a2", self.A[:4], until_decided=20), self.series(
            "b2", [v + d for v, d in zip(self.A, (1, 2, 3, 2))], until_decided=20))
        self.assertEqual(fixed["verdict"], "worse")
        self.assertNotEqual(looked["verdict"], "worse")
        self.assertGreater(looked["p_value"], 3 * fixed["p_value"])
        self.assertLess(looked["difference_interval_95"][0], fixed["difference_interval_95"][0])


class Profiles(AgainstTest):
    def profile(self, *options, **others):
        return self.call("profile", "--client", "null", "--model", "m", "--max-queries", "6", "--warmup-queries", "0", "--idle", "0.2", "--name", "x", "--client-param",
                         "ttft_ms=200", *options, **others)

    def names(self):
        return sorted(path.name for path in (self.root / "runs").iterdir() if path.is_dir())

    def test_runs_alternate_and_are_compared(self):
        report = self.profile("--against", "client-param.ttft_ms=400", "--repeat-runs", 3, "--json")
        self.assertEqual(self.names(), [f"x_{side}_r{i}" for side in "ab" for i in (1, 2, 3)])
        starts = {}
        for name in self.names():
            whole = json.loads((self.root / "runs" / name / "summary.json").read_text())
            starts[name] = whole["ipw"]["started_at"]
            self.assertEqual(whole["series"]["side"], name[2])
            self.assertEqual(whole["repeat_number"], int(name[-1]))
        self.assertEqual(sorted(starts, key=starts.get), ["x_a_r1", "x_b_r1", "x_b_r2", "x_a_r2", "x_a_r3", "x_b_r3"])
        one, = report["comparisons"]
        self.assertEqual(one["runs"], {"baseline": 3, "run": 3})
        self.assertEqual(one["series"]["pairs"], 3)
        self.assertEqual(one["metrics"]["energy_per_query"]["verdict"], "worse")
        self.assertEqual(self.call("compare", *(f"runs/{name}" for name in self.names()), "--json"), report)

    def test_equal_settings_are_not_decided(self):
        report = self.profile("--against", "seed=1", "--until-decided", "--repeat-runs", 3, "--json")
        self.assertIn("not decided after 3 pairs", self.done.stderr)
        self.assertEqual(report["comparisons"][0]["metrics"]["energy_per_query"]["verdict"], "no evidence")

    def test_series_is_resumed(self):
        first = self.profile("--against", "param.temperature=1", "--repeat-runs", 2, "--json")
        more = self.profile("--against", "param.temperature=1", "--repeat-runs", 3, "--json", "--resume")
        self.assertEqual(first["comparisons"][0]["series"]["pairs"], 2)
        self.assertEqual(more["comparisons"][0]["series"]["pairs"], 3)
        groups = {json.loads((self.root / "runs" / name / "summary.json").read_text())["series"]["id"]
                  for name in self.names()}
        self.assertEqual(len(groups), 1)
        self.profile("--against", "param.temperature=1", "--repeat-runs", 4, "--until-decided", "--resume", code=1)
        self.assertIn("without --until-decided", self.done.stderr)

    def test_option_of_the_other_side_only(self):
        self.profile("--against", "param.temperature=1", "--param", "temperature=0, max_tokens=9", "--repeat-runs", 1)
        found = [json.loads((self.root / "runs" / f"x_{side}_r1" / "records.jsonl").read_text().splitlines()[0])
                 ["settings"]["request_params"] for side in "ab"]
        self.assertEqual(found, [{"temperature": "0", "max_tokens": "9"}, {"temperature": "1", "max_tokens": "9"}])
        self.assertIn("x_b_r1", self.done.stdout)

    def test_usage_errors_are_one_line(self):
        for arguments, words in (
                (("--against", "modell=x"), "did you mean '--model'"),
                (("--against", "output-dir=x"), "--output-dir is no setting that can alternate"),
                (("--against", "repeat-runs=3"), "--repeat-runs is no setting"),
                (("--against", "concurrency=x"), "takes an integer"),
                (("--against", "concurrency"), "missing argument: --concurrency N"),
                (("--against", "param=x"), "KEY=VALUE"),
                (("--against", ""), "missing OPTION=VALUE"),
                (("--against", "model=y", "--shard", "1/2"), "--against and --shard"),
                (("--against", "model=y", "--until-decided", "--repeat-runs", 2), "--repeat-runs from 3"),
                (("--until-decided",), "--until-decided needs --against")):
            self.profile(*arguments, code=2)
            self.assertEqual(self.done.stderr.count("\n"), 1, self.done.stderr)
            self.assertIn(words, self.done.stderr)


if __name__ == "__main__":
    main_parallel()
