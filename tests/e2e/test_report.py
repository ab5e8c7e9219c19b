#!/usr/bin/env python3
# test: real time
"""The page of ipw report in a real Chromium: figures, keyboard, widths, print, hostile names, many queries."""

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from agent_runs import write_agent_run  # noqa: E402
from browser import BEYOND, EVERY_CHART, Browser, chromium  # noqa: E402
from synthetic_run import SUBJECTS, make_run  # noqa: E402
from machines import Intel  # noqa: E402
from plots import png_size  # noqa: E402
from program import ipw  # noqa: E402
from rundirs import query, summary, write_run  # noqa: E402
from sweeps import write_sweep  # noqa: E402

HOSTILE = "<img src=x onerror=\"window.struck=1\"></script><script>window.struck=2</script>\u2028&amp;{a|b}"
MB = 1e6
DESKTOP, PHONE = {"width": 1280}, {"width": 390, "height": 844, "phone": True}

# Pairs of overlapping elements.
OVERLAPS = """(() => {
  const parts = ['header', 'main > section', '.figure', '.card'].map(s => [...document.querySelectorAll(s)].map(e => e.getBoundingClientRect()));
  let found = 0;
  for (const boxes of parts) for (let i = 0; i < boxes.length; i++) for (let k = i + 1; k < boxes.length; k++)
    found += Math.min(boxes[i].right, boxes[k].right) - Math.max(boxes[i].left, boxes[k].left) > 2 &&
      Math.min(boxes[i].bottom, boxes[k].bottom) - Math.max(boxes[i].top, boxes[k].top) > 2;
  return found; })()"""
# Texts clipped by their own box.
CUT = """[...document.querySelectorAll('.figure .value, .figure .about, h1, h2, h3, .badge')]
  .filter(e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline').map(e => e.textContent)"""


# Of every histogram: [actual, expected] pixels of percentile lines, and their values.
HISTOGRAM_LINES = """[...document.querySelectorAll('#distributions .chart')].map(e => {
  const chart = echarts.getInstanceByDom(e), values = chart.getOption().series[0].markLine.data.map(m => m.xAxis);
  const lines = chart.getZr().storage.getDisplayList(true).filter(d => d.type === 'ec-line' || (d.shape && d.style && d.style.lineDash && 'x1' in d.shape))
    .filter(d => d.shape.x1 === d.shape.x2 && d.style.lineDash && d.style.lineDash.length === 2).map(d => d.shape.x1);
  return [e.ariaLabel, values.map((value, i) => [lines.sort((a, b) => a - b)[i] ?? -1, chart.convertToPixel({xAxisIndex: 0}, value)]), values]; })"""

# Tooltips of the first points of the charts.
EVERY_TOOLTIP = """(async () => { const told = [];
  for (const e of document.querySelectorAll('.chart')) {
    const chart = echarts.getInstanceByDom(e);
    for (let seriesIndex = 0; seriesIndex < chart.getOption().series.length; seriesIndex++)
      for (let dataIndex = 0; dataIndex < 3; dataIndex++) {
        chart.dispatchAction({type: 'showTip', seriesIndex, dataIndex});
        await new Promise(d => setTimeout(d, 5));
        told.push(...[...e.querySelectorAll('.tip')].map(tip => tip.textContent));
      }
  } return told; })()"""


def cells(column):
    return f"[...document.querySelectorAll('#queries tbody tr')].map(row => row.children[{column}].textContent)"


def report(*inputs, output=None):
    """Writes the page; returns its path."""
    done = ipw(None, "report", *inputs, *(["-o", output] if output else []))
    assert (done.returncode, done.stderr) == (0, ""), done
    return Path(done.stdout.strip())


def setUpModule():
    Page.browser = Browser()
    unittest.addModuleCleanup(Page.browser.close)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="ipw-report-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)

    def tearDown(self):
        """No test may cause a page error or a network request."""
        self.assertEqual(self.browser.problems(), [])
        asked = [url for url in self.browser.requests() if not url.startswith("data:")]
        self.assertEqual([url for url in asked if not url.startswith("file://") or not url.endswith(".html")], [])

    def figure(self, key):
        found = self.browser.run(f"document.querySelector('.figure[data-key=\"{key}\"]').dataset.value")
        return None if found in (None, "null") else float(found)

    def focus(self, selector):
        self.browser.run(f"document.querySelector({json.dumps(selector)}).focus()")


class Estimates(Page):
    """`ipw estimate --json -o RUN/estimate.json` shown next to measurements."""

    def page_with(self, name, *estimate, text=None):
        summary = make_run(self.folder / name, queries=40)
        path = self.folder / name / "estimate.json"
        if text is not None:
            path.write_text(text)
        else:
            done = ipw(None, "estimate", *estimate, "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.browser.open(report(self.folder / name), **DESKTOP)
        return summary, path

    def section(self):
        return self.browser.run("document.getElementById('predicted')?.textContent ?? null")

    def test_estimate_is_shown_next_to_measurement(self):
        summary, path = self.page_with("a", "--model", "gpt2", "--hardware", "h200", "--prompt-tokens", "100")
        said = json.loads(path.read_text())
        rows = dict((label, (float(said), float(found))) for label, said, found in self.browser.run(
            "[...document.querySelectorAll('#predicted tbody tr')].map(row => "
            "[row.children[0].textContent, row.children[1].dataset.value, row.children[2].dataset.value])"))
        predicted, measured = rows["Energy per output token"]
        self.assertAlmostEqual(predicted, said["each"]["energy_j"])
        self.assertAlmostEqual(measured, summary["ipw"]["joules_per_output_token"])
        self.assertIn("Power while busy", rows)
        self.assertIn("a request of 100 prompt and 128 output tokens", self.section())

    def test_invalid_estimate_is_reported(self):
        self.page_with("b", text="{")
        self.assertIn("Predicted", self.section())
        self.page_with("c", "--model", "resnet18", "--hardware", "h200")
        self.assertIn("an estimate of a request", self.section())

    def test_no_section_without_estimate(self):
        make_run(self.folder / "d", queries=10)
        self.browser.open(report(self.folder / "d"), **DESKTOP)
        self.assertIsNone(self.section())


class OneRun(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.summary = make_run(cls.folder / "run", queries=240)
        cls.page = report(cls.folder / "run")

    def setUp(self):
        self.browser.open(self.page, **DESKTOP)

    def test_page_is_in_run_directory(self):
        self.assertEqual(self.page, self.folder / "run" / "report.html")

    def test_headline_figures_equal_summary(self):
        told = self.summary["ipw"]
        for key in ("accuracy", "joules_per_query", "joules_per_output_token", "ipj", "ipw", "busy_watts", "output_tokens_per_s"):
            self.assertAlmostEqual(self.figure(key), told[key], delta=1e-6 * told[key], msg=key)
        self.assertAlmostEqual(self.figure("joules"), told["energy"]["joules"], delta=1e-3)
        text = self.browser.run("document.querySelector('.figure[data-key=joules]').textContent")
        self.assertRegex(text, r"[\d.]+ ± [\d.]+ kJ")
        self.assertIn("99.8 % coverage", text)
        # Interval and sentence state the number of queries.
        for key in ("ipj", "joules_per_output_token"):
            text = self.browser.run(f"document.querySelector('.figure[data-key={key}]').textContent")
            self.assertRegex(text, r"95 % CI \(sampling error only\): [\d.]+ \S+ to [\d.]+ \S+, n = \d+$", key)
        self.assertRegex(self.browser.run("document.querySelector('.answer').textContent"), rf"\(n = {told['completed']}\)")
        # Parts of the machine's energy have its relative error.
        text = self.browser.run("document.querySelector('.figure[data-key=joules_per_query] .value').textContent")
        value, error = map(float, re.fullmatch(r"([\d.]+) ± ([\d.]+) J", text).groups())
        self.assertAlmostEqual(error / value, told["energy"]["plus_minus"] / told["energy"]["joules"], delta=0.002)

    def test_figures_equal_analyze(self):
        done = ipw(None, "analyze", self.folder / "run", "--json")
        told = json.loads(done.stdout)[str(self.folder / "run")]
        slopes = dict(self.browser.run("[...document.querySelectorAll('[data-fit]')].map(e => [e.dataset.fit, Number(e.dataset.slope)])"))
        for key, slope in slopes.items():
            fits = {**told["regression"]["data"]["regressions"], **told["regression"]["data"]["more"]}
            self.assertEqual(slope, fits[key]["slope"], key)
        self.assertGreaterEqual(len(slopes), 3)
        rows = self.browser.run("[...document.querySelectorAll('#groups .tables > div:first-child tbody tr')]"
                                ".map(row => [row.children[0].textContent, Number(row.children[1].dataset.value), Number(row.children[3].dataset.value)])")
        groups = {row["subject"]: row for row in told["efficiency"]["data"]["by_subject"]}
        self.assertEqual(len(rows), len(SUBJECTS))
        for subject, queries, joules in rows:
            self.assertEqual((queries, joules), (groups[subject]["queries"], groups[subject]["joules_per_query"]))

    def test_conclusion_comes_first(self):
        """A sentence, the figures, then notes, collapsed."""
        told = self.summary["ipw"]
        said = self.browser.run("document.getElementById('sentence').textContent")
        self.assertIn(f"{100 * told['accuracy']:.1f} % correct, ", said)
        self.assertTrue(said.endswith("Energies measured, ±2.7 % common to all, cancels in differences."), said)
        order = self.browser.run("[...document.querySelector('main > section').children].map(e => e.id || e.className || e.tagName)")
        self.assertEqual(order, ["figures-title", "sentence", "figures", "note after", "evidence", "warnings"])
        self.assertFalse(self.browser.run("document.getElementById('warnings').open"))
        lines = self.browser.run("[...document.querySelectorAll('#warnings li')].map(e => e.textContent)")
        self.assertIn("1 of 240 queries failed.", lines)
        for line in lines:
            self.assertNotRegex(line, r"[a-z]_[a-z]")  # no key names

    def test_percentile_lines_are_at_their_values(self):
        """In pixels of the axis, without rounding."""
        self.browser.run(EVERY_CHART)
        charts = self.browser.run(HISTOGRAM_LINES)
        self.assertEqual(len(charts), 6)
        done = [r for r in self.records() if r["status"] == "completed"]
        joules = statistics.quantiles([r["joules"] for r in done], n=20, method="inclusive")
        for label, lines, axis_x in charts:
            self.assertGreaterEqual(len(lines), 1, label)
            for (drawn, wanted), value in zip(lines, axis_x):
                self.assertAlmostEqual(drawn, wanted, delta=1, msg=(label, value))
        found = {label: values for label, _, values in charts}
        for value, wanted in zip(found["Energy per query, histogram"], (joules[9], joules[18])):
            self.assertAlmostEqual(value, wanted, delta=1e-9 * wanted)

    def test_every_chart_is_drawn(self):
        drawn = self.browser.run(EVERY_CHART)
        self.assertGreaterEqual(len(drawn), 10)
        self.assertNotIn(0, drawn)

    def test_sorting_by_keyboard(self):
        self.focus("#queries thead th:nth-child(4) button")
        for order, name in ((-1, "descending"), (1, "ascending")):
            self.browser.key("Enter")
            shown = self.browser.run(cells(3))
            values = [self.joules(text) for text in shown]
            self.assertEqual(values, sorted(values, reverse=order < 0))
            head = "document.querySelector('#queries thead th:nth-child(4)').getAttribute('aria-sort')"
            self.assertEqual(self.browser.run(head), name)
            # The focus is kept.
            self.assertEqual(self.browser.run("document.activeElement.textContent"), "Energy")
        least = min(r["joules"] for r in self.records())
        self.assertAlmostEqual(values[0], least, delta=1e-3 * least)

    @staticmethod
    def joules(text):
        number, unit = text.split()
        return float(number) * {"J": 1, "mJ": 1e-3, "kJ": 1e3}[unit]

    def records(self):
        lines = map(json.loads, (self.folder / "run" / "records.jsonl").read_text().splitlines()[1:])
        return [{"joules": line["ipw"]["energy"]["joules"], "subject": line["subject"], "status": line["ipw"]["status"],
                 "tokens": next(iter(line["model_metrics"].values()))["token_metrics"]["output"], "key": line["key"]} for line in lines]

    def test_questions_and_answers_are_shown(self):
        """Opened and closed by keyboard; texts are escaped, long ones truncated; open rows stay open when sorting."""
        lines = [json.loads(line) for line in (self.folder / "run" / "records.jsonl").read_text().splitlines()[1:]]
        self.assertEqual(self.browser.run("document.querySelectorAll('#queries .excerpt').length"), 0)
        self.focus("#queries tbody tr:nth-child(2) .opener")
        self.browser.key("Enter")
        self.assertEqual(self.browser.run("document.activeElement.getAttribute('aria-expanded')"), "true")
        told = self.browser.run("[...document.querySelectorAll('#queries .excerpt dd')].map(e => e.textContent)")
        answer = next(iter(lines[1]["model_answers"].values()))
        self.assertEqual(told, [lines[1]["problem"], lines[1]["answer"], answer])
        self.assertIn("<i>&amp;</i>", told[0])
        for _ in range(2):  # and back
            self.focus("#queries thead th:nth-child(1) button")
            self.browser.key("Enter")
        self.assertEqual(self.browser.run("document.querySelectorAll('#queries .excerpt').length"),
                         int(lines[1]["key"] in self.browser.run("[...document.querySelectorAll('.opener')].map(e => e.textContent)")))
        self.browser.open(self.page, **DESKTOP)
        self.focus("#queries tbody tr:nth-child(1) .opener")
        self.browser.key("Enter")
        cut = self.browser.run("document.querySelector('#queries .excerpt dd').textContent")
        self.assertTrue(cut.endswith(" …"), cut[-20:])
        self.assertTrue(lines[0]["problem"].startswith(cut[:-2]))
        self.assertLessEqual(len(cut.encode()), 704)
        self.browser.key("Enter")
        self.assertEqual(self.browser.run("document.querySelectorAll('#queries .excerpt').length"), 0)
        self.browser.open(self.page, **PHONE)
        self.browser.run("document.querySelector('.opener').click()")
        self.assertLessEqual(self.browser.run("document.querySelector('.excerpt dl').getBoundingClientRect().right - innerWidth"), 0)

    def test_filtering_and_paging_by_keyboard(self):
        self.focus("#query-search")
        self.browser.write("computer")
        wanted = sum(r["subject"] == "computer science" for r in self.records())
        self.assertEqual(set(self.browser.run(cells(1))), {"computer science"})
        self.assertIn(f"{wanted} queries", self.browser.run("document.getElementById('query-status').textContent"))
        self.browser.run("document.querySelector('#query-search').value = ''")
        self.browser.run("document.querySelector('#query-search').dispatchEvent(new Event('input'))")
        first = self.browser.run(cells(0))
        self.focus(".pager button:nth-child(2)")
        self.browser.key("Enter")
        self.assertIn("page 2 of 10", self.browser.run("document.getElementById('query-status').textContent"))
        self.assertFalse(set(first) & set(self.browser.run(cells(0))))

    def test_counts_of_a_query_are_exact(self):
        self.focus("#query-search")
        record = self.records()[7]
        self.browser.write(record["key"])
        self.assertEqual(self.browser.run(cells(8)), [f"{record['tokens']:,}"])
        shown = self.joules(self.browser.run(cells(3))[0])
        self.assertAlmostEqual(shown, record["joules"], delta=1e-3 * record["joules"])

    def test_group_table_sorts_and_filters(self):
        self.focus("#groups thead th:nth-child(1) button")
        self.browser.key("Enter")
        names = "[...document.querySelectorAll('#groups .tables > div:first-child tbody th')].map(e => e.textContent)"
        self.assertEqual(self.browser.run(names), sorted(SUBJECTS))
        self.focus("#groups input")
        self.browser.write("log")
        self.assertEqual(self.browser.run(names), ["biology", "logic", "psychology"])

    def test_tables_by_length_filter(self):
        for place in (2, 3):
            table = f"#groups .tables > div:nth-child({place})"
            names = f"[...document.querySelectorAll('{table} tbody th')].map(e => e.textContent)"
            every = self.browser.run(names)
            self.focus(f"{table} input")
            self.browser.write("128")
            self.assertEqual(self.browser.run(names), [name for name in every if "128" in name])
            self.assertNotEqual(self.browser.run(names), every)

    def test_timeline_by_keyboard_and_pointer(self):
        self.browser.run("document.querySelector('#timeline').scrollIntoView({behavior: 'instant'})")
        self.browser.settle()
        self.focus("#timeline-chart")
        for _ in range(5):
            self.browser.key("+")
        chart = "document.querySelector('#timeline-chart')"
        begin, end = (float(self.browser.run(f"{chart}.dataset.{name}")) for name in ("from", "to"))
        whole = self.summary["ipw"]["seconds"] + 3
        self.assertAlmostEqual(end - begin, whole / 32, delta=0.05 * whole / 32 + 0.2)
        self.browser.key("ArrowRight")
        self.assertGreater(float(self.browser.run(f"{chart}.dataset.from")), begin)
        status = "document.querySelector('#timeline [role=status]').textContent"
        self.assertRegex(self.browser.run(status), r"^\d+ requests? in view")
        # Finds a request in the timeline; its tooltip equals its record.
        box = self.browser.run(f"(() => {{ const b = {chart}.getBoundingClientRect(); return [b.left, b.top, b.width]; }})()")
        found = None
        for step in range(1, 12):
            for _ in range(2):
                self.browser.point(box[0] + 58 + (box[2] - 72) * step / 12, box[1] + 318 + 5 + step % 3)
            found = re.search(r"q\d{6}", self.browser.run(f"{chart}.textContent"))
            if found:
                break
        self.assertTrue(found, "no request under the pointer")
        record = next(r for r in self.records() if r["key"] == found[0])
        self.assertIn(record["subject"], self.browser.run(f"{chart}.textContent"))

    def test_layout_at_all_widths(self):
        for options in (DESKTOP, {"width": 1024}, {"width": 768}, PHONE, {"width": 320, "phone": True}, {"dark": True}):
            with self.subTest(options):
                self.browser.open(self.page, **options)
                self.browser.run(EVERY_CHART)
                self.assertEqual(self.browser.run("document.documentElement.scrollWidth - innerWidth"), 0)
                self.assertEqual(self.browser.run("innerWidth"), options.get("width", 1280))
                self.assertEqual(self.browser.run(BEYOND), [])
                self.assertEqual(self.browser.run(OVERLAPS), 0)
                self.assertEqual(self.browser.run(CUT), [])

    def brightness(self):
        return self.browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)")

    def test_light_and_dark_theme(self):
        self.assertGreater(self.brightness(), 600)
        self.browser.media(dark=True)
        self.browser.settle()
        self.assertLess(self.brightness(), 200)
        self.focus("#theme")
        self.browser.key("Enter")
        self.assertGreater(self.brightness(), 600)
        self.browser.media(dark=False)
        self.assertGreater(self.brightness(), 600)  # the choice is kept
        self.browser.key("Enter")
        self.assertLess(self.brightness(), 200)

    def test_print_layout(self):
        self.browser.open(self.page, dark=True)
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertIn(len(re.findall(rb"/Type\s*/Page\b", pdf)), range(3, 12))
        # Print media: no controls, light theme, nothing wider than the paper.
        self.browser.open(self.page, width=700, media="print", dark=True)
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        self.browser.settle()
        self.assertEqual(self.browser.run("[...document.querySelectorAll('nav, .controls, .pager, #theme')].filter(e => e.getClientRects().length).length"), 0)
        theme = "document.documentElement.dataset.theme"
        self.assertEqual(self.browser.run(theme), "light")
        self.assertEqual(self.browser.run("[...document.querySelectorAll('.chart')].filter(e => !e.querySelector('canvas')).length"), 0)
        self.assertEqual(self.browser.run(BEYOND), [])
        wide = "[...document.querySelectorAll('table')].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.parentElement.ariaLabel)"
        self.assertEqual(self.browser.run(wide), [])
        self.browser.run("dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.run(theme), "dark")

    def test_links_to_raw_files(self):
        hrefs = self.browser.run("[...document.querySelectorAll('.files a')].map(a => a.href)")
        names = {"records.jsonl", "samples.csv", "spans.jsonl", "summary.json"}
        self.assertLessEqual(names, {href.rpartition("/")[2] for href in hrefs})
        away = self.folder / "pages" / "deep"
        away.mkdir(parents=True)
        self.browser.open(report(self.folder / "run", output=away / "r.html"), **DESKTOP)
        for href in self.browser.run("[...document.querySelectorAll('.files a')].map(a => a.href)"):
            self.assertTrue(Path(href.removeprefix("file://")).is_file(), href)

    def test_command_to_reproduce(self):
        command = self.browser.run("document.getElementById('command').textContent")
        for words in ("ipw profile --client openai", "--model llama-3.1-8b-instruct-q8_0", "--concurrency 8", "--max-queries 240",
                      "--dataset-param shuffle=7", "--param max_tokens=512", "--system 'Answer with one letter.'", "--idle 3"):
            self.assertIn(words, command)
        self.assertNotIn("--retries", command)  # the default


class EqualValues(Page):
    def test_histogram_bars_are_centered_on_values(self):
        """If all values are equal, and for integers."""
        write_run(self.folder / "equal", [query(i, joules=10.0, latency=0.5, tokens=20) for i in range(12)])
        self.browser.open(report(self.folder / "equal"), **DESKTOP)
        data = json.loads(self.browser.run("document.getElementById('data').textContent"))
        # Without busy time it is another power, with another name.
        power = self.browser.run("document.querySelector('.figure[data-key=busy_watts]').textContent")
        self.assertRegex(power, r"^Query power20\.00 ± 0\.60 W")
        found = {one["key"]: one for one in data["runs"][0]["distributions"]}
        self.assertEqual(found["joules"]["counts"], [12])
        for one in found.values():
            self.assertAlmostEqual(one["low"] + one["step"] / 2, one["spread"]["p50"], delta=1e-9, msg=one["key"])
        self.assertEqual((found["output_tokens"]["low"], found["output_tokens"]["step"]), (19.5, 1))


class Sweeps(Page):
    """The page of a sweep: conclusion, settings, one chart."""
    ROWS = "[...document.querySelectorAll('#sweep .scroll')].map(e => [...e.querySelectorAll('tbody tr')].map(r => [...r.children].map(c => c.textContent)))"
    # Of the first series: positions of the marks, and of their values on the axes.
    POINTS = """(() => { const chart = echarts.getInstanceByDom(document.querySelector('#sweep .chart')), option = chart.getOption();
      return option.series.filter(s => s.type !== 'custom').map(s => s.data.map(d => d.value || d).map(v => v.slice(0, 2))); })()"""

    def sweep(self, name, knobs, true, **more):
        attempts = [(values, {"joules": e * f, "seconds": t, **more}) for f in (0.99, 1.01) for values, (e, t) in true.items()]
        return report(write_sweep(self.folder / name, knobs, [*attempts, (next(iter(true)), {"joules": 1, "seconds": 1, "exit_code": 1})]))

    def evidence(self):
        """Method, source and coverage of the settings shown."""
        head = self.browser.run("[...document.querySelector('#sweep .scroll').querySelectorAll('th')].map(c => c.textContent.trim())")
        places = [next(i for i, text in enumerate(head) if text.startswith(label)) for label in ("Method", "Source", "Coverage")]
        return [[row[place] for place in places] for row in self.browser.run(self.ROWS)[0]]

    def test_conclusion_comes_first(self):
        true = {(n,): (100 / n, 2.0 * n) for n in range(1, 13)}
        page = self.sweep("knob", ("n",), true, source="nvml energy", coverage=0.97)
        for width in (DESKTOP, PHONE):
            self.browser.open(page, **width)
            self.assertEqual(self.browser.run("document.querySelector('main > section').id"), "sweep")
            self.assertRegex(self.browser.run("document.querySelector('#sweep .answer').textContent"),
                             r"^n=12 uses 91\.7 ± [\d.]+ % less energy per run than n=1, in 1100\.0 % more time\.$")
            order = self.browser.run("[...document.querySelector('#sweep').children].map(e => e.className || e.tagName)")
            self.assertLess(order.index("answer"), [i for i, kind in enumerate(order) if kind in ("scroll", "DIV", "printed")][0])
            self.assertEqual(set(self.browser.run(EVERY_CHART)), {1})
            self.assertEqual(self.browser.run(BEYOND), [])
            self.assertEqual(self.browser.run(OVERLAPS), 0)
        shown, all_settings = self.browser.run(self.ROWS)
        self.assertEqual((len(shown), len(all_settings)), (8, 12))
        self.assertEqual(shown[0][:3], ["n=12", "8.333 J", "91.7 %"])
        self.assertEqual(self.evidence(), [["counter", "nvml energy", "97.0 %"]] * 8)
        energy, time = self.browser.run(self.POINTS)
        for (n, joules), (_, seconds) in zip(energy, time, strict=True):
            self.assertAlmostEqual(joules, 100 / n)
            self.assertAlmostEqual(seconds, 2 * n)
        self.assertIn("1 failed", self.browser.run("document.querySelector('#sweep').textContent"))

    def test_settings_with_text_values(self):
        true = {("q4", HOSTILE): (10, 3), ("q8", "b"): (20, 2), ("f16", "b"): (30, 4)}
        self.browser.open(self.sweep("names", ("precision", "b"), true, method="estimated", coverage=1), **DESKTOP)
        self.browser.run(EVERY_CHART)
        front, points = self.browser.run(self.POINTS)[:2]
        self.assertEqual(front, [[2, 20], [3, 10]])  # f16 is slower than q8 and uses more energy
        self.assertEqual(sorted(points), [[2, 20], [3, 10], [4, 30]])
        self.assertIn("estimated, not measured", self.browser.run("document.querySelector('#sweep .answer').textContent"))
        self.assertEqual({tuple(row[:2]) for row in self.evidence()}, {("estimated", "unknown")})
        self.assertIsNone(self.browser.run("window.struck ?? null"))

    def test_metrics_of_all_answers_have_a_column(self):
        true = {(n,): (100 / n, 2.0 * n) for n in range(1, 4)}
        self.browser.open(self.sweep("metrics", ("n",), true, quality={"wer": (0.125, "lower"), "cer": (0.05, "lower")}), **DESKTOP)
        head = self.browser.run("[...document.querySelector('#sweep .scroll').querySelectorAll('th')].map(c => c.textContent.trim())")
        place = next(i for i, text in enumerate(head) if text.startswith("wer"))
        self.assertTrue(head[place + 1].startswith("cer"), head)
        self.assertEqual({row[place] for row in self.browser.run(self.ROWS)[0]}, {"0.1250"})

    def test_sweep_without_measurements(self):
        page = report(write_sweep(self.folder / "none", ("n",), [((1,), {"joules": 1, "seconds": 1, "exit_code": 1})]))
        self.browser.open(page, **PHONE)
        self.assertIn("1 failed", self.browser.run("document.querySelector('#sweep .alert').textContent"))


class Agents(Page):
    """The page of an agent run: its parts, and the spans of one query by time and energy."""
    # Drawn spans: label, row, start, end.
    SPANS = """(() => { const chart = echarts.getInstanceByDom(document.getElementById('icicle')), series = chart.getOption().series[0];
      return series.data.map(([from, to, row]) => [row, +from.toFixed(6), +to.toFixed(6)]); })()"""
    PICK = "(() => { const e = document.getElementById('%s'); e.value = '%s'; e.dispatchEvent(new Event('change')); })()"

    def test_spans_by_time_and_by_energy(self):
        page = report(write_agent_run(self.folder / "agent"))
        for width in (DESKTOP, PHONE):
            self.browser.open(page, **width)
            self.assertIn("210 ± 11 J per query, 1 turn, 2 tool calls; inferences 57.1 %", self.browser.run("document.getElementById('agent').textContent"))
            self.assertEqual(set(self.browser.run(EVERY_CHART)), {1})
            self.assertEqual(self.browser.run(BEYOND), [])
            rows = self.browser.run("[...document.querySelectorAll('#agent tr')].map(row => [...row.cells].map(cell => cell.textContent).join(' '))")
            for kind, energy in (("gaps", "90.0 ± 9.0 J"), ("calculator", "78.0 ± 3.9 J"), ("1 3 ", "540 ± 27 J")):
                self.assertTrue(any(row.startswith(kind) and energy in row for row in rows), (kind, rows))
        # The second of two concurrent tools is one row below.
        self.assertEqual(self.browser.run(self.SPANS), [[0, 0, 0.7], [1, 0, 0.6], [2, 0, 0.4], [3, 0, 0.1], [3, 0.1, 0.4], [2, 0.4, 0.6], [3, 0.45, 0.6]])
        self.browser.run(self.PICK % ("icicle-by", "energy"))
        self.assertEqual(self.browser.run(self.SPANS), [[0, 0, 210], [1, 0, 180], [2, 0, 120], [3, 0, 30], [3, 30, 120], [2, 120, 146], [2, 146, 180]])
        self.browser.run(self.PICK % ("icicle-query", "1"))
        self.assertRegex(self.browser.run("document.getElementById('icicle-note').textContent"), r"^q00000\d: 210 ± 11 J in 700\.0 ms, 1 turn, 2 tool calls\.$")

    def test_other_runs_have_no_agent_section(self):
        make_run(self.folder / "plain", 10, 1)
        self.browser.open(report(self.folder / "plain"), **DESKTOP)
        self.assertIsNone(self.browser.run("document.getElementById('agent')"))


class Screenshots(Page):
    """The whole page of one and several runs on each kind of screen; $IPW_SCREENSHOTS is a folder for the images."""

    def test_pages_are_as_wide_as_the_screen(self):
        kept = os.environ.get("IPW_SCREENSHOTS")
        runs = [self.folder / name for name in ("one", "two", "three")]
        for i, run in enumerate(runs):
            make_run(run, 200 + 40 * i, model=f"model-{i + 1}b-instruct", seed=20 + i)
        pages = {"run": report(runs[0]), "runs": report(*runs, output=self.folder / "runs.html")}
        for name, page in pages.items():
            for kind, options in (("desktop", DESKTOP), ("phone", PHONE), ("dark", {"dark": True})):
                self.browser.open(page, **options)
                size = self.browser.size()
                self.assertEqual(size["width"], options.get("width", 1280))
                self.assertGreater(size["height"], 3000)
                # A screenshot takes seconds: tests take one, all are taken for manual inspection.
                if not kept and (name, kind) != ("run", "phone"):
                    continue
                self.browser.run(EVERY_CHART)
                self.browser.run("scrollTo(0, 0)")
                file = Path(kept or self.folder, f"report-{name}-{kind}.png")
                self.browser.screenshot(file, whole=True)
                size = self.browser.size()
                self.assertEqual(png_size(file.read_bytes()), (size["width"], size["height"]))


class Measured(Page):
    """A run measured by ipw on a machine of known power."""

    def test_power_and_figures_of_measured_run(self):
        with Intel(40) as machine:
            done = ipw(machine, "profile", "--client", "null", "--model", "tiny", "--max-queries", "120", "--request-rate", "60", "--idle", "0.5",
                       "--output-dir", self.folder / "runs", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        directory = Path(json.loads(done.stdout)["output_dir"])
        told = json.loads((directory / "summary.json").read_text())["ipw"]
        self.browser.open(report(directory), **DESKTOP)
        for key in ("joules_per_query", "joules_per_output_token", "busy_watts", "output_tokens_per_s"):
            self.assertAlmostEqual(self.figure(key), told[key], delta=1e-6 * told[key], msg=key)
        data = json.loads(self.browser.run("document.getElementById('data').textContent"))
        [channel] = data["runs"][0]["timelines"][0]["power"]
        self.assertEqual((channel["device"], channel["source"]), ("cpu0", "rapl:0 package"))
        middle = channel["mean"]["low"] + channel["mean"].get("step", 0) * 32767 if "low" in channel["mean"] else channel["mean"]["same"]
        self.assertLess(middle, 400)  # in watts
        self.assertGreater(middle, 4)

    def test_missing_samples_are_reported(self):
        make_run(self.folder / "bare", queries=30)
        for name in ("samples.csv", "summary.json"):
            os.remove(self.folder / "bare" / name)
        self.browser.open(report(self.folder / "bare"), **DESKTOP)
        self.assertIn("No summary.json", self.browser.run("document.getElementById('warnings').textContent"))
        self.assertIn("samples.csv", self.browser.run("document.querySelector('#timeline .alert').textContent"))
        self.assertIsNone(self.figure("output_tokens_per_s"))
        self.assertIn("unknown", self.browser.run("document.querySelector('.figure[data-key=output_tokens_per_s]').textContent"))

    def test_energy_of_unknown_method(self):
        """As in a run of the Python IPW: joules without a method."""
        path = self.folder / "untold"
        make_run(path, queries=30)
        records = (path / "records.jsonl").read_text()
        (path / "records.jsonl").write_text(records.replace('"method":"counter","source":"nvml:0 energy + rapl:0 package",', ""))
        summary = json.loads((path / "summary.json").read_text())
        (path / "summary.json").write_text(json.dumps({key: value for key, value in summary.items() if key != "ipw"}))
        for name in ("samples.csv", "spans.jsonl"):
            os.remove(path / name)
        self.browser.open(report(path), **DESKTOP)
        badge = self.browser.run("document.querySelector('.evidence .badge').textContent")
        self.assertEqual(badge, "method of measurement unknown")
        self.assertGreater(self.figure("joules_per_query"), 0)
        self.assertIsNone(self.figure("ipw"))
        self.assertEqual(self.browser.run("document.querySelectorAll('#timeline').length"), 0)


# Bounding boxes of the texts of a chart.
LABELS = """(chart => chart.getZr().storage.getDisplayList(true).filter(e => e.type === 'tspan' && !e.ignore && !e.invisible).map(e => {
  const r = e.getBoundingRect().clone(); if (e.transform) r.applyTransform(e.transform); return [e.style.text, r.x, r.y, r.width, r.height]; }))
  (echarts.getInstanceByDom(document.querySelector('#across .chart')))"""


class SeveralRuns(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, queries, model in (("a", 80, "first-1b"), ("b", 60, HOSTILE), ("c", 50, "third-7b-q4")):
            make_run(cls.folder / name, queries, model=model, seed=len(name) + queries, subjects=["law", HOSTILE, "art"])

    def layers(self):
        part = {"time_s": 0.01, "energy_j": 0.5, "plus_minus": 0.02, "share": 0.5, "energy_per_token_j": 0.01, "method": "nnls"}
        model = {"model": "/m/tiny.gguf", "description": HOSTILE, "energy": {"joules": 1.25, "plus_minus": 0.05},
                 "components": [{**part, "name": name, "phase": phase} for name in ("attention", HOSTILE) for phase in ("prefill", "decode")],
                 "layers": [{**part, "index": i, "components": [{**part, "name": name, "phase": "decode", "energy_j": 0.1 + 0.1 * (i == 2 and name == HOSTILE)}
                                                                 for name in ("attention", HOSTILE)]} for i in range(4)], "windows": [{"raw": "w" * 1000}]}
        path = self.folder / "layers.json"
        path.write_text(json.dumps(model))
        return path

    def test_runs_with_layers_and_hostile_names(self):
        page = report(*(self.folder / name for name in "abc"), self.layers(), output=self.folder / "all.html")
        self.assertNotIn("wwwwwwwwww", page.read_text())
        self.browser.open(page, **DESKTOP)
        rows = self.browser.run("[...document.querySelectorAll('#across tbody tr')].map(row => row.children[0].textContent)")
        self.assertEqual(rows, ["1 first-1b", "2 " + HOSTILE, "3 third-7b-q4"])
        data = json.loads(self.browser.run("document.getElementById('data').textContent"))
        points = data["across"]["data"]["runs"]
        for i, point in enumerate(points):
            beaten = any(o["accuracy"] >= point["accuracy"] and o["joules_per_query"] <= point["joules_per_query"] and
                         (o["accuracy"], o["joules_per_query"]) != (point["accuracy"], point["joules_per_query"]) for o in points)
            self.assertEqual(data["settings"][i]["pareto_optimal"], not beaten)
        # Every place that shows a name: run selection, tables, tooltips, charts.
        self.browser.run("document.querySelector('#across tbody tr:nth-child(2) button').click()")
        self.assertEqual(self.browser.run("document.getElementById('run').selectedOptions[0].textContent"), HOSTILE)
        self.assertNotIn(0, self.browser.run(EVERY_CHART))
        told = self.browser.run(EVERY_TOOLTIP)
        self.assertGreaterEqual(sum(HOSTILE in text for text in told), 4)  # Pareto frontier, fits, components of layers
        self.assertIn(HOSTILE, self.browser.run("document.querySelector('#groups').textContent"))
        self.assertIn(HOSTILE, self.browser.run("document.querySelector('#layers').textContent"))
        cells = self.browser.run("echarts.getInstanceByDom(document.querySelector('#layers [aria-label^=\"Energy by layer and comp\"]')).getOption().series[0].data")
        # per layer: attention, the rest
        self.assertEqual([value for _, _, value in cells], [0.1] * 5 + [0.2] + [0.1] * 2)
        self.assertIn("Most in layer 2", self.browser.run("document.querySelector('#layers').textContent"))
        self.assertIsNone(self.browser.run("window.struck || null"))
        self.assertEqual(self.browser.run("document.querySelectorAll('img').length"), 0)

    def test_runs_without_accuracy_show_a_metric_of_all_answers(self):
        """On the axis of the chart, in the table and the tooltips; lower is better."""
        runs = []
        for name, joules, fid in ("small", 1, 30.0), ("middle", 2, 12.0), ("bad", 3, 20.0):
            queries = [query(i, joules=joules * (1 + i % 3 / 100), correct=None) for i in range(20)]
            whole = summary(queries, hardware=name)
            whole["ipw"]["quality"] = [{"name": "fid", "value": fid, "plus_minus": 1.5, "count": 20, "better": "lower"}]
            runs.append(write_run(self.folder / "metric" / name, queries, whole=whole))
        self.browser.open(report(*runs, output=self.folder / "metric.html"), **DESKTOP)
        rows = self.browser.run("[...document.querySelectorAll('#across tbody tr')].map(row => [...row.children].map(c => c.textContent))")
        self.assertEqual([row[1] for row in rows], ["30.0 (27.1–32.9)", "12.0 (9.06–14.9)", "20.0 (17.1–22.9)"])
        self.assertEqual([row[-1] for row in rows], ["yes", "yes", "–"])
        self.assertIn("fid against energy per query", self.browser.run("document.querySelector('#across h3').textContent"))
        self.assertNotIn(0, self.browser.run(EVERY_CHART))
        told = self.browser.run(EVERY_TOOLTIP)
        self.assertTrue(any("fid12" in text.replace(" ", "") for text in told), told[:3])
        self.assertEqual(self.figure("fid"), 30)

    def test_comparison_equals_ipw_compare(self):
        runs = [self.folder / name for name in "abc"]
        wanted = json.loads(ipw(None, "compare", *runs, "--json").stdout)
        page = self.folder / "compared.html"
        done = ipw(None, "compare", *runs, "--format", "html", "-o", page)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, str(page)), done.stderr)
        self.browser.open(page, **DESKTOP)
        data = json.loads(self.browser.run("document.getElementById('data').textContent"))
        self.assertEqual(data["comparison"]["comparisons"], wanted["comparisons"])
        # A matrix with one row per run, the baseline first; cells have difference and verdict.
        rows = self.browser.run("[...document.querySelectorAll('.matrix tbody tr')].map(row => [...row.children].map(e => [e.dataset.metric ?? null, e.textContent]))")
        self.assertEqual([row[0][1] for row in rows], ["first-1b", HOSTILE, "third-7b-q4"])
        for row, comparison in zip(rows[1:], wanted["comparisons"]):
            self.assertIn("energy_per_query", [name for name, _ in row])
            for name, told in row[1:]:
                metric = comparison["metrics"][name]
                # Differences of shares are in percentage points.
                value = f"{100 * metric['difference']:+.1f} points" if name == "accuracy" else f"{100 * metric['relative']:+.1f} %"
                self.assertEqual(told.replace("−", "-"), value + metric["verdict"])
        every = self.browser.run("[...document.querySelectorAll('#comparison details tbody tr')].length")
        self.assertEqual(every, sum(m["difference"] is not None for one in wanted["comparisons"] for m in one["metrics"].values()))
        # A side may have several runs.
        ipw(None, "compare", runs[0], "--", *runs[1:], "--format", "html", "-o", page)
        self.browser.open(page, **DESKTOP)
        rows = self.browser.run("[...document.querySelectorAll('.matrix tbody tr')].map(row => row.children[0].textContent)")
        self.assertEqual(rows, ["first-1b", HOSTILE + " (2 runs)"])
        done = ipw(None, "compare", *runs, "--format", "html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("-o", done.stderr)

    def several(self, **options):
        page = self.folder / "three.html"
        if not page.exists():
            report(*(self.folder / name for name in "abc"), output=page)
        self.browser.open(page, **(options or DESKTOP))
        return json.loads(self.browser.run("document.getElementById('data').textContent"))

    def test_conclusion_comes_first(self):
        """One sentence, one table, the chart, and warnings once for all runs, collapsed."""
        data = self.several(width=1400)
        order = self.browser.run("[...document.querySelector('#across').children].map(e => e.id || e.className || e.tagName)")
        self.assertEqual([order[1], order[4].strip(), order[5].strip(), order[-1]], ["sentence", "frontier-note", "chart", "warnings"], order)
        said = self.browser.run("document.querySelector('.answer').textContent")
        points = data["across"]["data"]["runs"]
        cheapest = min(range(3), key=lambda i: points[i]["joules_per_query"])
        self.assertIn(data["names"][cheapest], said)
        self.assertTrue(said.endswith("Energies measured, ±2.7 % common to all, cancels in differences."), said)
        # As `ipw compare` of the same runs has it.
        self.assertIn(f"{data['names'][cheapest]}: cheapest, ", said)
        verdicts = [json.loads(ipw(None, "compare", self.folder / "abc"[cheapest], self.folder / name, "--json").stdout)
                    ["comparisons"][0]["metrics"]["energy_per_query"] for name in "abc" if name != "abc"[cheapest]]
        self.assertEqual({row["verdict"] for row in verdicts} <= {"no evidence", "not decided"}, " not distinguishable from " in said)
        self.assertNotIn("within its CI", said)
        self.assertEqual(self.browser.run("document.querySelectorAll('#obstacles').length"), 0)
        lines = self.browser.run("[...document.querySelectorAll('#warnings li')].map(e => e.textContent)")
        failed = [line for line in lines if "queries failed" in line]
        self.assertEqual(len(failed), 1, lines)
        self.assertIn("; also ", failed[0])
        # Every table fits, and no badge precedes the figures.
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#across table, .matrix')].filter(e => e.getClientRects().length && e.offsetWidth > e.parentElement.clientWidth + 1).map(e => e.parentElement.ariaLabel)"), [])
        self.assertEqual(self.browser.run("document.querySelectorAll('#across .badge').length"), 0)
        # Without a scrollbar, which a single pixel would cause.
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#across .scroll')].filter(e => e.getClientRects().length && e.scrollWidth > e.clientWidth).map(e => [e.ariaLabel, e.scrollWidth, e.clientWidth])"), [])

    def test_conditions_that_break_comparison_come_first(self):
        for name in ("busy", "calm"):
            make_run(self.folder / name, 40, model=name, seed=3)

        def used(name, cpus):
            path = self.folder / name / "summary.json"
            summary = json.loads(path.read_text())
            summary["ipw"]["conditions"] = {"findings": [{"code": "background_cpu", "severity": "breaks", "text": f"other programs used {cpus} of 2 CPUs"}]}
            path.write_text(json.dumps(summary))

        used("busy", 1.9)
        self.browser.open(report(self.folder / "busy", self.folder / "calm", output=self.folder / "broken.html"), **PHONE)
        said = self.browser.run("document.getElementById('sentence').textContent")
        self.assertTrue(said.startswith("Not comparable. busy: other programs used 1.9 of 2 CPUs."), said)
        # Several runs in one sentence.
        used("calm", 1.4)
        self.browser.open(report(self.folder / "busy", self.folder / "calm", output=self.folder / "broken.html"), **PHONE)
        said = self.browser.run("document.getElementById('sentence').textContent")
        self.assertTrue(said.startswith("Not comparable. all runs: other programs used 1.4 to 1.9 of 2 CPUs."), said)

    def test_omitted_runs_are_reported_at_the_top(self):
        (self.folder / "hollow").mkdir()
        page = self.folder / "others.html"
        done = ipw(None, "report", self.folder / "a", self.folder / "hollow", self.folder / "c", "-o", page)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.browser.open(page, **PHONE)
        said = self.browser.run("document.getElementById('main').firstChild.textContent")
        self.assertRegex(said, f"^Skipped. {self.folder}/hollow: not a run directory")
        self.assertEqual(self.browser.run("JSON.parse(document.getElementById('data').textContent).runs.length"), 2)

    def test_runs_are_named_by_their_difference(self):
        for concurrency in (1, 4):
            make_run(self.folder / f"at{concurrency}", 30, concurrency=concurrency, model="same-1b")
        self.browser.open(report(*(self.folder / f"at{n}" for n in (1, 4)), output=self.folder / "at.html"), **DESKTOP)
        self.assertEqual(self.browser.run("document.querySelector('h1').textContent"), "2 runs of same-1b")
        self.assertEqual(self.browser.run("[...document.querySelectorAll('#across .chooser')].map(e => e.textContent)"), ["concurrency 1", "concurrency 4"])

    def repeats(self, name, count):
        """Repeats of one setting like those of --repeat-runs; returns paths and means of energy and accuracy."""
        means = []
        for i in range(count):
            path = self.folder / f"{name}_r{i}"
            told = make_run(path, 60, model=name, seed=30 + i)
            told["ipw"]["repeat_group"] = name
            (path / "summary.json").write_text(json.dumps(told))
            means.append((told["ipw"]["joules_per_query"], told["ipw"]["accuracy"]))
        return [self.folder / f"{name}_r{i}" for i in range(count)], means

    def test_repeats_of_a_setting_are_one_row(self):
        paths, means = self.repeats("again", 3)
        joules = [mean[0] for mean in means]
        half = 4.302653 * statistics.stdev(joules) / math.sqrt(3)  # Student's t with two degrees of freedom
        rows = "[...document.querySelectorAll('#across tbody tr')].map(row => [...row.children].map(e => e.textContent))"
        for others, names in (([self.folder / "c"], ["1 again (3 runs)", "2 third-7b-q4"]), ([], ["1 again (3 runs)"])):
            with self.subTest(names):
                self.browser.open(report(*paths, *others, output=self.folder / "again.html"), **DESKTOP)
                table = self.browser.run(rows)
                self.assertEqual([row[0] for row in table], names)
                value, error = map(float, re.match(r"([\d.]+) ± ([\d.]+) J", table[0][2]).groups())
                self.assertAlmostEqual(value, statistics.fmean(joules), delta=0.06 * error)
                self.assertAlmostEqual(error, half, delta=0.06 * half)
                accuracy = statistics.fmean(mean[1] for mean in means)
                self.assertTrue(table[0][1].startswith(f"{100 * accuracy:.1f} % ("), table)
                said = self.browser.run("document.querySelector('.answer').textContent")
                self.assertTrue(others or said.startswith("again (3 runs): "), said)
                # Each run can still be selected.
                self.assertEqual(self.browser.run("document.querySelectorAll('#one select option').length"), 3 + len(others))

    def test_compared_figures_have_uncertainty(self):
        """Without the sensor error, which is common to the runs."""
        data = self.several()
        heads = self.browser.run("[...document.querySelectorAll('#across thead th')].map(e => e.textContent)")
        rows = self.browser.run("[...document.querySelectorAll('#across tbody tr')].map(row => [...row.children].map(e => e.textContent))")
        for run, setting, row in zip(data["across"]["data"]["runs"], data["settings"], rows):
            ends = setting["intervals"]
            value, error = map(float, re.fullmatch(r"([\d.]+) ± ([\d.]+) J", row[heads.index("Per query")]).groups())
            self.assertAlmostEqual(value, run["joules_per_query"], delta=0.06 * error)
            low, high = ends["joules_per_query"]
            self.assertAlmostEqual(error, (high - low) / 2, delta=0.06 * error)
            low, high = ends["accuracy"]
            self.assertEqual(row[heads.index("Accuracy (95 % CI)")], f"{100 * run['accuracy']:.1f} % ({100 * low:.0f}–{100 * high:.0f})")

    def test_error_bars_of_frontier(self):
        self.several()
        self.browser.run(EVERY_CHART)
        bars = self.browser.run("echarts.getInstanceByDom(document.querySelector('#across .chart')).getOption().series.find(s => s.type === 'custom').data")
        self.assertEqual(len(bars), 3)
        for name, bar in zip("abc", bars):
            lines = map(json.loads, (self.folder / name / "records.jsonl").read_text().splitlines()[1:])
            done = [line for line in lines if line["ipw"]["status"] == "completed"]
            joules = [line["ipw"]["energy"]["joules"] for line in done]
            mean = statistics.fmean(joules)
            half = 1.96 * math.hypot(statistics.stdev(joules) / math.sqrt(len(joules)), 0.05 * mean)  # 5 % between runs
            right = sum(next(iter(line["model_metrics"].values()))["evaluation"]["is_correct"] for line in done)
            share, n, z = right / len(done), len(done), 1.959964
            middle, wide = (share + z * z / 2 / n) / (1 + z * z / n), z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / 4 / n / n)  # Wilson
            for found, wanted in zip(bar, (mean, share, mean - half, mean + half, middle - wide, middle + wide)):
                self.assertAlmostEqual(found, wanted, delta=1e-3 * wanted)
        ticks = self.browser.run("echarts.getInstanceByDom(document.querySelector('#across .chart')).getModel().getComponent('yAxis').axis.scale.getTicks().map(t => t.value)")
        steps = [round(high - low, 6) for low, high in zip(ticks, ticks[1:])]
        self.assertEqual(steps, steps[:1] * len(steps), ticks)  # none overlaps an end label

    def frontier_labels(self, page, options):
        """[text, x, y] of label centers, and [x, y] of points, in pixels."""
        self.browser.open(page, **options)
        self.browser.run(EVERY_CHART)
        points = self.browser.run("(chart => chart.getOption().series.find(s => s.type === 'scatter').data.map(p => chart.convertToPixel({gridIndex: 0}, p.value.slice(0, 2))))"
                                  "(echarts.getInstanceByDom(document.querySelector('#across .chart')))")
        return [(text, (x + width / 2, y + height / 2)) for text, x, y, width, height in self.browser.run(LABELS)], points

    def test_labels_of_frontier(self):
        """If points are far apart, each label is nearest to its point; otherwise they are numbered, with a legend."""
        names = [f"org/near.model.{i}.instruct" for i in range(5)]
        for i, name in enumerate(names):
            make_run(self.folder / f"near{i}", 40, model=name, seed=7)
        page = report(*(self.folder / f"near{i}" for i in range(5)), output=self.folder / "near.html")
        labels, _ = self.frontier_labels(page, PHONE)
        self.assertLessEqual({"1", "2", "3", "4", "5"}, {text for text, _ in labels})
        legend = self.browser.run("document.getElementById('frontier-legend').textContent")
        for i in range(5):
            self.assertIn(f"{i + 1} near.model.{i}.instruct", legend)
        for name, seed, queries in (("far", 5, 20), ("off", 9, 60)):
            make_run(self.folder / name, queries, model=name, seed=seed)
        page = report(self.folder / "far", self.folder / "off", output=self.folder / "apart.html")
        labels, points = self.frontier_labels(page, DESKTOP)
        placed = dict(labels)
        for i, name in enumerate(("far", "off")):
            self.assertEqual(min((0, 1), key=lambda k: math.dist(points[k], placed[name])), i, (labels, points))

    def test_two_kinds_of_power_have_distinct_names(self):
        self.several()
        heads = self.browser.run("[...document.querySelectorAll('thead th, .figure dt')].map(e => e.textContent)")
        self.assertIn("Query power", heads)
        self.assertIn("Power while busy", heads)
        self.assertNotIn("Power", heads)
        self.assertIn("energy per query over latency", self.browser.run("document.querySelector('#groups .note').textContent"))

    def test_two_kinds_of_uncertainty_are_explained(self):
        self.several()
        self.assertIn("95 % CI, with 5 % between runs (assumed)", self.browser.run("document.getElementById('frontier-note').textContent"))
        self.assertIn("common to all runs", self.browser.run("document.querySelector('#figures .note.after').textContent"))

    def test_verdict_is_visible_on_phone(self):
        self.several(**PHONE)
        self.assertEqual(self.browser.run("document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertEqual(self.browser.run("innerWidth"), PHONE["width"])
        self.assertEqual(self.browser.run(BEYOND), [])
        seen = "[...document.querySelectorAll('.matrix [data-metric=accuracy] small, #across tbody td:nth-child(3)')].map(e => e.getBoundingClientRect().right <= innerWidth)"
        self.assertGreaterEqual(len(self.browser.run(seen)), 5)
        self.assertNotIn(False, self.browser.run(seen))

    def test_print_layout(self):
        self.several(width=700, media="print")
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        self.browser.settle()
        self.assertEqual(self.browser.run("[...document.querySelectorAll('nav, .controls, .pager, #theme, select, input')].filter(e => e.getClientRects().length).length"), 0)
        self.assertTrue(self.browser.run("document.querySelector('#one .paper').getClientRects().length > 0"))
        wide = "[...document.querySelectorAll('table')].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.parentElement.ariaLabel)"
        self.assertEqual(self.browser.run(wide), [])
        self.browser.run("dispatchEvent(new Event('afterprint'))")

    @unittest.skipUnless(shutil.which("pdftotext"), "no pdftotext here (Debian: poppler-utils)")
    def test_headings_are_on_the_same_page_as_content(self):
        self.several()
        titles = set(self.browser.run("[...document.querySelectorAll('h2, h3, section > .note:not(.after)')].map(e => e.textContent.split(' ').slice(0, 3).join(' '))"))
        self.browser.pdf(self.folder / "three.pdf")
        text = subprocess.run(["pdftotext", "-layout", self.folder / "three.pdf", "-"], capture_output=True, text=True, check=True).stdout
        pages = [page.split("\n") for page in text.split("\f") if page.strip()]
        self.assertGreater(len(pages), 4)
        for page in pages:
            last = [line for line in page if line.strip()][-1].strip()
            self.assertFalse(any(last.startswith(title) for title in titles), last)

    def test_title_is_escaped(self):
        self.browser.open(report(self.folder / "b"), **PHONE)
        self.assertEqual(self.browser.run("document.querySelector('h1').textContent"), HOSTILE + " on H200x1")
        # White space in a window title is normalized.
        self.assertEqual(self.browser.run("document.title").split(), (HOSTILE + " on H200x1").split())
        self.assertEqual(self.browser.run("document.documentElement.scrollWidth - innerWidth"), 0)
        self.assertIsNone(self.browser.run("window.struck || null"))

    def test_rejects_files_that_are_no_run_or_layers(self):
        other = self.folder / "other.json"
        for content in ("{}", "no json"):
            other.write_text(content)
            done = ipw(None, "report", self.folder / "a", other, "-o", self.folder / "x.html")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
            self.assertIn("other.json", done.stderr)
        self.assertFalse((self.folder / "x.html").exists())
        done = ipw(None, "report", self.folder / "nowhere")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1))
        self.assertIn("nowhere", done.stderr)


class ManyQueries(Page):
    def test_page_of_hundred_thousand_queries(self):
        make_run(self.folder / "many", 100_000, concurrency=32)
        page = report(self.folder / "many")
        self.assertLessEqual(page.stat().st_size, 5 * MB)
        self.browser.open(page, **DESKTOP)
        texts = self.browser.run("JSON.parse(document.getElementById('data').textContent).runs[0].excerpts.map(e => [e.at, e.problem.length])")
        self.assertTrue(250 <= len(texts) < 500, len(texts))
        self.assertGreater(sum(length for _, length in texts), 200_000)  # the size includes long texts
        self.assertEqual(len({b[0] - a[0] for a, b in zip(texts, texts[1:])}), 1)  # evenly spaced
        self.assertIn("100,000 queries", self.browser.run("document.getElementById('query-status').textContent"))
        self.focus("#queries thead th:nth-child(4) button")
        self.browser.key("Enter")
        values = [OneRun.joules(text) for text in self.browser.run(cells(3))]
        self.assertEqual(values, sorted(values, reverse=True))
        self.focus("#query-search")
        self.browser.write("q054321")
        self.assertEqual(self.browser.run(cells(0)), ["q054321"])
        self.browser.run("document.querySelector('#timeline').scrollIntoView({behavior: 'instant'})")
        self.browser.settle()
        status = "document.querySelector('#timeline [role=status]').textContent"
        self.assertIn("Zoom in", self.browser.run(status))
        self.focus("#timeline-chart")
        for _ in range(9):
            self.browser.key("+")
        self.assertRegex(self.browser.run(status), r"^\d+ requests in view")


if __name__ == "__main__":
    built = ipw(None, "doctor", "--json")
    part = next(part for part in json.loads(built.stdout)["parts"] if part["name"] == "ECharts")
    if not part["available"] or not chromium():
        print("skipped:", part["missing"] or "no Chromium here (Debian: chromium-headless-shell)")
        sys.exit(77)
    unittest.main()
