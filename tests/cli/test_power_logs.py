#!/usr/bin/env python3
"""Logs of GPU profilers as input of `ipw power` and `ipw optimize`, against an independent Python reader that splits
cells at two spaces or a comma.  On logs with known quirks (tests/fixtures/gpu_logs), and on public ones if present
($IPW_SHARED, or shared/ in the source tree)."""

import json
import math
import os
import re
import shutil
import statistics
import sys
import tempfile
import unittest
from datetime import datetime
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from program import ipw  # noqa: E402
from sweeps import write_sweep  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", Path(__file__).parents[2])).resolve()
LOGS = SOURCE / "tests/fixtures/gpu_logs"
LLAMA = LOGS / "results_a100_llama_job_7"
RAW = Path(os.environ.get("IPW_SHARED", SOURCE.parent / "shared")) / "data/dvfs/raw"
needs_raw = unittest.skipUnless(RAW.exists(), f"no public logs at {RAW}")
STUDY = ("timestamp,index,name,power.draw,power.limit,temperature.gpu,utilization.gpu,utilization.memory,memory.total,"
         "memory.free,memory.used,clocks.sm,clocks.mem,clocks.gr,clocks.applications.graphics,"
         "clocks.applications.memory,pstate").split(",")


def number(cell):
    found = re.fullmatch(r"([0-9.]+)( \S+)?", cell or "")
    return float(found[1]) if found else None


def read(path):
    """Rows as {column: text}; complete lines only."""
    rows, names = [], None
    for line in path.read_text().split("\n")[:-1]:
        if line.lstrip().startswith("#"):
            names = line.lstrip("# ").split()[1:]
        elif re.match(r"\s*GPU \d", line):
            cells = re.split(r"\s{2,}", line.strip().replace("GPU ", "GPU", 1))
            if len(cells) == len(names) + 1:
                rows.append(dict(zip(names, cells[1:])))
        elif "," in line:
            cells = [cell.strip() for cell in line.split(",")]
            if "power.draw" in line:
                names = [re.sub(r" \[.*", "", cell) for cell in cells]
            elif len(cells) == len(names or STUDY):
                rows.append(dict(zip(names or STUDY, cells)))
    return rows


def column(rows, *names):
    for name in names:
        if rows and name in rows[0]:
            return [number(row[name]) for row in rows]
    return [None] * len(rows)


def spans_of(rows, power):
    """Seconds covered by each row, including pauses of the log, but not steps of the clock."""
    if "timestamp" in rows[0]:
        times = [datetime.strptime(row["timestamp"], "%Y/%m/%d %H:%M:%S.%f").timestamp() for row in rows]
        steps = [b - a for a, b in zip(times, times[1:])]
        usual = statistics.median(step for step in steps if step > 0)
        return [usual] + [step if step > 0 else usual for step in steps]
    counter = column(rows, "TOTEC")
    return [(counter[-1] - counter[0]) / 1e3 / statistics.mean(power[1:]) / (len(rows) - 1)] * len(rows)


def point(path):
    """The measurement of a log: from the first to the last row with an active GPU."""
    rows = read(path)
    power = column(rows, "POWER", "power.draw")
    active = [max((x for x in pair if x is not None), default=None)
              for pair in zip(column(rows, "GRACT"), column(rows, "SMACT"))]
    if "GRACT" not in rows[0]:
        active = column(rows, "GPUTL", "utilization.gpu")
    busy = [i for i, value in enumerate(active) if value]
    work = range(busy[0], busy[-1] + 1)
    spans = spans_of(rows, power)
    usual = statistics.median(spans)
    held = {i: (power[i - 1] + power[i]) / 2 for i in work if spans[i] >= 10 * usual}
    power = [held.get(i, value) for i, value in enumerate(power)]
    known = [i for i in work if power[i] is not None]
    watts = sum(power[i] * spans[i] for i in known) / sum(spans[i] for i in known)
    seconds = sum(spans[i] for i in work)
    counter = column(rows, "TOTEC")
    joules = (counter[work[-1]] - counter[work[0] - 1]) / 1e3 if counter[0] else watts * seconds
    idle = [value for value in power[:work[0] - 1] if value is not None]
    clocks = column(rows, "SMCLK", "clocks.sm", "clocks.current.sm", "SACLK")
    return {"power_w": watts, "time_s": seconds, "energy_j": joules, "idle_w": statistics.median(idle),
            "achieved": statistics.median(clocks[i] for i in busy), "rows": len(rows)}


def usable():
    """Points that pass the checks: without the first runs, the failed one and the one at another clock."""
    out = {}
    for path in sorted(LLAMA.glob("*_profile.csv")):
        _, seq, run, _, mhz, _ = path.name.split("_")
        if (int(run) == 1 and mhz not in ("660", "810")) or (mhz, run) in (("810", "03"), ("660", "02")):
            continue
        out.setdefault(int(mhz), []).append(point(path))
    return out


class LogTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)

    def fit(self, *inputs, options=()):
        words = [word for path in inputs for word in ("--input", path)]
        done = ipw(None, "power", "fit", *words, *options, "--json", "-o", self.path / "model.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        state = json.loads((self.path / "model.json").read_text())["state"]
        return json.loads(done.stdout), state.get("applications")

    def found(self, report):
        return {(row["code"], row["gpu"], row["application"]) for row in report["findings"]}

    def check_against_reader(self, path, gpu, application, mhz):
        report, states = self.fit(path)
        wanted, curve, state = point(path), report["curves"][0], states[0]
        self.assertEqual((curve["gpu"], curve["application"], curve["at_fmax"]["freq_mhz"]), (gpu, application, mhz))
        for name in ("power_w", "time_s", "energy_j"):
            self.assertAlmostEqual(curve["at_fmax"][name]["value"] / wanted[name], 1, places=6, msg=name)
        self.assertAlmostEqual(state["idle_w"], wanted["idle_w"], places=6)
        return report

    def off_clock(self, path, mhz):
        """The message states the clock of the log."""
        done = ipw(None, "power", "fit", "--input", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"ran at another clock, for example {point(path)['achieved']:g} MHz instead of {mhz}", done.stderr)


class SyntheticLogs(LogTest):
    def test_table_with_spaces_in_names(self):
        self.check_against_reader(LLAMA / "run_3_03_freq_1410_profile.csv", "A100", "llama", 1410)

    def test_samples_without_activities(self):
        report = self.check_against_reader(LLAMA / "run_11_02_freq_960_profile.csv", "A100", "llama", 960)
        self.assertIn(("idle_parts", "A100", "llama"), self.found(report))

    def test_damaged_and_truncated_rows(self):
        report = self.check_against_reader(LLAMA / "run_8_02_freq_1110_profile.csv", "A100", "llama", 1110)
        self.assertIn(("damaged_log", "A100", "llama"), self.found(report))
        report = self.check_against_reader(LLAMA / "run_21_03_freq_510_profile.csv", "A100", "llama", 510)
        self.assertNotIn(("damaged_log", "A100", "llama"), self.found(report))

    def test_row_with_nul_bytes(self):
        lines = (LLAMA / "run_3_03_freq_1410_profile.csv").read_bytes().split(b"\n")
        lines.insert(8, b"GPU 0     0     NVI\0\0\0")
        copy = self.path / "llama_1410MHz.log"
        copy.write_bytes(b"\n".join(lines))
        self.assertIn("damaged_log", str(self.check_against_reader(copy, "NVIDIA A100-PCIE-40GB", "llama", 1410)))

    def test_csv_without_header(self):
        self.check_against_reader(LOGS / "results_h100_vit/run_baseline_01_freq_1785_profile.csv", "H100", "vit", 1785)

    def test_csv_with_units_and_clock_step(self):
        text = (LOGS / "sort_1380MHz.csv").read_text()
        copy = self.path / "sort_1230MHz.csv"
        copy.write_text(text)
        report = self.check_against_reader(copy, "Tesla V100-PCIE-32GB", "sort", 1230)
        self.assertIn(("unordered_timestamps", "Tesla V100-PCIE-32GB", "sort"), self.found(report))
        self.off_clock(LOGS / "sort_1380MHz.csv", 1380)
        copy.write_text(text.replace("\n", "\r\n"))
        self.check_against_reader(copy, "Tesla V100-PCIE-32GB", "sort", 1230)

    def test_older_table_format(self):
        self.check_against_reader(LOGS / "GV100-dvfs-LSTM-1380-0.45d9bf4", "V100", "LSTM", 1380)
        self.off_clock(LOGS / "GV100-dvfs-LSTM-1380-1.45d9bf4", 1380)

    def test_times_from_separate_file(self):
        lines = [re.sub(r"\d{12}", "N/A", line) for line in
                 (LOGS / "GV100-dvfs-LSTM-1380-0.45d9bf4").read_text().splitlines()]
        (self.path / "GV100-dvfs-LSTM-1380-1").write_text("\n".join(lines) + "\n")
        (self.path / "GV100-dvfs-lstm-perf.csv").write_text("1380,1.62\n1380,9.0\n")
        report, _ = self.fit(self.path / "GV100-dvfs-LSTM-1380-1")
        # 9 s of 45 rows, 30 of which are the work
        self.assertAlmostEqual(report["curves"][0]["at_fmax"]["time_s"]["value"], 6, places=6)
        (self.path / "GV100-dvfs-lstm-perf.csv.older").write_text("1380,1\n1380,2\n")
        report, _ = self.fit(self.path / "GV100-dvfs-LSTM-1380-1")
        self.assertIsNone(report["curves"][0]["at_fmax"]["time_s"]["value"])

    def test_run_outcomes_from_either_summary(self):
        for name in ("timing_summary.log", "experiment_summary.log"):
            folder = self.path / name[:6] / LLAMA.name
            shutil.copytree(LLAMA, folder)
            (folder / name).unlink()
            report, _ = self.fit(folder)
            failed = [row["rows"] for row in report["findings"] if row["code"] == "failed_runs"]
            self.assertEqual(failed, [1], name)
            (folder / "timing_summary.log").unlink(missing_ok=True)
            (folder / "experiment_summary.log").unlink(missing_ok=True)
            self.assertNotIn("failed_runs", str(self.fit(folder)[0]["findings"]))

    def test_gpu_of_log_overrides_file_name(self):
        wrong = self.path / "GV100-dvfs-LSTM-1410-0"
        wrong.write_text((LLAMA / "run_3_03_freq_1410_profile.csv").read_text())
        report, _ = self.fit(wrong)
        self.assertEqual(report["curves"][0]["gpu"], "NVIDIA A100-PCIE-40GB")
        self.assertIn(("gpu_mismatch", "NVIDIA A100-PCIE-40GB", "LSTM"), self.found(report))
        report, _ = self.fit(wrong, options=["--gpu", "A100"])
        self.assertEqual(report["curves"][0]["gpu"], "A100")

    def published(self, path, mhz, fp, dram):
        """Checks the published formula, which only needs activities."""
        report, _ = self.fit(path, options=["--model", "fgcs", "--published"])
        watts = math.exp(-1.0318354343254663 + 0.84864 * fp + 0.09749 * dram + 0.77006 * math.log(1 + mhz)) - 1
        self.assertAlmostEqual(report["curves"][0]["at_fmax"]["power_w"]["value"] / watts, 1, places=6)

    def test_activities_of_logs_and_sweeps_are_used(self):
        self.published(LOGS / "GV100-dvfs-LSTM-1380-0.45d9bf4", 1380, 0.3 / 2, 0.25)
        activity = {"source": "gpm", "sm_active": 0.7, "dram_active": 0.15, "fp64_active": 0.1, "fp32_active": 0.4,
                    "utilization": 0.9}
        sweep = write_sweep(self.path / "sweep", ("gpu-clock",), [
            ((510 + 60 * i,), {"joules": 100 + i, "seconds": 2, "activity": activity}) for i in range(12)])
        self.published(sweep, 1170, 0.4 / 2 + 0.1, 0.15)

    def test_busy_gpus_of_one_log(self):
        lines = (LOGS / "sort_1380MHz.csv").read_text().splitlines()[:30]
        other = [re.sub(r", 0, ", ", 1, ", line) for line in lines]
        idle = [re.sub(r", \d+ %", ", 0 %", re.sub(r", 0, ", ", 2, ", line)) for line in lines]
        (self.path / "sort_1230MHz.csv").write_text("\n".join(lines[:1] + [
            line for rows in zip(lines[1:], other[1:], idle[1:]) for line in rows]) + "\n")
        report, _ = self.fit(self.path / "sort_1230MHz.csv")
        self.assertEqual([curve["gpu"] for curve in report["curves"]],
                         ["Tesla V100-PCIE-32GB:0", "Tesla V100-PCIE-32GB:1"])

    def test_stray_reading_before_the_work(self):
        lines = (LOGS / "sort_1380MHz.csv").read_text().splitlines()
        idle, busy = lines[3], lines[1:30]
        start = [idle] * 5 + [idle.replace(", 0 %", ", 1 %")] + [idle] * 60
        (self.path / "sort_1230MHz.csv").write_text("\n".join(lines[:1] + start + busy) + "\n")
        _, states = self.fit(self.path / "sort_1230MHz.csv")
        self.assertAlmostEqual(states[0]["time"]["t0_s"], 0.1 * (len(busy) - 13), places=2)

    def test_idle_period_and_pause_within_the_work(self):
        lines = [f"2025/07/08 {15 + (i > 40)}:00:{i / 10:06.3f}, 0, Tesla V100, {90 if busy else 40} W, "
                 f"{80 if busy else 0} %, {1230 if busy else 135} MHz"
                 for i, busy in enumerate([0] * 10 + [1] * 8 + [0] * 30 + [1] * 8 + [0] * 4)]
        log = self.path / "sort_1230MHz.csv"
        log.write_text("\n".join(["timestamp, index, name, power.draw [W], utilization.gpu [%], clocks.sm [MHz]",
                                  *lines]) + "\n")
        self.check_against_reader(log, "Tesla V100", "sort", 1230)

    def stalled(self, name="llama_1410MHz.log", pause=3.0, watts=lambda i: 200, counter=None, spacing=0.05):
        """A log whose logger stalls twice; counter(i): joules since the previous row."""
        seconds, joules, rows = 0, 0, ["timestamp, power.draw [W], clocks.sm [MHz], utilization.gpu [%]" +
                                       (", total_energy_consumption [mJ]" if counter else "")]
        for i in range(60):
            mhz = int(re.search(r"(\d+)(MHz|_profile)", name)[1])
            joules += counter(i) if counter else 0
            rows.append(f"2025/11/02 01:00:{seconds:06.3f}, {watts(i)} W, {mhz} MHz, 90 %" +
                        (f", {1000 * joules:.0f}" if counter else ""))
            seconds += pause if i in (20, 40) else spacing
        (self.path / name).write_text("\n".join(rows) + "\n")
        return self.path / name

    def figures(self, path):
        report, _ = self.fit(path)
        at = report["curves"][0]["at_fmax"]
        return (round(at["time_s"]["value"], 4), round(at["energy_j"]["value"], 2),
                {check for check, _, _ in self.found(report)} & {"log_pauses", "unordered_timestamps"})

    def test_stalled_logger_loses_no_time(self):
        self.assertEqual(self.figures(self.stalled()), (8.9, 1780, {"log_pauses"}))
        # power is interpolated between the rows: 100 W, 200 W, 300 W
        rising = self.stalled(watts=lambda i: 100 + 200 * (i > 20))
        self.assertEqual(self.figures(rising), (8.9, 21 * 5 + 3 * 200 + 37 * 15 + 3 * 300, {"log_pauses"}))
        self.assertEqual(self.figures(self.stalled(pause=0.05)), (3, 600, set()))
        jumps = self.stalled(pause=0.05)  # one row with a date in the future
        jumps.write_text(jumps.read_text().replace("2025/11/02 01:00:01.500", "2025/11/03 01:00:01.500"))
        self.assertEqual(self.figures(jumps), (3, 600, {"unordered_timestamps"}))

    def test_energy_counter_covers_pauses_of_logger(self):
        quiet = self.stalled(counter=lambda i: 150 if i in (21, 41) else 10)  # 50 W during the pauses
        self.assertEqual(self.figures(quiet), (8.9, 2 * 150 + 58 * 10, {"log_pauses"}))
        steady = self.stalled(counter=lambda i: 10)  # no energy in the pause: the clock was stepped
        self.assertEqual(self.figures(steady), (3, 600, {"unordered_timestamps"}))

    def test_recorded_duration_distinguishes_pause_from_clock_step(self):
        log = self.stalled("run_02_freq_1410_profile.csv")
        for duration, wanted in ((9, (8.9, 1780, {"log_pauses"})), (3, (3, 600, {"unordered_timestamps"}))):
            (self.path / "timing_summary.log").write_text(
                f"run_id,frequency_mhz,duration_seconds,exit_code,status\n02,1410,{duration},0,success\n")
            self.assertEqual(self.figures(log), wanted)

    def test_pauses_widen_intervals(self):
        def saving(spacing, pause):
            for mhz in range(600, 1401, 50):
                x = mhz / 1400
                self.stalled(f"llama_{mhz}MHz.log", pause, lambda _: round(60 + 240 * x ** 3 + mhz % 3, 3), None, spacing)
            done = ipw(None, "optimize", "--input", self.path, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            report, _ = self.fit(self.path)
            power = report["curves"][0]["at_fmax"]["power_w"]
            return json.loads(done.stdout), power["high"] / power["value"] - 1
        without, narrow = saving(0.05, 0.05)
        paused, wide = saving(0.05, 0.6)  # 1.2 of 4.1 s: half of that may be wrong
        self.assertGreater(wide, narrow + 0.1)
        self.assertGreater(wide, 0.5 * 1.2 / 4.1 - 0.001)
        pauses = 100 - paused["savings_pct"]["energy"]  # of both ends, in addition to the bootstrap error
        self.assertGreater(paused["savings_pct"]["plus_minus"], pauses * 0.5 * 1.2 / 4.1 * 2 ** 0.5 - 0.1)
        self.assertLess(without["savings_pct"]["plus_minus"], 5)
        self.assertIn("log_pauses", paused["flags"])
        self.assertNotIn("log_pauses", without["flags"])

    def test_directory_of_results(self):
        report, states = self.fit(LOGS)
        found = self.found(report)
        self.assertEqual(report["rows"], 25)
        for finding in (("clock_mismatch", "A100", "llama"), ("failed_runs", "A100", "llama"),
                        ("cold_runs", "A100", "llama"), ("clock_mismatch", "V100", "LSTM")):
            self.assertIn(finding, found)
        llama = next(state for state in states if state["application"] == "llama")
        self.assertEqual((llama["lowest_mhz"], llama["highest_mhz"]), (510, 1410))
        done = ipw(None, "optimize", "--input", LOGS, "--where", "gpu=A100", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        best = json.loads(done.stdout)
        points = {mhz: statistics.median(one["energy_j"] * one["time_s"] for one in ones)
                  for mhz, ones in usable().items()}
        self.assertEqual(best["recommended"]["freq_mhz"], min(points, key=points.get))
        self.assertIn("idle_parts", best["flags"])

    def test_validate_and_selected_logs(self):
        done = ipw(None, "power", "validate", "--input", LLAMA, "--where", "run=3", "--leave-out", "frequency",
                   "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = ipw(None, "power", "fit", "--input", LOGS, "--where", "gpu=A100,application=llama,freq_mhz=960", "--json")
        self.assertEqual(json.loads(done.stdout)["rows"], 3)

    def test_bad_input_is_reported(self):
        def fails(*words):
            done = ipw(None, "power", "fit", "--input", *words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            return done.stderr
        (self.path / "notes.txt").write_text("nothing\n")
        self.assertIn("no logs of `dcgmi dmon`", fails(self.path))
        self.assertIn("--where selects none", fails(LLAMA, "--where", "gpu=H100"))
        self.assertIn("no column 'seed'", fails(LLAMA, "--where", "seed=1"))
        (self.path / "run_01_freq_510_profile.csv").write_text("# Entity  POWER  SMACT\n      Id  W\n")
        self.assertIn("none of 1 rows is usable", fails(self.path))

    def test_table_of_results_is_not_a_log(self):
        table = self.path / "power.csv"
        table.write_text("timestamp,index,name,freq,power,time_s,saclk\n" +
                         "".join(f"{i},0,work,{500 + 100 * i},{100 + i},{9 - i},{500 + 100 * i}\n" for i in range(6)))
        report, _ = self.fit(table)
        self.assertEqual((report["rows"], report["curves"][0]["clocks"]), (6, 6))


@needs_raw
class PublicLogs(LogTest):
    def test_tables_and_csv(self):
        for name, gpu, application, mhz in (("GA100-baseline-LSTM-1410-1", "A100", "LSTM", 1410),
                                            ("GV100-baseline-LSTM-1380-2", "V100", "LSTM", 1380),
                                            ("GV100-baseline-LSTM-1380-1.45d9bf4", "V100", "LSTM", 1380)):
            self.check_against_reader(next(RAW.glob(name + "*")), gpu, application, mhz)

    def test_almost_half_of_the_samples_are_missing(self):
        report = self.check_against_reader(next(RAW.glob("GH100-baseline-StableDiffusion*")), "H100", "StableDiffusion",
                                        1785)
        self.assertNotIn(("idle_gpu", "H100", "StableDiffusion"), self.found(report))

    def test_directory_of_public_logs(self):
        report, _ = self.fit(RAW)
        found = self.found(report)
        self.assertEqual((report["rows"], report["rows_used"]), (6, 5))
        self.assertIn(("clock_mismatch", "V100", "LSTM"), found)  # 1230 MHz in a file named 1380
        self.assertIn(("idle_gpu", "H100", "LSTM"), found)
        work = next(curve for curve in report["curves"] if curve["gpu"] == "V100")["at_fmax"]["time_s"]["value"]
        self.assertAlmostEqual(work, 22.2, delta=0.5)  # 22.1 to 22.6 s when warm in its time files


if __name__ == "__main__":
    unittest.main()
