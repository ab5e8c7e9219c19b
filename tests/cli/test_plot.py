#!/usr/bin/env python3
"""ipw plot: every plot in every format, plots that are skipped and why, and escaping of texts."""

import json
import math
import os
import re
import shutil
import statistics
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import test_power_logs as logs  # noqa: E402
from plots import Picture, add_gauge, layers_of, png_size, run_at, run_directory  # noqa: E402
from program import NAN, TIMEOUT_S, ipw  # noqa: E402
from sweeps import write_sweep  # noqa: E402

# Expected texts of each plot: axes with units, and names of series.
OF_RUN = {
    "ttft": ("prompt (tokens)", "time to first token (ms)"),
    "latency": ("prompt and output (tokens)", "latency (s)"),
    "energy": ("prompt and output (tokens)", "energy (J per query)"),
    "power": ("prompt and output (tokens)", "query power (W)", "ln x"),
    "completion_tokens_kde": ("output (tokens)", "density (% of the queries per token)", "median"),
    "energy_distribution": ("energy (J per query)", "queries", "median", "mean"),
    "phases": ("energy (J per query)", "energy (J per token)", "prefill", "decode"),
    "timeline": ("time since the start (s)", "power (kW)", "requests", 'gpu "0", big gpu',
                 "cpu0 package"),
    "roofline": ("arithmetic intensity (FLOP per byte)", "performance (GFLOP/s)", "TFLOP/s bf16"),
}
OF_RUNS = {
    "pareto": ("energy (J per query)", "accuracy (%)", "Pareto frontier"),
    "concurrency": ("concurrent requests", "energy (J per output token)"),
    "context": ("mean prompt (tokens)", "energy (J per output token)"),
    "models": ("J per query", "J per output token", "median latency (s)", "accuracy (%)"),
}
OF_CLOCKS = {  # runs that only differ in their clock
    "frequency": ("energy (J per query)", "time (s per query)", "EDP (J·s per query)", "ED²P (J·s² per query)",
                  "mean GPU clock while requests ran (MHz)", "lowest energy", "lowest EDP"),
}
OF_LAYERS = {
    "layers": ("layer", "energy (J)", "attention.qkv", "ffn.down"),
    "components": ("energy (J)", "prefill", "decode", "attention.scores"),
    "layer_heatmap": ("layer", "energy (J)", "prefill", "decode", "ffn.gate_up"),
    "layer_power": ("time since the start (s)", "power (W)", "idle", "prefill", "decode"),
    "layer_scaling": ("prompt (tokens)", "energy (J per token)", "prefill", "decode", "energy measured; bars: ±"),
    "roofline": ("arithmetic intensity (FLOP per byte)", "performance (GFLOP/s)", "ffn.gate_up"),
}
FORMATS = ("png", "svg", "pdf")


class PlotTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        listed = json.loads(ipw(None, "list", "plots", "--json").stdout)["plots"]
        missing = {row["missing"] for row in listed if not row["available"]}
        if missing:
            raise unittest.SkipTest(f"plots are not available: {missing}")
        cls.names = [row["name"] for row in listed]

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ipw-plot-")
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def plot(self, *arguments, code=0, **options):
        done = ipw(None, "plot", *arguments, timeout=TIMEOUT_S, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn("line 0", done.stderr)  # no warnings of gnuplot
        return done

    def run_of(self, count, name="run", **options):
        return run_directory(self.root / name, [{}] * count, **options)

    def layers_file(self, **options):
        path = self.root / "measured.json"
        path.write_text(json.dumps(layers_of(**options)))
        return path

    def plotted_data(self, *sources, plot):
        """The input of gnuplot: rows of numbers by panel and series, and the whole script."""
        program, script = self.root / "bin/gnuplot", self.root / "script"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\ncat > {script}; echo drawn\n")
        program.chmod(0o755)
        self.plot(*sources, "--plot", plot, "--output-dir", self.root / "out",
                  env={"PATH": f"{program.parent}:/usr/bin:/bin"})
        said = script.read_text()
        found = re.findall(r"^\$p(\d)s(\d) << END\n(.*?)^END$", said, re.M | re.S)
        return {(int(p), int(s)): [tuple(map(float, row.split())) for row in rows.splitlines()]
                for p, s, rows in found}, said

    def check_files(self, folder, expected, formats):
        for name, texts in expected.items():
            said = Picture(folder / f"{name}.svg").text
            for text in texts:
                self.assertIn(text, said, name)
            self.assertNotRegex(said, r"\bnan\b|\binf\b")
            if "png" in formats:
                width, height = png_size((folder / f"{name}.png").read_bytes())
                self.assertEqual(width, 1600)
                self.assertGreater(height, 700)
            if "pdf" in formats:
                pdf = (folder / f"{name}.pdf").read_bytes()
                self.assertEqual(pdf[:5], b"%PDF-")
                self.assertEqual(pdf.rstrip()[-5:], b"%%EOF")
        self.assertEqual(sorted(path.name for path in folder.iterdir()),
                         sorted(f"{name}.{suffix}" for name in expected for suffix in formats))


class EveryPlot(PlotTest):
    """Every plot from known data; those of a run in each format, which gnuplot writes."""

    def test_every_plot_is_tested(self):
        self.assertEqual(set(self.names), {*OF_RUN, *OF_RUNS, *OF_CLOCKS, *OF_LAYERS})

    def test_plots_of_one_run(self):
        run = self.run_of(20)
        done = self.plot(run, "--format", ", ".join(FORMATS))
        self.check_files(run / "plots", OF_RUN, FORMATS)
        self.assertEqual(sorted(done.stdout.split()), sorted(
            f"{run}/plots/{name}.{suffix}" for name in OF_RUN for suffix in FORMATS))
        # Plots that need another kind of source are named, not drawn.
        for name in {**OF_RUNS, **OF_CLOCKS, **OF_LAYERS}.keys() - OF_RUN.keys():
            self.assertIn(name, done.stderr)

    def test_plots_of_several_runs(self):
        runs = [run_directory(self.root / f"r{n}", [{"tokens_in": 100 * n}] * 12, concurrency=n,
                              model=f"tiny-{n}b") for n in (1, 4)]
        out = self.root / "out"
        self.plot(*runs, "--plot", ",".join(OF_RUNS), "--format", "svg", "--output-dir", out)
        self.check_files(out, OF_RUNS, ["svg"])

    def test_plots_of_several_clocks(self):
        runs = [run_at(self.root / f"r{mhz}", mhz) for mhz in (900, 1500)]
        out = self.root / "out"
        self.plot(*runs, "--plot", ",".join(OF_CLOCKS), "--format", "svg", "--output-dir", out)
        self.check_files(out, OF_CLOCKS, ["svg"])

    def test_plots_of_layers(self):
        path = self.layers_file()
        self.plot(path, "--format", "svg")
        self.check_files(self.root / "measured-plots", OF_LAYERS, ["svg"])

    def test_plots_of_several_models(self):
        path = self.root / "both.json"
        path.write_text(json.dumps({"models": [layers_of("a/x.gguf"), layers_of("a/y.gguf")],
                                    "host": {"gpu": None}}))
        self.plot(path, "--plot", "layers", "--format", "svg")
        for name in "xy":
            said = Picture(self.root / f"both-plots/{name}/layers.svg").text
            self.assertIn(f"{name}.gguf", said)

    def test_output_directories_do_not_collide(self):
        """Below --output-dir each source has a folder named after it, and equal names do not collide."""
        runs = [self.run_of(3, "a/run"), self.run_of(4, "b/run")]
        out = self.root / "deep/out"
        self.plot(*runs, "--output-dir", out, "--plot", "ttft,models")
        self.assertEqual(sorted(str(path.relative_to(out)) for path in out.rglob("*.png")),
                         ["models.png", "run-2/ttft.png", "run/ttft.png"])
        self.plot(*runs, "--plot", "models,energy")
        self.assertTrue((runs[0] / "plots/models.png").exists())
        self.assertFalse((runs[1] / "plots/models.png").exists())
        self.assertTrue((runs[1] / "plots/energy.png").exists())


class Content(PlotTest):
    def svg(self, source, name, *more):
        self.plot(source, "--plot", name, "--format", "svg", "--output-dir", self.root / "out", *more)
        return Picture(self.root / f"out/{name}.svg")

    def test_every_completed_query_has_a_mark(self):
        rows = [{"tokens_in": 10 * n, "tokens_out": 5, "joules": 3 * n + n % 2} for n in range(1, 18)]
        run = run_directory(self.root / "run", [
            *rows, {"status": "failed"}, {"status": "failed"}, {"joules": None}])
        picture = self.svg(run, "energy")
        marks = picture.series()[0]
        self.assertEqual(len(marks), len(rows))
        # Positions are linear in the figures: the scale follows from the first and the last.
        xs, ys = [row["tokens_in"] + 5 for row in rows], [row["joules"] for row in rows]
        for values, axis in ((xs, 0), (ys, 1)):
            scale = (marks[-1][axis] - marks[0][axis]) / (values[-1] - values[0])
            for value, mark in zip(values, marks):
                self.assertAlmostEqual(mark[axis], marks[0][axis] + scale * (value - values[0]),
                                       delta=0.05)
        # The line is the least-squares fit.
        mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
        slope = (sum((x - mx) * (y - my) for x, y in zip(xs, ys))
                 / sum((x - mx) ** 2 for x in xs))
        self.assertIn(f"{1000 * slope:.1f} mJ/token", picture.text)

    def test_power_has_linear_and_logarithmic_fit(self):
        rows = [{"tokens_in": 2 ** n, "tokens_out": 2 ** n} for n in range(2, 9)]
        run = run_directory(self.root / "run", rows)
        lines = [text for text in self.svg(run, "power").texts() if "R²" in text]
        self.assertEqual([("token" in line, "ln x" in line) for line in lines],
                         [(True, False), (False, True)])

    def test_duplicate_marks_are_drawn_once(self):
        count = 5000
        rows = [{"tokens_in": 100 + n % 50, "tokens_out": 1, "joules": 10 + n % 50}
                for n in range(count)] + [{"tokens_in": 400, "tokens_out": 1, "joules": 99}]
        marks = self.svg(run_directory(self.root / "run", rows), "energy").series()[0]
        self.assertEqual(len(marks), 51)
        far = max(marks)
        self.assertEqual(sum(mark[0] > far[0] - 50 for mark in marks), 1)  # the outlier is drawn

    def test_pareto_frontier(self):
        choices = {"cheap": (10, 4), "dear": (50, 9), "beaten": (60, 6)}
        runs = [run_directory(self.root / name, [
            {"joules": joules, "correct": n < right} for n in range(10)], model=name)
            for name, (joules, right) in choices.items()]
        self.plot(*runs, "--plot", "pareto", "--format", "svg", "--output-dir", self.root / "out")
        picture = Picture(self.root / "out/pareto.svg")
        # error bars of dominated points (vertical, horizontal), then of those on the frontier
        series = picture.series()
        self.assertEqual([len(set(marks)) for marks in series[:4]], [1 + 1, 1, 2 + 1, 2])
        for name in choices:
            self.assertIn(name, picture.texts())

    def frontier(self, runs):
        """Of the Pareto plot: marks by run name, texts with their positions, and all texts."""
        folders = [run_directory(self.root / f"{name}-{joules}", [{"joules": joules, "correct": n < right} for n in range(20)],
                                 model=name, timeline=False) for name, (joules, right) in runs.items()]
        self.plot(*folders, "--plot", "pareto", "--format", "svg", "--output-dir", self.root / "out")
        picture = Picture(self.root / "out/pareto.svg")
        # One mark per run, without the legend; energies grow from left to right.
        marks = sorted({mark for series in picture.series()[1:4:2] for mark in series})
        self.assertEqual(len(marks), len(runs))
        return dict(zip(sorted(runs, key=lambda name: runs[name][0]), marks)), picture.placed_texts(), picture.texts()

    def assert_nearest(self, label, place, owner, marks):
        nearest = min(marks, key=lambda name: math.dist(place, marks[name]))
        self.assertEqual(nearest, owner, (label, place, marks))

    def test_label_is_nearest_to_its_point(self):
        runs = {"first": (10, 8), "second": (50, 18), "third": (80, 12)}
        marks, labels, _ = self.frontier(runs)
        for name in runs:
            self.assert_nearest(name, next(place for text, place in labels if text == name), name, marks)

    def test_labels_of_close_points_are_numbered(self):
        """If names would be closer to another point, points are numbered and a legend has the names."""
        runs = {f"model number {word}": (50 + i, 10) for i, word in enumerate(("one", "two", "three", "four"))}
        runs["far away"] = (500, 19)
        marks, labels, texts = self.frontier(runs)
        for number, name in enumerate(runs, 1):
            self.assertIn(f"{number}  {name}", texts)
            self.assertNotIn(name, texts)
        by_number = {text: place for text, place in labels if text in {"1", "2", "3", "4", "5"}}
        self.assert_nearest("5", by_number["5"], "far away", marks)

    def test_plots_state_method_of_energies(self):
        """In every plot of energy or power, for all runs."""
        runs = [self.run_of(6, f"r{n}", model=f"m{n}") for n in (1, 2)]
        for method, words in (("counter", "energies measured (counter), ±2.0 % common"), ("estimated", "energies estimated, ±2.0 % common")):
            for run in runs:
                summary = json.loads((run / "summary.json").read_text())
                summary["ipw"]["energy"]["method"] = method
                (run / "summary.json").write_text(json.dumps(summary))
            for plot in ("energy", "power", "energy_distribution", "phases", "timeline"):
                self.assertIn(words, self.plotted_data(runs[0], plot=plot)[1], plot)
            for plot in ("pareto", "models"):
                self.assertIn(words, self.plotted_data(*runs, plot=plot)[1], plot)

    def test_units_fit_magnitude(self):
        for joules, unit, scale in ((0.004, "mJ", 1e3), (3e-6, "µJ", 1e6), (12.0, "J", 1), (45e3, "kJ", 1e-3)):
            rows = [{"joules": joules * (1 + n / 10), "latency": 0.002} for n in range(6)]
            blocks, said = self.plotted_data(run_directory(self.root / unit, rows), plot="energy")
            self.assertIn(f"'energy ({unit} per query)'", said)
            self.assertAlmostEqual(blocks[0, 0][0][1], joules * scale, delta=1e-6 * joules * scale)
            self.assertIn(" (ms)'", self.plotted_data(self.root / unit, plot="latency")[1])

    def test_omitted_queries_are_counted(self):
        rows = [{}] * 165 + [{"joules": None}] * 30 + [{"status": "failed"}] * 5
        run = run_directory(self.root / "run", rows)
        blocks, said = self.plotted_data(run, plot="phases")
        self.assertIn("165 of 200 queries; 5 failed, 30 without separate phases", said)
        widths = [row[3] - row[2] for row in blocks[0, 0]]
        self.assertEqual(len(widths), 80)
        self.assertGreater(min(widths), 0.6 * max(widths))  # no very narrow bins
        self.assertIn("165 of 200 queries; 5 failed, 30 without prompt and output tokens or energy per query; ", self.plotted_data(run, plot="energy")[1])
        self.assertIn("'195 of 200 queries; 5 failed; ", self.plotted_data(run, plot="latency")[1])

    def test_error_bars_exclude_common_error(self):
        """The sensor error is common to runs of one machine; for different machines it is in the error bars."""
        rows = [{"joules": 10 + n % 3} for n in range(9)]
        runs = [run_directory(self.root / name, rows, model=name, timeline=False) for name in ("first", "other")]
        spread = 1.96 * math.hypot(math.sqrt(sum((10 + n % 3 - 11) ** 2 for n in range(9)) / 8 / 9), 0.05 * 11)

        def width():
            low, high = self.plotted_data(*runs, plot="pareto")[0][0, 3][0][2:]
            return (high - low) / 2

        self.assertAlmostEqual(width(), spread, delta=1e-6)
        summary = json.loads((runs[1] / "summary.json").read_text())
        (runs[1] / "summary.json").write_text(json.dumps({**summary, "hardware_label": "A100"}))
        self.assertAlmostEqual(width(), math.hypot(spread, 1.96 * 0.02 * 11), delta=1e-6)

    def test_one_line_per_device(self):
        """The core's energy is part of the package's, so it is not drawn separately."""
        said = self.svg(self.run_of(8), "timeline").text
        self.assertIn("cpu0 package", said)
        self.assertNotIn("core", said)

    def test_queries_lie_below_the_roofline(self):
        """Queries at 0.3 of the bandwidth lie on a line with 0.3 of the roof's slope."""
        picture = self.svg(self.run_of(9), "roofline")
        marks = sorted(picture.series()[0])
        self.assertEqual(len(set(marks)), 9)
        steps = {(round(b[0] - a[0], 1), round(a[1] - b[1], 1)) for a, b in zip(marks, marks[1:])}
        self.assertLessEqual(max(s[0] for s in steps) - min(s[0] for s in steps), 0.11)  # doubling each time
        self.assertLessEqual(max(s[1] for s in steps) - min(s[1] for s in steps), 0.11)
        roof = next(g for g in picture.root.iter() if g.get("id") == "gnuplot_plot_3")
        path = next(p.get("d") for p in roof.iter() if p.tag.endswith("path"))
        points = [tuple(map(float, p)) for p in re.findall(r"([\d.]+),([\d.]+)", path.split("M")[-1])]
        slope = (points[0][1] - points[1][1]) / (points[1][0] - points[0][0])
        self.assertAlmostEqual((marks[0][1] - marks[-1][1]) / (marks[-1][0] - marks[0][0]), slope, delta=0.01)
        below = marks[0][1] - (points[0][1] - slope * (marks[0][0] - points[0][0]))
        doubling = (marks[0][1] - marks[-1][1]) / 8
        self.assertAlmostEqual(below / doubling, math.log2(1 / 0.3), delta=0.05)

    def test_timeline_has_every_start_of_a_resumed_run(self):
        """One after the other, without the gap between them, which is reported."""
        run = self.run_of(8)
        spans = [json.loads(line) for line in (run / "spans.jsonl").read_text().splitlines()]
        for start, shift in ((2, 100.0), (3, 0.0)):
            with open(run / "spans.jsonl", "a", encoding="utf-8") as file:
                for span in spans:
                    file.write(json.dumps({**span, "start": start, "from_s": span["from_s"] + shift,
                                           "first_token_s": span["first_token_s"] + shift,
                                           "to_s": span["to_s"] + shift}) + "\n")
            lines = (run / "samples.csv").read_text().splitlines()
            moved = [f"{float(line.split(',', 1)[0]) + shift},{line.split(',', 1)[1]}" for line in lines[1:]]
            (run / f"samples-{start}.csv").write_text("\n".join([lines[0], *moved]) + "\n")
        said = self.svg(run, "timeline").text
        self.assertIn("3 starts, the time between them omitted", said)
        for text in ("another start", "start 2", "start 3", "time without the gaps (s)"):
            self.assertIn(text, said)
        self.assertEqual(said.count("cpu0 package"), 1)  # one series for a device of three starts
        # By their start times: 3600 s and 100 s plus the duration of the requests.
        journal = (run / "records.jsonl").read_text().splitlines()
        begun = [json.dumps({"kind": "run", "format": 1, "start": n, "started_at": 1.7e9 + 3600 * (n - 1)})
                 for n in (1, 2, 3)]
        (run / "records.jsonl").write_text("\n".join(begun + journal[1:]) + "\n")
        self.assertIn("3 starts, 1 h 59 m between them omitted", self.svg(run, "timeline").text)
        (run / "samples-2.csv").unlink()
        self.svg(run, "timeline")

    def test_uses_machine_energy_without_gpu_energy(self):
        run = self.run_of(6)
        records = run / "records.jsonl"
        records.write_text(records.read_text().replace('"per_query_joules"', '"nothing"'))
        self.assertIn("of the machine", self.svg(run, "energy").text)

    def test_uses_machine_power_without_gpu_power(self):
        run = self.run_of(6)
        records = run / "records.jsonl"
        records.write_text(records.read_text().replace('"power_metrics"', '"nothing"'))
        self.assertIn("of the GPUs", self.svg(run, "energy").text)
        said = self.svg(run, "power").text
        self.assertIn("of the machine: GPU power was not recorded", said)
        self.assertNotIn("no GPU", said)

    def test_fit_is_mentioned_if_drawn(self):
        self.assertIn("least squares", self.svg(self.run_of(6), "latency").text)
        same = run_directory(self.root / "same", [{"tokens_in": 10, "tokens_out": 5}] * 6)
        for name in ("latency", "ttft", "energy"):
            self.assertNotIn("least squares", self.svg(same, name).text)

    def test_log_axis_within_one_decade_has_labels(self):
        runs = [run_directory(self.root / f"r{n}", [{"tokens_in": n, "tokens_out": 9}] * 4, model=f"m{n}") for n in (150, 170, 195)]
        self.plot(*runs, "--plot", "context", "--format", "svg", "--output-dir", self.root)
        numbers = [float(text) for text in Picture(self.root / "context.svg").texts() if re.fullmatch(r"1\d\d|200", text)]
        self.assertGreaterEqual(len(numbers), 3)
        self.assertTrue(all(145 <= number <= 205 for number in numbers), numbers)

    def test_output_is_deterministic(self):
        run = self.run_of(10)
        for out in ("one", "two"):
            self.plot(run, "--plot", "energy,timeline", "--format", "png,svg,pdf", "--output-dir",
                      self.root / out)
        for path in (self.root / "one").iterdir():
            self.assertEqual(path.read_bytes(), (self.root / "two" / path.name).read_bytes(),
                             path.name)

    def test_dark_theme(self):
        run = self.run_of(5)
        light = self.svg(run, "ttft")
        dark = self.svg(run, "ttft", "--dark")

        def paper(picture):
            rects = [r.get("fill") for r in picture.root.iter() if r.tag.endswith("rect")]
            return rects[0]

        self.assertEqual(paper(light), "#ffffff")
        self.assertLess(int(paper(dark)[1:3], 16), 0x30)


class Frequency(PlotTest):
    """Energy, time and EDP against the clock, for runs that only differ in it."""

    def blocks(self, *runs):
        return self.plotted_data(*runs, plot="frequency")

    def why_not(self, *runs):
        done = self.plot(*runs, "--plot", "frequency", "--output-dir", self.root / "out", code=1)
        self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1), done.stderr)
        self.assertFalse((self.root / "out").exists())
        return done.stderr

    def clock_of(self, run):
        """The x of a run, plotted with another run at 5000 MHz."""
        other = self.root / "other"
        shutil.rmtree(other, ignore_errors=True)
        marks = self.blocks(run, run_at(other, 5000))[0][0, 1]
        return next(mark[0] for mark in marks if mark[0] != 5000)

    def test_gpu_profiler_logs(self):
        blocks, said = self.plotted_data("--input", logs.LOGS, "--where", "gpu=A100", plot="frequency")
        points = logs.usable()
        self.assertEqual([row[0] for row in blocks[0, 0]], sorted(points))
        for row in blocks[0, 0]:
            watts = statistics.median(one["power_w"] for one in points[row[0]])
            window = statistics.median(one["energy_j"] / one["power_w"] for one in points[row[0]])
            self.assertAlmostEqual(row[1] / (watts * window), 1, places=4)
        for row in blocks[1, 0]:
            self.assertAlmostEqual(row[1] / statistics.median(one["time_s"] for one in points[row[0]]), 1, places=4)
        self.assertIn("llama", said)
        self.assertIn("7 clocks on A100, medians of 14 runs", said)

    def test_measurements_of_several_applications(self):
        done = self.plot("--input", logs.LOGS, "--plot", "frequency", "--output-dir", self.root / "out")
        self.assertEqual(done.stdout, f"{self.root}/out/A100_llama/frequency.png\n")
        self.assertIn("skipped for H100 vit: frequency: 1 usable clocks", done.stderr)
        self.assertIn("missing run directory, or --input", self.plot(code=2).stderr)
        self.assertIn("no logs", self.plot("--input", self.root / "out/A100_llama", code=1).stderr)

    def test_frequency_figures(self):
        # Joules and seconds of the queries of a run by clock.
        queries = {1980: [(40, 1.0), (48, 1.2), (56, 1.1), (40, 0.9)],
                   1200: [(30, 1.5), (36, 1.8), (42, 1.7), (30, 1.4)],
                   600: [(33, 3.0), (39, 3.6), (45, 3.3), (33, 2.7)]}
        runs = [run_at(self.root / f"r{mhz}", mhz, [{"joules": j, "latency": s} for j, s in rows])
                for mhz, rows in queries.items()]
        blocks, said = self.blocks(*runs)

        def half(values):
            """1.96 standard errors of the mean, without the common sensor error."""
            mean = sum(values) / len(values)
            return 1.96 * math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))

        def with_spread(off, value, factor=1.0):
            """And 5 % between runs, of energy and of time."""
            return math.hypot(off, 1.96 * 0.05 * factor * value)

        expected = {0: [], 1: [], 2: [], 3: []}
        for mhz in sorted(queries):
            joules, seconds = zip(*queries[mhz])
            j, s = sum(joules) / 4, sum(seconds) / 4
            for panel, value, off in (
                    (0, j, with_spread(half(joules), j)), (1, s, with_spread(half(seconds), s)),
                    (2, j * s, with_spread(half([a * s + b * j for a, b in queries[mhz]]), j * s, 2 ** 0.5)),
                    (3, j * s * s, with_spread(half([a * s * s + 2 * b * j * s for a, b in queries[mhz]]), j * s * s, 5 ** 0.5))):
                expected[panel].append((mhz, value, value - off, value + off))
        for panel, rows in expected.items():
            for row, wanted in zip(blocks[panel, 1], rows, strict=True):
                for got, value in zip(row, wanted, strict=True):
                    self.assertAlmostEqual(got, value, delta=1e-6 * value)
            self.assertEqual(blocks[panel, 0], [row[:2] for row in blocks[panel, 1]])  # the line
        # By hand: 46 J x 1.05 s = 48.3 J s, 34.5 x 1.6 = 55.2, 37.5 x 3.15 = 118.
        self.assertEqual([row[0] for row in blocks[0, 2]], [1200])
        self.assertEqual([row[0] for row in blocks[2, 2]], [1980])
        self.assertEqual([row[0] for row in blocks[3, 2]], [1980])
        self.assertNotIn((1, 2), blocks)
        self.assertRegex(said, r"title 'lowest energy: 34\.5 ± 6\.6 J at 1200 MHz'")
        self.assertRegex(said, r"title 'lowest EDP: 48 ± 14 J·s at 1980 MHz'")
        self.assertRegex(said, r"title 'lowest ED²P: 51 ± 22 J·s² at 1980 MHz'")
        self.assertIn("'3 runs of sums on H100, 4 queries each; energies measured (counter), ±2.0 % common to all, cancels in differences'", said)
        self.assertIn("'bars and ±: 95 % CI, with 5 % between runs (assumed)'", said)

    def test_frequency_positions(self):
        joules = {600: 30, 1000: 20, 1800: 40}
        runs = [run_at(self.root / f"r{mhz}", mhz, [{"joules": j, "latency": 2}] * 4)
                for mhz, j in joules.items()]
        self.plot(*runs, "--plot", "frequency", "--format", "svg", "--output-dir", self.root / "out")
        picture = Picture(self.root / "out/frequency.svg")
        panels = [marks for marks in map(list, map(dict.fromkeys, picture.series())) if len(marks) == 3]
        self.assertEqual(len(panels), 4)
        for marks in panels:  # one below the other, with equal x positions
            self.assertEqual([x for x, _ in marks], [x for x, _ in panels[0]])
        (x0, y0), (x1, y1), (x2, y2) = panels[0]
        self.assertAlmostEqual((x2 - x0) / (x1 - x0), 1200 / 400, delta=0.02)
        self.assertAlmostEqual((y0 - y2) / (y1 - y0), 10 / 10, delta=0.02)
        self.assertEqual(len({y for _, y in panels[1]}), 1)

    def test_clock_is_averaged_while_requests_ran(self):
        """Weighted by time, not by readings: 1 s at 600 and 3 s at 1400 MHz, without the time in between."""
        run = self.run_of(4)
        spans = [(0, 1.0), (2, 4), (3, 5)]
        (run / "spans.jsonl").write_text("".join(json.dumps(
            {"key": "q", "start": 1, "span": "request", "from_s": a, "to_s": b}) + "\n" for a, b in spans))
        add_gauge(run, [(-9, 99), (0, 99), (0.25, 600), (0.5, 600), (1, 600), (2, 5000), (5, 1400), (9, 99)])
        self.assertAlmostEqual(self.clock_of(run), (1 * 600 + 3 * 1400) / 4, delta=1e-5)

    def test_gaps_are_ignored(self):
        run = add_gauge(self.run_of(4), [(0, 800), (1, 800), (3, 9000, 0), (4, 1000)])
        self.assertAlmostEqual(self.clock_of(run), 900, delta=1e-5)

    def test_clock_of_every_start(self):
        """Each start has its own time axis: 4 s at 700 and 1 s at 1200 MHz."""
        run = add_gauge(self.run_of(4), [(0, 700), (4, 700)])
        with open(run / "spans.jsonl", "a", encoding="utf-8") as file:
            file.write('{"key": "q", "start": 2, "span": "request", "from_s": 100, "to_s": 101}\n')
        self.assertAlmostEqual(self.clock_of(run), 700, delta=1e-5)  # the second has no samples
        (run / "samples-2.csv").write_text("t_s,sensor,device,channel,scope,quantity,unit,value,sum,covered,x\n")
        add_gauge(run, [(0, 300), (100, 300), (101, 1200)], start=2)
        self.assertAlmostEqual(self.clock_of(run), (4 * 700 + 1200) / 5, delta=1e-5)

    def test_clock_of_busiest_gpu(self):
        run = self.run_of(4)
        for number, mhz, busy in ((0, 300, 2), (1, 1300, 80), (2, 400, 5)):
            add_gauge(run, [(0, mhz), (5, mhz)], device=f"gpu{number}", sensor=f"nvml:{number}")
            add_gauge(run, [(0, busy), (5, busy)], device=f"gpu{number}", sensor=f"nvml:{number}",
                      quantity="utilisation")
        add_gauge(run, [(0, 3000), (5, 3000)], device="host", sensor="host")
        self.assertAlmostEqual(self.clock_of(run), 1300, delta=1e-5)

    def test_cpu_clock_if_gpu_is_idle(self):
        runs = []
        for mhz, gpu in ((2000, False), (3000, True)):
            runs.append(add_gauge(self.run_of(4, f"r{mhz}"), [(0, mhz), (5, mhz)], device="host", sensor="host"))
            if gpu:
                add_gauge(runs[-1], [(0, 210), (5, 210)])
                add_gauge(runs[-1], [(0, 0), (5, 0)], quantity="utilisation")
        blocks, said = self.blocks(*runs)
        self.assertEqual([row[0] for row in blocks[0, 1]], [2000, 3000])
        self.assertIn("mean CPU clock while requests ran (MHz)", said)
        self.assertIn("some runs have a GPU", self.why_of_mixed(runs[0]))

    def why_of_mixed(self, run):
        shutil.rmtree(self.root / "out")
        return self.why_not(run, run_at(self.root / "gpu", 1000))

    def test_repeated_runs_share_a_point_of_the_line(self):
        runs = [run_at(self.root / f"r{n}", mhz, [{"joules": joules}] * 4)
                for n, (mhz, joules) in enumerate([(1000, 10), (1004, 14), (1500, 20)])]
        blocks, _ = self.blocks(*runs)
        self.assertEqual(len(blocks[0, 1]), 3)
        self.assertEqual(blocks[0, 0], [(1002, 12), (1500, 20)])

    def test_one_query_has_no_interval(self):
        runs = [run_at(self.root / f"r{mhz}", mhz, [{"joules": 10, "latency": 1}]) for mhz in (500, 900)]
        for row in self.blocks(*runs)[0][1, 1]:
            self.assertEqual(row[1:], (1, 1, 1))
        runs.append(run_at(self.root / "more", 1200, [{}] * 3 + [{"status": "failed"}]))
        self.assertIn("3 runs of sums on H100, 1 to 3 queries each", self.blocks(*runs)[1])

    def test_run_without_clock_is_left_out(self):
        runs = [run_at(self.root / "a", 900), self.run_of(4, "b"), run_at(self.root / "c", 1500)]
        blocks, said = self.blocks(*runs)
        self.assertEqual([row[0] for row in blocks[0, 1]], [900, 1500])
        self.assertIn("2 runs of sums on H100, 6 queries each; 1 without clock or energy excluded", said)
        self.assertIn("energies measured (counter), ±2.0 % common", said)

    def test_skipped_frequency_plot_has_reason(self):
        run = run_at(self.root / "run", 900)

        def other(name, **options):
            return run_at(self.root / name, 1500, **options)

        no_samples = self.run_of(4, "no-samples", timeline=False)
        for others, words in (
                ((), "needs two runs"),
                ((other("m", model="tiny-2b"),), "differ in more than the clock: models tiny-1b and tiny-2b"),
                ((other("d", dataset="tales"),), "differ in more than the clock: datasets sums and tales"),
                ((other("c", concurrency=4),), "differ in more than the clock: concurrency 1 and 4"),
                ((run_at(self.root / "same", 905),), "do not differ: 900 to 905 MHz, within 1 %"),
                ((self.run_of(4, "no-clock"),),
                 "1 of 2 runs have a clock, and energy and time per query; no device's clock is among the samples: "
                 f"{self.root}/no-clock"),
                ((no_samples,), f"the run has no spans: {no_samples}"),
                ((other("e", rows=[{"joules": None}] * 3),), "energy or time per query is unknown"),
                ((add_gauge(self.run_of(4, "late"), [(50, 900), (60, 900)]),), "no clock was read while requests ran"),
        ):
            self.assertIn(words, self.why_not(run, *others))
        idle = run_at(self.root / "idle", 1500)
        add_gauge(idle, [(0, 0), (5, 0)], quantity="utilisation")
        self.assertIn("no GPU was active while requests ran", self.why_not(run, idle))

    def test_long_path(self):
        runs = [run_at(self.root / "/".join(["deep" * 20] * 5) / f"r{mhz}", mhz) for mhz in (900, 1500)]
        self.assertEqual(len(self.blocks(*runs)[0][0, 1]), 2)

    def test_runs_of_a_command(self):
        runs = [run_at(self.root / f"r{mhz}", mhz, [{"joules": j, "latency": 2.0}] * 3) for mhz, j in ((900, 30), (1500, 40))]
        for run in runs:
            for name in ("records.jsonl", "summary.json"):
                text = (run / name).read_text()
                (run / name).write_text(text.replace('"format": 1', '"format": 1, "run_kind": "run"')
                                        .replace('{"model"', '{"run_kind": "run", "model"'))
        blocks, said = self.blocks(*runs)
        self.assertEqual([row[:2] for row in blocks[3, 1]], [(900, 120), (1500, 160)])
        self.assertIn("ED²P (J·s² per run)", said)
        self.assertIn("mean GPU clock while the command ran (MHz)", said)
        self.assertIn("3 runs each", said)

    def test_frequency_of_sweep(self):
        true = {600: (33, 3.0), 1200: (30, 1.5), 1980: (46, 1.0)}
        attempts = [((mhz,), {"joules": j * f, "seconds": s * f}) for f in (0.98, 1.02) for mhz, (j, s) in true.items()]
        attempts += [((1980,), {"joules": 1, "seconds": 1, "flags": "throttled"}), (("default",), {"joules": 50, "seconds": 1})]
        blocks, said = self.blocks(write_sweep(self.root / "sweep", ("gpu-clock",), attempts))
        relative = statistics.stdev((0.98, 1.02)) / math.sqrt(2)  # standard error of a mean of two
        for panel, (n, of_time) in enumerate(((0, False), (1, True), (1, False), (2, False))):
            for (mhz, value, low, high), (wanted, (j, s)) in zip(blocks[panel, 1], true.items(), strict=True):
                exact = s if of_time else j * s ** n
                off = 1.96 * exact * (relative if of_time else relative * math.hypot(1, n))
                self.assertEqual(mhz, wanted)
                for got, hoped in ((value, exact), (low, exact - off), (high, exact + off)):
                    self.assertAlmostEqual(got, hoped, delta=1e-6 * exact)
        self.assertEqual([blocks[panel, 2][0][0] for panel in (0, 2, 3)], [1200, 1200, 1980])
        self.assertIn("GPU clock, as set (MHz)", said)
        self.assertIn("excluded: 1 throttled", said)
        self.assertIn("ED²P (J·s² per run)", said)

    def test_sweep_of_other_knob(self):
        attempts = [((n,), {"joules": 10 / n, "seconds": n, "queries": 5, "method": "estimated"}) for n in (4, 1, 2)]
        sweep = write_sweep(self.root / "sweep", ("n",), attempts, profile=True)
        blocks, said = self.blocks(sweep)
        self.assertEqual([row[:2] for row in blocks[0, 1]], [(1, 2), (2, 1), (4, 0.5)])  # a fifth: per query
        self.assertRegex(said, r"lowest energy: 500.* mJ at n = 4'")
        self.assertIn("energies estimated", said)

    def test_skipped_sweep_has_reason(self):
        other = write_sweep(self.root / "other", ("n", "m"), [((n, m), {"joules": n, "seconds": m}) for n in (1, 2) for m in (1, 2)])
        self.assertIn("two knobs, n and m", self.why_not(other))
        words = write_sweep(self.root / "words", ("n",), [((n,), {"joules": 1, "seconds": 1}) for n in ("a", "b")])
        self.assertIn("not numbers", self.why_not(words))

    def test_former_plot_names_get_suggestion(self):
        for name in ("sweep", "frequency_sweep"):
            self.assertIn("did you mean 'frequency'?", self.plot("x", "--plot", name, code=2).stderr)


class Escaping(PlotTest):
    def test_texts_are_not_executed_by_gnuplot(self):
        mark = self.root / "touched"
        texts = [f'a_b"; system("touch {mark}")', f"a'; system('touch {mark}'); '",
                 f"`touch {mark}`", f"$(touch {mark})", f"'.system(\"touch {mark}\").'",
                 f"a\n!touch {mark}\n", f"x\nEND\nsystem('touch {mark}')\n", "%s%n%d %", "\\",
                 "a^{b}_c@d&e~f", "<b>&amp;</b>", "\x01\x7f\x1b[31m", "ü" * 300, "plain", "other"]
        # Each of three texts is the model of a run and in the names of components.
        for at in range(0, len(texts), 3):
            evil = texts[at:at + 3]
            shutil.rmtree(self.root / "runs", ignore_errors=True)
            runs = [run_directory(self.root / f"runs/{n}", [{}] * 4, model=model, concurrency=n)
                    for n, model in enumerate(evil, 1)]
            path = self.root / "runs/layers.json"
            measured = layers_of(evil[0])
            for number, part in enumerate(measured["components"] + measured["layers"][0]["components"]):
                part["name"] += evil[number % 3]
            path.write_text(json.dumps(measured))
            # Gnuplot takes most of the time, and all texts take the same path.
            plots = "energy,models,pareto,concurrency,components,layer_heatmap"
            self.plot(*runs, path, "--plot", plots, "--format", "svg", "--output-dir", self.root / "runs/out")
            self.assertFalse(mark.exists(), evil)
            for picture in (self.root / "runs/out").rglob("*.svg"):
                Picture(picture)  # still XML

    def test_special_characters_are_shown(self):
        evil = """a_b"; system("x") 'q' `t` 100% {c}^d <&> @e \\n"""
        run = self.run_of(4, model=evil)
        self.plot(run, "--plot", "energy", "--format", "svg", "--output-dir", self.root)
        self.assertIn(evil, Picture(self.root / "energy.svg").text)

    def test_long_name_keeps_its_end(self):
        """The end often distinguishes two runs."""
        models = [f"{first}-model-with-a-really-long-name-ending-in-q{bits}" for first, bits in (("a", 4), ("b", 8))]
        for concurrency, end in ((1, "in-q{}"), (2, "in-q{}, concurrency {}")):
            runs = [self.run_of(4, f"{model}-{concurrency}", model=model, concurrency=i * (concurrency - 1) + 1)
                    for i, model in enumerate(models)]
            self.plot(*runs, "--plot", "models", "--format", "svg", "--output-dir", self.root)
            names = [text for text in Picture(self.root / "models.svg").texts() if "…" in text]
            self.assertEqual(len(names), 2)
            for i, name in enumerate(names):
                self.assertTrue(name.startswith(f"{'ab'[i]}-mode") and name.endswith(end.format(4 + 4 * i, i + 1)), name)
                self.assertLessEqual(len(name), 34)

    def legend(self, *models, plot="context"):
        shutil.rmtree(self.root / "named", ignore_errors=True)
        runs = [run_directory(self.root / f"named/{n}", [{"tokens_in": 50 * n + 50}] * 4, model=model) for n, model in enumerate(models)]
        self.plot(*runs, "--plot", plot, "--format", "svg", "--output-dir", self.root)
        return Picture(self.root / f"{plot}.svg").texts()

    def test_names_are_shortened_if_they_stay_distinct(self):
        for plot in ("context", "models"):
            said = self.legend("/data/models/tiny-1b.gguf", "meta/llama-8b", plot=plot)
            self.assertLessEqual({"tiny-1b.gguf", "llama-8b"}, set(said))
            said = self.legend("orgA/llama-8b", "orgB/llama-8b", "meta/other", plot=plot)
            self.assertLessEqual({"orgA/llama-8b", "orgB/llama-8b", "other"}, set(said))
            self.assertNotIn("llama-8b", said)
            # A slash alone does not make a name a path.
            evil = 'a_b"; system("touch /tmp/x")'
            self.assertIn(evil, self.legend(evil, "b", plot=plot))

    def test_truncated_names_stay_distinct(self):
        models = [f"beginning.of.a.name.{word}.and.then.a.long.end.of.the.name" for word in ("one", "two")]
        for plot in ("context", "models"):
            names = [text for text in self.legend(*models, plot=plot) if "…" in text]
            self.assertEqual(len(set(names)), 2, names)
            self.assertEqual([name.count("…") for name in names], [1, 1])

    def test_heading_of_layers_plot(self):
        for model, shown in (("/m/tiny.gguf", ": tiny.gguf"), ('x"; y("/tmp/z")', ': x"; y("/tmp/z")')):
            self.plot(self.layers_file(model=model), "--plot", "layers", "--format", "svg", "--output-dir", self.root)
            self.assertTrue(any(text.endswith(shown) for text in Picture(self.root / "layers.svg").texts()))

    def test_names_with_percent_signs(self):
        runs = [self.run_of(4, f"r{n}", model=f"100%s{n}") for n in (1, 2)]
        self.plot(*runs, "--plot", "models", "--format", "svg", "--output-dir", self.root)
        self.assertIn("100%s1", Picture(self.root / "models.svg").texts())


class LayerScaling(PlotTest):
    """Energy per token of layers results against prompt length and model size."""

    def put(self, name, **options):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(layers_of(**options)))
        return path

    def expected(self, *paths, phase):
        """(prompt, J per token, minus ±, plus ±) by prompt, and the parameters."""
        rows = []
        for path in paths:
            result = json.loads(path.read_text())
            for s in result["settings"]:
                if s["phase"] == phase:
                    each, off = s["energy_j"] / s["tokens"], s["plus_minus"] / s["tokens"]
                    rows.append((s["prompt_tokens"], each, each - off, each + off, result["parameters"]))
        return sorted(rows)

    def assertRows(self, got, wanted):
        for row, expected in zip(got, wanted, strict=True):
            for a, b in zip(row, expected, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-9 * abs(b))

    def test_prompts_and_sizes(self):
        small = self.put("small.json", model="a/small.gguf", parameters=5e8)
        large = self.put("large/layers.json", model="a/large.gguf", parameters=8e9, prompts=(128, 512))
        blocks, said = self.plotted_data(large.parent, small, plot="layer_scaling")
        # Panel 0: large and small, each prefill and decode: a line, and marks with ±.
        for series, (path, phase) in enumerate([(large, "prefill"), (large, "decode"), (small, "prefill"),
                                                (small, "decode")]):
            wanted = [row[:4] for row in self.expected(path, phase=phase)]
            self.assertRows(blocks[0, 2 * series + 1], wanted)
            self.assertRows(blocks[0, 2 * series], [row[:2] for row in wanted])
        for name in ("large.gguf, prefill", "large.gguf, decode", "small.gguf, prefill", "small.gguf, decode"):
            self.assertIn(f"title '{name}'", said)
        # Panel 1: at 128 tokens, common to both, ordered by model size.
        for series, phase in enumerate(("prefill", "decode")):
            wanted = [(row[4] / 1e9, *row[1:4]) for path in (small, large)
                      for row in self.expected(path, phase=phase) if row[0] == 128]
            self.assertRows(blocks[1, 2 * series + 1], wanted)
            self.assertIn(f"title '{phase}, prompt of 128 tokens'", said)
        self.assertIn("'parameters (billions)'", said)
        self.assertIn("2 results, energy measured; bars: ±", said)

    def test_results_of_one_model_share_a_line(self):
        """For the same model and setup; another machine has its own line."""
        parts = [self.put("1.json", model="here/m.gguf", prompts=(512, 32)),
                 self.put("2.json", model="there/m.gguf", prompts=(128,))]
        blocks, said = self.plotted_data(*parts, plot="layer_scaling")
        self.assertEqual(set(blocks), {(0, series) for series in range(4)})
        self.assertRows(blocks[0, 1], [row[:4] for row in self.expected(*parts, phase="prefill")])
        self.assertRegex(said, "against prompt length: m.gguf'")
        self.assertIn("title 'prefill'", said)
        other = json.loads(parts[1].read_text())
        other.update(host={"hardware_label": "M4"}, method="estimated")
        parts[1].write_text(json.dumps(other))
        blocks, said = self.plotted_data(*parts, plot="layer_scaling")
        self.assertRows(blocks[0, 1], [row[:4] for row in self.expected(parts[0], phase="prefill")])
        self.assertIn("title 'M4, decode'", said)
        self.assertIn("energy measured or estimated", said)

    def test_single_point_is_not_plotted(self):
        path = self.put("one.json", prompts=(32,))
        done = self.plot(path, "--plot", "layer_scaling", code=1)
        self.assertIn("one prompt length (32 tokens) and one model size", done.stderr)
        self.assertIn("--prompt-tokens", done.stderr)
        # Two sizes at one length: no panel against prompt length.
        other = self.put("other.json", model="b.gguf", parameters=2e9, prompts=(32,))
        blocks, said = self.plotted_data(path, other, plot="layer_scaling")
        self.assertEqual([row[0] for row in blocks[0, 1]], [1, 2])
        self.assertNotIn("'prompt (tokens)'", said)

    def test_output_path_of_layer_scaling(self):
        folder = self.put("run/layers.json").parent
        done = self.plot(folder, self.put("f.json", parameters=3e9), "--plot", "layer_scaling")
        self.assertEqual(done.stdout, f"{folder}/plots/layers/layer_scaling.png\n")


class MissingData(PlotTest):
    def test_plots_without_energy_are_skipped(self):
        run = run_directory(self.root / "run", [{"joules": None}] * 5, timeline=False)
        done = self.plot(run)
        self.assertTrue((run / "plots/ttft.png").exists())
        for name in ("energy", "power", "energy_distribution", "phases"):
            self.assertFalse((run / f"plots/{name}.png").exists())
            self.assertRegex(done.stderr, rf"skipped: .*{name}.*none of 5 completed")
        self.assertIn("timeline: the run has no samples", done.stderr)
        done = self.plot(run, "--plot", "energy", code=1)
        self.assertEqual(done.stdout, "")
        self.plot(run, "--plot", "energy,ttft", code=1)

    def test_run_with_one_record(self):
        run = self.run_of(1)
        done = self.plot(run, "--format", "svg")
        self.assertEqual(len(Picture(run / "plots/energy.svg").series()[0]), 1)
        self.assertNotIn("R²", Picture(run / "plots/energy.svg").text)
        self.assertIn("energy_distribution: a distribution needs three", done.stderr)
        self.assertIn("completion_tokens_kde: a density needs two", done.stderr)

    def test_identical_queries(self):
        run = run_directory(self.root / "run", [{"tokens_in": 7, "tokens_out": 7, "joules": 2}] * 9)
        self.plot(run, "--format", "svg")
        self.assertTrue((run / "plots/energy_distribution.svg").exists())

    def test_all_queries_failed(self):
        run = run_directory(self.root / "run", [{"status": "failed"}] * 3, timeline=False)
        done = self.plot(run, code=1)
        self.assertIn("energy", done.stderr)
        self.assertFalse((run / "plots").exists())

    def test_runs_with_equal_concurrency(self):
        runs = [self.run_of(4, name) for name in "ab"]
        done = self.plot(*runs, "--plot", "concurrency", code=1)
        self.assertIn("all runs have the same concurrency", done.stderr)

    def test_layers_result_without_layers(self):
        measured = layers_of()
        measured["granularity"] = "phase"
        for entry in measured["layers"]:
            entry.update(time_s=0, energy_j=0, components=[])
        path = self.root / "m.json"
        path.write_text(json.dumps(measured))
        done = self.plot(path)
        self.assertIn("layers, layer_heatmap: layers were not measured separately", done.stderr)
        self.assertTrue((self.root / "m-plots/components.png").exists())

    def test_layers_without_energy(self):
        measured = layers_of()
        measured["energy"]["joules"] = None
        for part in [*measured["components"], *measured["layers"], *measured["windows"], *measured["settings"]]:
            part["energy_j"] = part["power_w"] = None
        path = self.root / "m.json"
        path.write_text(json.dumps(measured))
        done = self.plot(path, "--format", "svg")
        self.assertIn("no layer has a known energy", done.stderr)
        self.assertIn("components: no component has a known energy", done.stderr)
        self.assertEqual(done.stdout.split(), [f"{self.root}/m-plots/roofline.svg"])
        self.assertNotRegex(Picture(self.root / "m-plots/roofline.svg").text, NAN)


class BadInput(PlotTest):
    def test_usage_errors(self):
        for arguments, words in (
                ((), "missing run directory"), (("x", "--plot", "enrgy"), "did you mean 'energy'"),
                (("x", "--plot", ","), "--plot is empty"), (("x", "--format", "gif"), "png, svg"),
                (("x", "--format", ","), "--format is empty"),
                (("x", "--output-dir", "x.svg"), "to a directory: --output-dir"),
                *(((*words, "x"), "plots are written to a directory: use --output-dir DIR")
                  for words in (("-o", self.root / "out"), ("--output", self.root / "out"),
                                (f"--output={self.root}/out",), ("-o", "x.svg"), ("-o", "-")))):
            self.assertIn(words, self.plot(*arguments, code=2).stderr)

    def test_bad_sources(self):
        for name, content, words in (("a.json", "{", "a.json"), ("b.json", "{}", "has no layers"),
                                     ("c.json", "[1, 2]", "has no layers"), ("d.json", "", "d.json")):
            path = self.root / name
            path.write_text(content)
            self.assertIn(words, self.plot(path, code=1).stderr)
        self.assertIn("nowhere", self.plot(self.root / "nowhere", code=1).stderr)
        (self.root / "empty").mkdir()
        # one line, and none for plots that need another source
        for path in (self.root / "nowhere", self.root / "empty"):
            self.assertEqual(self.plot(path, code=1).stderr.count("\n"), 1)

    def test_bad_source_does_not_stop_others(self):
        run = self.run_of(4)
        self.plot(self.root / "nowhere", run, "--plot", "energy", code=1)
        self.assertTrue((run / "plots/energy.png").exists())

    def test_damaged_samples(self):
        run = self.run_of(5)
        samples = run / "samples.csv"
        samples.write_text(samples.read_text() + 'x,y\n"unclosed,1,2\n,,,,,,,,\n9,a,b')
        spans = run / "spans.jsonl"
        spans.write_text("no JSON\n" + spans.read_text() + '{"key": "cut')
        self.plot(run, "--plot", "timeline")

    def test_unwritable_output(self):
        run = self.run_of(4)
        (run / "plots").write_text("a file in the way")
        done = self.plot(run, "--plot", "energy", code=1)
        self.assertIn("plots", done.stderr)
        self.assertEqual((run / "plots").read_text(), "a file in the way")
        self.plot(run, "--plot", "energy", "--output-dir", "/proc/nowhere", code=1)
        if os.geteuid():
            read_only = self.root / "read-only"
            read_only.mkdir(mode=0o500)
            self.plot(run, "--plot", "energy", "--output-dir", read_only / "out", code=1)


class Gnuplot(PlotTest):
    def test_missing_gnuplot(self):
        run = self.run_of(3)
        for path in ("", str(self.root)):
            done = self.plot(run, code=1, env={"PATH": path})
            self.assertIn("gnuplot-nox", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse((run / "plots").exists())
            listed = json.loads(ipw(None, "list", "plots", "--json", env={"PATH": path}).stdout)
            self.assertIn("gnuplot-nox", listed["plots"][0]["missing"])
            parts = json.loads(ipw(None, "doctor", "--json", env={"PATH": path}).stdout)["parts"]
            part = next(part for part in parts if part["name"] == "gnuplot")
            self.assertIn("gnuplot-nox", part["missing"])

    def fake(self, script):
        program = self.root / "bin/gnuplot"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(0o755)
        return {"PATH": f":{program.parent}:/usr/bin:/bin"}

    def test_failing_gnuplot(self):
        run = self.run_of(3)
        for script, words in (("echo 'unknown terminal' >&2; exit 3", "unknown terminal"),
                              ("kill -9 $$", "signal 9"), ("exit 0", "drew nothing"),
                              ("exit 1", "no message")):
            done = self.plot(run, "--plot", "energy,ttft", code=1, env=self.fake(script))
            self.assertIn(words, done.stderr)
            self.assertEqual(list((run / "plots").iterdir()), [])

    def scripts(self, *sources, plot, fonts=None):
        """The gnuplot script of each format, on a machine with these fonts."""
        env = self.fake(f'cat > "{self.root}/script"; cat "{self.root}/script"')
        lister = self.root / "bin/fc-list"
        lister.write_text(f"#!/bin/sh\necho '{fonts}'\n" if fonts else "#!/bin/sh\nexit 1\n")
        lister.chmod(0o755)
        self.plot(*sources, "--plot", plot, "--format", "png,svg,pdf", "--output-dir", self.root / "out", env=env)
        return {suffix: (self.root / f"out/{plot}.{suffix}").read_text() for suffix in FORMATS}

    def test_characters_missing_in_fonts(self):
        """Replaced by their code points, since they would be drawn as boxes; not in SVG, which is rendered
        elsewhere."""
        run = self.run_of(3, model="模型 🦙 für µ…")
        for fonts, shown in ((None, "[U+6A21][U+578B] [U+1F999] für µ…"), ("20-7e a0-17f", "[U+6A21][U+578B] [U+1F999] für µ…"),
                             ("20-7e 4e00-7000 \n 1f900-1f9ff", "模型 🦙 für µ…"), ("6a21", "模[U+578B] [U+1F999] für µ…")):
            for suffix, script in self.scripts(run, plot="ttft", fonts=fonts).items():
                self.assertIn("模型 🦙 für µ…" if suffix == "svg" else shown, script, (fonts, suffix))

    def test_heat_maps_share_one_color_scale(self):
        for script in self.scripts(self.layers_file(), plot="layer_heatmap").values():
            scales = re.findall(r"set cbrange \[0:([\d.]+)\]", script)
            self.assertEqual(len(scales), 2)  # prefill and decode
            # The largest energy of both: feed-forward of the last layer, in decode.
            self.assertEqual({float(scale) for scale in scales}, {3.0 * 1.5 * 2.5})

    def test_small_energies_of_heat_map_have_unit_prefix(self):
        layers = layers_of()
        for layer in layers["layers"]:
            for part in layer["components"]:
                part["energy_j"] /= 1000
        path = self.root / "small.json"
        path.write_text(json.dumps(layers))
        rows, script = self.plotted_data(path, plot="layer_heatmap")
        self.assertIn("energy (mJ)", script)
        self.assertEqual({float(scale) for scale in re.findall(r"set cbrange \[0:([\d.]+)\]", script)}, {3.0 * 1.5 * 2.5})
        self.assertAlmostEqual(max(row[-1] for row in rows[0, 0] + rows[1, 0]), 3.0 * 1.5 * 2.5)

    def test_user_settings_of_gnuplot_are_ignored(self):
        run = self.run_of(5)
        home = self.root / "home"
        home.mkdir()
        (home / ".gnuplot").write_text("set title 'mine'\nset xrange [0:1]\n")
        self.plot(run, "--plot", "energy", "--format", "svg", "--output-dir", self.root,
                  env={"HOME": str(home), "LC_ALL": "de_DE.UTF-8"})
        picture = Picture(self.root / "energy.svg")
        self.assertNotIn("mine", picture.text)
        self.assertEqual(len(picture.series()[0]), 5)


class Layout(PlotTest):
    def test_texts_do_not_overlap(self):
        """By an approximate width of characters."""
        run = self.run_of(30)
        self.plot(run, "--format", "svg")
        for path in (run / "plots").glob("*.svg"):
            boxes = []
            for g in Picture(path).root.iter():
                text = [t for t in g if t.tag.endswith("text")]
                place = g.get("transform", "")
                said = "".join(text[0].itertext()).strip() if text else ""
                if not said or not place.startswith("translate(") or "rotate" in place:
                    continue
                x, y = map(float, place[10:].split(")")[0].split(","))
                size = float(g.get("font-size"))
                width = 0.5 * size * len(said)
                x -= {"end": width, "middle": width / 2}.get(g.get("text-anchor"), 0)
                self.assertGreaterEqual(size, 10, said)
                self.assertGreater(x, -8, (path.name, said))
                self.assertLess(x + width, 812, (path.name, said))
                for other in boxes:
                    apart = (math.fabs(y - other[1]) > 0.7 * size or x > other[0] + other[2]
                             or other[0] > x + width)
                    self.assertTrue(apart, (path.name, said, other))
                boxes.append((x, y, width, said))
            self.assertGreater(len(boxes), 6, path.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
