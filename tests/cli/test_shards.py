#!/usr/bin/env python3
# test: real time, asan
"""`ipw profile --shard` and `--merge`: shards send every question once; the merged run has all of them in dataset
order, and its energies are the sums of the shards'."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from machines import Intel  # noqa: E402
from program import ipw  # noqa: E402

PARTS = ("queries", "queries_idle_share", "prefill", "decode", "failed", "idle", "unattributed", "cpu")


class ShardsTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-shards-")
        self.addCleanup(scratch.cleanup)
        self.runs = Path(scratch.name) / "runs"
        self.machine = Intel(100)
        self.addCleanup(self.machine.close)

    def profile(self, *words, code=0, model="m"):
        done = ipw(self.machine, "profile", "--client", "null", "--client-param", "ttft_ms=10", "--model", model,
                   "--dataset", "builtin", "--output-dir", self.runs, "--idle", 0.05, "--warmup-queries", 1, "-q", *words)
        if done.returncode == 1 and "JSON" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def merge(self, *words, code=0):
        done = ipw(None, "profile", "--output-dir", self.runs, "-q", "--merge", *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def summary(self, name):
        return json.loads((self.runs / name / "summary.json").read_text())

    def shards(self):
        return sorted(self.runs.glob("*_shard*"))

    def keys(self, name):
        """Keys in the order of the records."""
        done = ipw(None, "export", self.runs / name, "--to", "jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line)["key"] for line in done.stdout.splitlines()]

    def close(self, mine, wanted):
        self.assertAlmostEqual(mine, wanted, delta=1e-9 * abs(wanted))

    def check_sums(self, name):
        merge_record, parts = self.summary(name)["ipw"], [self.summary(shard.name)["ipw"] for shard in self.shards()]
        for count in ("queries", "completed", "failed", "correct", "incorrect", "unread", "ungraded", "starts"):
            self.assertEqual(merge_record[count], sum(part[count] for part in parts), count)
        self.assertGreater(merge_record["energy"]["joules"], 0)
        self.close(merge_record["energy"]["joules"], sum(part["energy"]["joules"] for part in parts))
        for kind in PARTS:
            known = [part["joules"][kind] for part in parts if part["joules"][kind] is not None]
            if kind == "queries_idle_share" and len(known) < len(parts):  # no idle power on a busy machine
                self.assertIsNone(merge_record["joules"][kind])
            elif known:
                self.close(merge_record["joules"][kind], sum(known))
        self.assertLess(merge_record["conservation_error"], 1e-9)
        for figure in ("cost", "gco2e", "device_seconds"):  # each shard had its own devices
            if parts[0]["operating"][figure] is not None and parts[0]["operating"]["price_per_kwh"] is not None:
                self.close(merge_record["operating"][figure], sum(part["operating"][figure] for part in parts))
        return merge_record


class Merging(ShardsTest):
    def test_merged_run_has_dataset_order_and_summed_energies(self):
        for number in (3, 1, 2):
            self.profile("--max-queries", 11, "--shard", f"{number}/3", "--repeat", 2, "--name", "x", "--price-per-kwh", 0.36,
                         "--device-price-per-hour", 1.8, "--gco2-per-kwh", 400)
        self.assertEqual([self.summary(shard.name)["total_queries"] for shard in self.shards()], [8, 8, 6])
        self.merge(*reversed(self.shards()))
        merge_record = self.check_sums("x")
        self.assertEqual(merge_record["queries"], 22)
        self.assertEqual(self.keys("x"), [f"q{i:06}{r}" for i in range(11) for r in ("", ".r1")])
        self.assertEqual(len(list((self.runs / "x").glob("samples*.csv"))), 3)
        spans = [json.loads(line) for line in (self.runs / "x" / "spans.jsonl").read_text().splitlines()]
        self.assertEqual({span["start"] for span in spans}, {1, 2, 3})
        listed = json.loads(ipw(None, "list", "runs", self.runs, "--json").stdout)["runs"]
        self.assertIn(22, [run["queries"] for run in listed])

    def test_merge_of_resumed_shard(self):
        self.profile("--max-queries", 4, "--shard", "1/2", "--name", "x")
        self.profile("--max-queries", 9, "--shard", "1/2", "--name", "x", "--resume")
        self.profile("--max-queries", 9, "--shard", "2/2", "--name", "x")
        self.merge(*self.shards())
        self.assertEqual(self.check_sums("x")["starts"], 3)
        self.assertEqual(self.keys("x"), [f"q{i:06}" for i in range(9)])

    def test_merged_run_can_be_resumed(self):
        for number in (1, 2):
            self.profile("--max-queries", 6, "--shard", f"{number}/2", "--name", "x")
        self.merge(self.runs, "--name", "whole")  # a folder stands for its runs
        before = self.summary("whole")["ipw"]
        self.profile("--max-queries", 8, "--name", "whole", "--resume")
        after = self.summary("whole")["ipw"]
        self.assertEqual((before["queries"], after["queries"], after["starts"]), (6, 8, 3))
        self.assertGreater(after["joules"]["queries"], before["joules"]["queries"])
        self.assertLess(after["conservation_error"], 1e-9)
        self.assertEqual(self.keys("whole"), [f"q{i:06}" for i in range(8)])

    def test_rejects_incomplete_or_mixed_shards(self):
        self.profile("--max-queries", 4, "--shard", "1/2", "--name", "x")
        self.profile("--max-queries", 4, "--name", "other")
        one, other = self.runs / "x_shard1of2", self.runs / "other"
        self.assertIn("shard 1 of 2, and 1 are given", self.merge(one, code=2).stderr)
        self.assertIn("both shard 1", self.merge(one, one, "--name", "y", code=2).stderr)
        self.assertIn("not a shard", self.merge(one, other, code=2).stderr)
        self.assertIn("missing run directories", self.merge(code=2).stderr)
        self.profile("--max-queries", 4, "--shard", "2/2", "--name", "x", model="n")
        self.assertIn("not shards of one run", self.merge(*self.shards(), code=2).stderr)
        self.profile("--max-queries", 4, "--shard", "2/2", "--name", "x", "--overwrite")
        self.assertIn("already holds a run", self.merge(*self.shards(), "--name", "other", code=2).stderr)
        self.assertFalse((self.runs / "x").exists())
        (self.runs / "x_shard2of2" / "summary.json").unlink()
        self.assertIn("has not ended", self.merge(*self.shards(), code=2).stderr)
        for shard in ("0/2", "3/2", "1", "a/b", "1/2/3", "-1/2"):
            self.assertIn("--shard", self.profile("--shard", shard, code=2).stderr)
        self.assertIn("was \"1/2\"", self.profile("--max-queries", 4, "--name", "x_shard1of2", "--resume", code=2).stderr)
        self.assertIn("needs --slurm", self.profile("--shards", 2, code=2).stderr)
        self.assertIn("needs --shards", self.profile("--slurm", "--slurm-script-only", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
