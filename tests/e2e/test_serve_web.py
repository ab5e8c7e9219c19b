#!/usr/bin/env python3
# test: real time
"""The dashboard of ipw serve in a real Chromium: live power, runs, comparison, Pareto frontier, estimates, login."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from agent_runs import write_agent_run  # noqa: E402
from browser import BEYOND, EVERY_CHART, Browser, chromium  # noqa: E402
from synthetic_run import make_run  # noqa: E402
from machines import Intel, Machine, SharedCpus  # noqa: E402
from program import IPW, TIMEOUT_S, wait_until, ipw  # noqa: E402
from sweeps import write_sweep  # noqa: E402

HOSTILE = "<img src=x onerror=\"window.struck=1\"></script><script>window.struck=2</script>"
TOKEN = "a-token-of-thirty-two-characters"
DESKTOP, PHONE = {"width": 1280}, {"width": 360, "height": 740, "phone": True}
# name: (model, hardware, seed); one model on two machines, and another
RUNS = {"llama-h200": ("llama-3.1-8b", "H200x1", 1), "qwen-h200": ("qwen2.5-7b", "H200x1", 2), "llama-4090": ("llama-3.1-8b", "RTX4090x1", 3)}

# Texts with a contrast below WCAG's 4.5, or 3 for large text.
FAINT = """(() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map((v, i) => Number(v) * (text.startsWith('color(') && i < 3 ? 255 : 1));
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0.9) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length && !e.closest(':disabled, .unseen, .skip, .old, option, [aria-hidden]') &&
    [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())).map(e => {
      const style = getComputedStyle(e), [a, b] = [light(parse(style.color)), light(behind(e))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), parseFloat(style.fontSize) >= 24 ? 3 : 4.5, e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 30)]; })
    .filter(([ratio, least]) => ratio < least).map(([ratio, , what]) => ratio.toFixed(2) + ' ' + what); })()"""
# Controls without an accessible name.
NAMELESS = """[...document.querySelectorAll('a, button, input, select, [role=img], [role=region], nav, section')].filter(e => e.getClientRects().length &&
  !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML.slice(0, 80))"""


class Server:
    """`ipw serve` for the duration of a test."""

    def __init__(self, machine, runs, *options, listen="127.0.0.1:0"):
        self.process = subprocess.Popen([IPW, "serve", "--listen", listen, "--runs", str(runs), *map(str, options)],
                                        env=machine.environment(), text=True, stderr=subprocess.PIPE)
        line = self.process.stderr.readline()
        while line and not (found := re.search(r"listening on (https?://\S+:(\d+))/", line)):
            line = self.process.stderr.readline()
        assert line, "ipw serve has ended"
        self.url, self.port = found[1], int(found[2])

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=TIMEOUT_S) as answer:
            return answer.read()

    def json(self, path):
        return json.loads(self.get(path))

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(TIMEOUT_S)
        self.process.stderr.close()


def setUpModule():
    Page.browser = Browser()
    unittest.addModuleCleanup(Page.browser.close)
    folder = tempfile.TemporaryDirectory(prefix="ipw-serve-")
    unittest.addModuleCleanup(folder.cleanup)
    Page.folder, Page.runs = Path(folder.name), Path(folder.name) / "runs"
    Page.told = {name: make_run(Page.runs / name, queries=60 + 10 * seed, model=model, hardware=hardware, seed=seed)["ipw"]
                 for name, (model, hardware, seed) in RUNS.items()}
    write_agent_run(Page.runs / "agent")
    write_sweep(Page.runs / "clocks", ("clock",), [((clock,), {"joules": joules * f, "seconds": seconds}) for f in (0.99, 1.01)
                                                 for clock, joules, seconds in ((1980, 100, 1.0), (1600, 82, 1.05), (1200, 75, 1.3), (900, 90, 1.8))])
    Page.machine = Intel(40, 25)
    unittest.addModuleCleanup(Page.machine.close)
    Page.server = Server(Page.machine, Page.runs)
    unittest.addModuleCleanup(Page.server.close)


class Page(unittest.TestCase):
    def tearDown(self):
        """No test may cause a page error, a CSP violation or a request to another host."""
        self.assertEqual(self.browser.problems(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith((self.asked.url + "/", "data:"))], [])
        self.assertIsNone(self.browser.run("window.struck ?? null"))
        self.browser.call("Page.navigate", url="about:blank")  # before its server ends

    def open(self, path, server=None, **options):
        self.asked = server or self.server
        self.browser.open(self.asked.url + path, **{**DESKTOP, **options})

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? null")

    def texts(self, selector):
        return self.browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def until(self, condition):
        self.browser.until(f"!!({condition})")

    def ready(self):
        self.until("document.documentElement.dataset.ready === 'yes'")

    def press(self, selector):
        """Activates an element by keyboard."""
        self.browser.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.browser.key("Enter")

    def choose(self, selector, value):
        self.browser.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)}; "
                         "e.dispatchEvent(new Event('change', {bubbles: true})); })()")
        self.ready()

    def expect_problems(self, pattern):
        """Removes problems that the test has caused on purpose."""
        self.browser.run("1")
        self.browser.events[:] = [event for event in self.browser.events if not (
            event.get("method") == "Log.entryAdded" and re.search(pattern, event["params"]["entry"]["text"]))]


class Live(Page):
    WATTS = "parseFloat(document.querySelector('#now .answer b')?.textContent)"

    def test_live_power(self):
        self.open("/")
        self.until(f"Math.abs({self.WATTS} - 65) < 7")  # 40 and 25 W
        self.assertIn("Measured by 2 sensors, all up to date.", self.text("#now .answer"))
        rows = self.browser.run("[...document.querySelectorAll('#now tbody tr')].map(r => [...r.children].map(c => c.textContent))")
        self.assertEqual([row[0][:4] for row in rows], ["cpu0", "cpu1"])
        self.assertTrue(all("ok" in row for row in rows), rows)
        self.addCleanup(self.machine.set_power, 40)
        self.machine.set_power(240)
        self.until(f"Math.abs({self.WATTS} - 265) < 20")
        self.assertEqual(self.browser.run("document.querySelectorAll('#history canvas').length"), 1)
        self.assertRegex(self.text("[aria-live=polite]"), r"\d+(\.\d+)? W\. Measured")
        self.choose("#range", "60")
        # The sort order is kept while figures change.
        self.press("#now thead button")
        self.press("#now thead button")
        self.until("document.querySelector('#now tbody th').textContent.startsWith('cpu1')")

    def test_live_view_without_sensors_has_fix(self):
        with Machine() as machine:
            server = Server(machine, self.runs, "--sensors", "rapl")
            self.addCleanup(server.close)
            self.open("/", server=server)
            self.assertIn("No device here reports its power.", self.text("#now"))
            self.assertEqual(self.texts("#now a"), ["sensors page", "Runs"])
            self.assertIn("No profile is running.", self.text("#running"))
    
    def test_reconnects_to_restarted_server(self):
        server = Server(self.machine, self.runs)
        self.open("/", server=server)
        self.until(f"{self.WATTS} > 0")
        server.close()
        self.until("document.querySelector('#now [role=status]').hidden === false")
        self.assertIn("Connection lost", self.text("#now [role=status]"))
        again = Server(self.machine, self.runs, listen=f"127.0.0.1:{server.port}")
        self.addCleanup(again.close)
        self.until("document.querySelector('#now [role=status]').hidden === true")
        self.expect_problems("net::ERR_")

    def test_estimated_power_is_labeled(self):
        with SharedCpus(1.0) as machine:
            server = Server(machine, self.runs)
            self.addCleanup(server.close)
            self.open("/", server=server)
            self.until("document.querySelector('#now .answer')?.textContent.startsWith('~')")
            self.assertRegex(self.text("#now .answer"), r"^~[\d.]+ m?W drawn now.* estimated Estimated by a model, not measured\.$")
            self.assertFalse(server.json("/api/v1/sensors")["energy_measured"])
            self.open("/sensors", server=server)
            self.assertIn("No sensor here measures energy. Estimated by a model, not measured: cpu_model.", self.text("#sensors .answer"))

    def test_navigation_fits_on_phone(self):
        self.open("/sensors", **PHONE)
        self.assertEqual(self.browser.run("(bar => bar.scrollWidth - bar.clientWidth)(document.querySelector('#bar nav > div'))"), 0)

    def test_sensors_page(self):
        self.open("/sensors")
        self.assertIn("Energy is measured by", self.text("#sensors .answer"))
        self.assertIn("rapl:0", self.texts("#sensors tbody th") and "".join(self.texts("#sensors tbody th")))


class Runs(Page):
    NAMES = "#list tbody th a"

    def test_runs_can_be_sorted_searched_and_filtered(self):
        by = lambda key: sorted(RUNS, key=lambda name: -self.told[name][key])  # noqa: E731
        self.open("/runs?q=mmlu-pro")
        self.assertEqual(set(self.texts(self.NAMES)), set(RUNS))
        place = self.texts("#list thead th").index("Per query") + 1
        self.press(f"#list thead th:nth-child({place}) button")
        self.until(f"document.querySelector('#list thead th:nth-child({place})').ariaSort === 'descending'")
        self.until("!document.querySelector('#runs-status').textContent.startsWith('Load')")
        self.assertEqual(self.texts(self.NAMES), by("joules_per_query"))
        self.assertEqual(self.browser.run("document.activeElement.textContent"), "Per query")
        self.press(f"#list thead th:nth-child({place}) button")
        self.until(f"document.querySelector({json.dumps(self.NAMES)}).textContent === {json.dumps(by('joules_per_query')[-1])}")
        self.assertEqual(self.texts(self.NAMES), by("joules_per_query")[::-1])
        # The URL contains the state: reloading shows the same.
        self.open(self.browser.run("location.pathname + location.search"))
        self.assertEqual(self.texts(self.NAMES), by("joules_per_query")[::-1])
        self.browser.run("document.querySelector('#runs-search').select()")
        self.browser.write("qwen")
        self.until(f"document.querySelectorAll({json.dumps(self.NAMES)}).length === 1")
        self.assertEqual(self.texts(self.NAMES), ["qwen-h200"])
        self.assertEqual(self.browser.run("document.activeElement.id"), "runs-search")
        self.open("/runs?q=nothing-is-called-so")
        self.assertIn("No run matches.", self.text("#list"))
        self.open("/runs?q=mmlu-pro")
        self.choose("#filter-hardware", "RTX4090x1")
        self.until(f"document.querySelectorAll({json.dumps(self.NAMES)}).length === 1")
        self.assertEqual(self.texts(self.NAMES), ["llama-4090"])

    def test_pages_without_runs(self):
        (self.folder / "none").mkdir()
        server = Server(self.machine, self.folder / "none")
        self.addCleanup(server.close)
        for path, told in (("/runs", "There are no runs yet."), ("/pareto", "No run has both figures."), ("/sweeps", "There are no sweeps yet."), ("/compare", "Select two runs or more.")):
            self.open(path, server=server)
            self.assertIn(told, self.text("main"), path)

    def test_two_runs_are_compared(self):
        said = json.loads(ipw(None, "compare", self.runs / "llama-h200", self.runs / "qwen-h200", "--json").stdout)["comparisons"][0]["metrics"]
        self.open("/runs?kind=profile&sort=name&order=asc")
        for name in ("llama-h200", "qwen-h200"):
            self.browser.run(f"document.querySelector('#list tr[data-id={json.dumps(name)}] input').click()")
        self.assertIn("2 runs selected", self.text(".picked"))
        self.press(".picked a")
        self.until("document.title.startsWith('Compare')")
        self.ready()
        self.assertEqual(self.browser.run("location.search"), "?run=llama-h200&run=qwen-h200")
        shown = dict(self.browser.run("[...document.querySelectorAll('#comparison [data-metric]')].map(e => [e.dataset.metric, e.querySelector('small').textContent])"))
        self.assertGreater(len(shown), 3)
        self.assertEqual(shown, {name: said[name]["verdict"] for name in shown})
        verdict = self.text("#verdict li")
        for name, words in (("energy_per_query", "energy per query"), ("accuracy", "accuracy"), ("tokens_per_s", "tokens/s")):
            self.assertIn(words, verdict)
            word = {"better": "better in", "worse": "worse in", "no evidence": "no evidence of a difference in",
                    "not decided": "not decided:"}[said[name]["verdict"]]
            if name == "energy_per_query" and said[name]["verdict"] != "no evidence":
                self.assertIn(f"energy per query {said[name]['statement']}", verdict)
            else:
                self.assertRegex(verdict, re.escape(word) + "[^;]*" + re.escape(words))

    def test_page_of_run_is_its_report(self):
        self.open("/runs/llama-h200")
        figures = dict(self.browser.run("[...document.querySelectorAll('.figure')].map(e => [e.dataset.key, e.dataset.value])"))
        for key in ("joules_per_query", "joules_per_output_token", "output_tokens_per_s", "accuracy"):
            self.assertAlmostEqual(float(figures[key]), self.told["llama-h200"][key], delta=1e-6 * self.told["llama-h200"][key], msg=key)
        drawn = self.browser.run(EVERY_CHART)
        self.assertGreater(len(drawn), 6)
        self.assertEqual(set(drawn), {1})
        self.assertEqual(self.browser.run("document.querySelectorAll('#shares .shares span').length && getComputedStyle(document.querySelector('#shares .shares span')).backgroundColor !== 'rgba(0, 0, 0, 0)'"), True)
        # Links to sections do not leave the page.
        self.press("#main nav a[href='#queries']")
        self.assertEqual(self.browser.run("[location.hash, document.querySelectorAll('#queries tbody tr').length]"), ["#queries", 25])

    def test_downloads_of_run(self):
        out = self.folder / "measured"
        done = ipw(self.machine, "profile", "--client", "null", "--model", "tiny", "--max-queries", "20", "--idle", "0", "--output-dir", out, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        server = Server(self.machine, out)
        self.addCleanup(server.close)
        self.open("/runs/" + Path(json.loads(done.stdout)["output_dir"]).name, server=server)
        found = {name: server.get(path) for name, path in self.browser.run("[...document.querySelectorAll('.head a, .files a')].map(a => [a.textContent, a.pathname])")}
        self.assertEqual(len(list(csv.reader(io.StringIO(found["CSV"].decode())))), 20 + 1)
        self.assertEqual(found["Arrow"][:4], b"\xff\xff\xff\xff")  # a stream
        self.assertIn(b"<title>tiny on", found["Report page"])
        self.assertEqual(json.loads(found["summary.json"])["model"], "tiny")

    def test_spans_of_agent_run(self):
        self.open("/runs/agent")
        self.assertIn("calculator", self.text("#agent"))
        self.browser.run("document.querySelector('#icicle').scrollIntoView()")
        self.until("document.querySelectorAll('#icicle canvas').length === 1")

    def test_run_in_progress(self):
        out = self.folder / "running"
        out.mkdir()
        server = Server(self.machine, out)
        self.addCleanup(server.close)
        profile = subprocess.Popen([IPW, "profile", "--client", "null", "--model", "tiny", "--max-queries", "5000", "--request-rate", "20", "--idle", "0",
                                    "--output-dir", str(out)], env=self.machine.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(profile.wait)
        self.addCleanup(profile.kill)
        wait_until(lambda: server.json("/api/v1/runs")["runs"], "the run in the list")
        self.open("/runs", server=server)
        self.assertIn("running", self.text("#list tbody th"))
        self.browser.run("document.querySelector('#list tbody th a').click()")
        queries = "parseFloat(document.querySelector('#running .progress')?.textContent.replace(',', ''))"
        self.until(f"{queries} > 0")
        done = self.browser.run(queries)
        self.until(f"{queries} > {done}")
        self.until("document.querySelector('.figure[data-key=joules_per_query]')")  # the partial report
        profile.send_signal(signal.SIGINT)
        profile.wait(TIMEOUT_S)
        self.until("document.querySelector('.figure[data-key=joules_per_query]') && !document.querySelector('#running progress')")

    def test_hostile_name_is_escaped(self):
        out = self.folder / "hostile"
        make_run(out / "one", queries=12, model=HOSTILE, hardware=HOSTILE)
        server = Server(self.machine, out)
        self.addCleanup(server.close)
        for path in ("/runs", "/runs/one", "/pareto?group=model"):
            self.open(path, server=server)
            self.assertIn(HOSTILE, self.text("main"), path)
            self.assertIsNone(self.browser.run("window.struck ?? null"))

    def test_missing_runs_are_reported(self):
        for path in ("/runs/none-of-that-name", "/compare?run=llama-h200&run=none-of-that-name"):
            self.open(path)
            self.assertIn("Not found.", self.text("[role=alert]"))
            self.assertEqual(self.texts("[role=alert] button"), ["Try again"])
            self.expect_problems("404")


class Exploration(Page):
    def test_ticks_of_accuracy_axis(self):
        """A few ticks, including both ends."""
        self.open("/pareto")
        for low, high in ((0, 0), (1, 1), (0.5, 0.5), (0.93, 0.97), (0.8, 0.96), (0.3, 0.75), (0, 1)):
            least, most, step = self.browser.run(
                f"(axis => [axis.min, axis.max, axis.interval])(frontOption([{low}, {high}].map((y, i) => ({{ x: i + 1, y, place: i, name: 'run', labeled: true }})), "
                "{ unit: 'J', name: 'x' }, { unit: '%', name: 'y' }, {}, () => '').yAxis)")
            self.assertTrue(0 <= least <= low and high <= most <= 1, (low, high, least, most))
            self.assertAlmostEqual((most - least) / step, round((most - least) / step), places=6)
            self.assertTrue(1 <= round((most - least) / step) <= 7, (low, high, step))

    def front(self, x, y):
        """Pareto-optimal runs, by comparing all pairs."""
        at = {name: (told[x], told[y]) for name, told in self.told.items()}
        return {a for a in at if not any(at[b][0] <= at[a][0] and at[b][1] >= at[a][1] and at[b] != at[a] for b in at)}

    def test_pareto_frontier(self):
        rows = "Object.fromEntries([...document.querySelectorAll('#front-table tbody tr')].map(r => [r.querySelector('a').textContent, [...r.children].at(-1).textContent]))"
        for trade, x, y in (("accuracy", "joules_per_query", "accuracy"), ("throughput", "joules_per_output_token", "output_tokens_per_s")):
            self.open(f"/pareto?trade={trade}&group=hardware")
            shown = self.browser.run(rows)
            self.assertEqual({name for name in RUNS if shown[name] == "yes"}, self.front(x, y) & set(RUNS), trade)
            self.assertIn("Pareto-optimal", self.text("#front .answer"))
        self.assertEqual([text.strip(" ●■▲◆") for text in self.texts("#front .keys li")][:2], ["H200x1", "RTX4090x1"])
        self.choose("#group", "model")
        self.until("location.search.includes('group=model')")
        self.ready()
        self.assertIn("qwen2.5-7b", " ".join(self.texts("#front .keys li")))
        # A point links to its run.
        self.browser.run("document.querySelector('#front .chart').scrollIntoView({block: 'center', behavior: 'instant'})")
        self.until("document.querySelector('#front canvas')")
        name, x, y = self.browser.run("""(() => { const e = document.querySelector('#front .chart'), chart = echarts.getInstanceByDom(e), box = e.getBoundingClientRect();
          const point = chart.getOption().series.find(s => s.type === 'scatter').data[0], [x, y] = chart.convertToPixel({gridIndex: 0}, point.value.slice(0, 2));
          return [point.name, box.left + x, box.top + y]; })()""")
        self.browser.click(x, y)
        self.until(f"location.pathname === '/runs/{name}'")
        self.ready()

    def test_sweep_and_its_optimum(self):
        self.open("/sweeps")
        self.until("document.querySelector('#sweeps tbody').textContent.includes('clock=1200 uses 25.0')")
        self.press("#sweeps tbody a")
        self.until("document.querySelector('#sweep .answer')")
        self.ready()
        self.assertIn("clock=1200 uses 25.0", self.text("#sweep .answer"))
        self.assertEqual(self.texts("#sweep tbody tr:first-child th"), ["clock=1200"])
        self.browser.run("document.querySelector('#sweep .chart').scrollIntoView()")
        self.until("document.querySelector('#sweep canvas')")

    def test_estimate_form(self):
        said = json.loads(ipw(None, "estimate", "--model", "llama-3.1-8b", "--hardware", "h200", "--batch", "4", "--prompt-tokens", "256", "--output-tokens", "64", "--price-per-kwh", "0.25", "--gco2-per-kwh", "400", "--json").stdout)
        self.open("/estimate")
        self.assertIn("Select a model and hardware.", self.text("#estimated"))
        for field, value in (("model", "llama-3.1-8b"), ("hardware", "h200"), ("batch", "4"), ("input_tokens", "256"), ("output_tokens", "64"), ("price_per_kwh", "0.25"), ("gco2_per_kwh", "400")):
            self.browser.run(f"document.getElementById('{field}').value = '{value}'")
        self.press("#estimate-form button")
        self.until("document.querySelector('.figure[data-key=each]')")
        for _ in range(2):  # as submitted, and again by URL
            figures = dict(self.browser.run("[...document.querySelectorAll('.figure')].map(e => [e.dataset.key, Number(e.dataset.value)])"))
            for key, value in (("each", said["each"]["energy_j"]), ("latency", said["latency_s"]), ("memory", said["memory_bytes"]["total_peak"]),
                               ("cost", said["operating"]["cost_per_query"]), ("emissions", said["operating"]["gco2e_per_query"])):
                self.assertAlmostEqual(figures[key], value, delta=1e-6 * value, msg=key)
            self.assertIn("estimated, not measured", self.text("#estimated .answer"))
            self.open(self.browser.run("location.pathname + location.search"))
            self.assertEqual(self.browser.run("document.getElementById('batch').value"), "4")
        self.assertEqual(self.texts("#breakdown tbody tr th")[:2], ["prefill", "decode"])
        self.open("/estimate?model=no-such-model&hardware=h200")
        self.assertIn("no-such-model", self.text("[role=alert]"))
        self.expect_problems("400|404")


class Appearance(Page):
    PATHS = ("/", "/runs", "/runs/llama-h200", "/compare?run=llama-h200&run=qwen-h200", "/pareto", "/sweeps", "/estimate?model=llama-3.1-8b&hardware=h200", "/sensors")

    def test_layout_of_every_page_on_every_screen(self):
        """$IPW_SCREENSHOTS is a folder for the images."""
        kept = os.environ.get("IPW_SCREENSHOTS")
        for path in self.PATHS:
            for kind, options in (("desktop", {"dark": True}), ("phone", PHONE)):
                self.open(path, **options)
                self.assertEqual(self.browser.run(BEYOND), [], (path, kind))
                self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), options.get("width", 1280), (path, kind))
                self.assertEqual(self.browser.run(FAINT), [], (path, kind))
                self.assertEqual(self.browser.run(NAMELESS), [], (path, kind))
                self.assertEqual(self.browser.run("[document.querySelectorAll('h1').length, document.querySelectorAll('main').length]"), [1, 1])
                self.assertEqual(self.browser.run("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size === document.querySelectorAll('[id]').length"), True, path)
                if kept:
                    self.browser.screenshot(Path(kept, f"serve-{re.sub('[^a-z]+', '-', path)}-{kind}.png"))

    def test_keyboard_navigation(self):
        self.open("/runs?kind=profile")
        self.browser.run("document.activeElement.blur()")
        self.browser.key("Tab")
        self.assertEqual(self.browser.run("document.activeElement.className"), "skip")
        seen = []
        for _ in range(80):
            self.browser.key("Tab")
            what, ring = self.browser.run("[document.activeElement.id || document.activeElement.textContent || document.activeElement.ariaLabel, getComputedStyle(document.activeElement).outlineStyle]")
            self.assertEqual(ring, "solid", what)
            seen.append(what)
            if what == "llama-h200":
                break
        for what in ("Live", "Pareto", "theme", "runs-search", "filter-model", "Per query"):
            self.assertIn(what, seen)
        self.browser.run("[...document.querySelectorAll('#list tbody a')].find(a => a.textContent === 'llama-h200').focus()")
        self.browser.key("Enter")
        self.until("document.title.startsWith('llama-h200')")
        self.ready()
        # The focus of a new page is its title.
        self.assertEqual(self.browser.run("document.activeElement.tagName"), "H1")
        self.browser.run("history.back()")
        self.until("document.querySelector('#list tbody')")

    def test_theme_is_kept(self):
        self.open("/sensors")
        self.press("#theme")
        self.assertEqual(self.browser.run("document.documentElement.dataset.theme"), "dark")
        self.open("/estimate")
        self.assertEqual(self.browser.run("[document.documentElement.dataset.theme, localStorage.clear() ?? null]"), ["dark", None])


class Login(Page):
    def test_login_with_token(self):
        file = self.folder / "token"
        file.write_text(TOKEN + "\n")
        server = Server(self.machine, self.runs, "--token-file", file)
        self.addCleanup(server.close)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.get("/api/v1/runs")
        self.assertEqual(refused.exception.code, 401)
        self.open("/runs?q=qwen", server=server)
        self.assertEqual(self.browser.run("location.pathname"), "/login")
        for token, path in (("b-token-of-thirty-two-characters", "/login"), (TOKEN, "/runs")):
            self.browser.run("document.getElementById('token').focus()")
            self.browser.write(token)
            self.browser.key("Enter")
            self.until(f"location.pathname === '{path}' && document.readyState === 'complete' && (document.getElementById('list') || location.search.includes('failed'))")
            self.ready()
            self.assertEqual(self.browser.run("document.getElementById('failed')?.hidden ?? null"), False if path == "/login" else None)
        self.assertEqual(self.texts("#list tbody th a"), ["qwen-h200"])
        self.assertEqual(self.browser.run("document.cookie"), "")  # not visible to scripts


class Start(Page):
    def test_profile_is_started_from_page(self):
        self.open("/runs")
        self.assertIsNone(self.text("#start"))  # not without --allow-runs
        file, runs = self.folder / "start-token", self.folder / "started"
        file.write_text(TOKEN + "\n")
        runs.mkdir()
        server = Server(self.machine, runs, "--token-file", file, "--allow-runs")
        self.addCleanup(server.close)
        self.open("/runs", server=server)
        self.browser.run("document.getElementById('token').focus()")
        self.browser.write(TOKEN)
        self.browser.key("Enter")
        self.until("document.querySelector('#start summary')")
        self.ready()
        self.browser.run("document.querySelector('#start details').open = true")
        self.assertEqual(self.browser.run(NAMELESS), [])
        self.assertEqual(self.browser.run(FAINT), [])
        self.choose("#client", "null")
        self.browser.run("document.getElementById('model').value = 'two words'")
        self.browser.run("document.getElementById('max_queries').value = '20000'")
        self.press("#start [type=submit]")
        self.until("document.querySelector('#started .alert')?.textContent.includes('max_queries')")
        self.expect_problems("400")
        self.browser.run("document.getElementById('max_queries').value = '3'")
        self.press("#start [type=submit]")
        self.until("document.getElementById('stop')")
        self.assertTrue(self.browser.run("document.querySelector('#start [type=submit]').disabled"))
        self.until("document.getElementById('started').textContent.includes('is done')")
        self.until("document.querySelector('#started a') && document.querySelector('#list tbody th a')")
        self.assertEqual(self.texts("#list tbody th a"), self.texts("#started a"))
        self.assertEqual(self.browser.run("document.getElementById('model').value"), "two words")  # the input is kept


if __name__ == "__main__":
    built = ipw(None, "doctor", "--json")
    part = next(part for part in json.loads(built.stdout)["parts"] if part["name"] == "ECharts")
    if not part["available"] or not chromium():
        print("skipped:", part["missing"] or "no Chromium here (Debian: chromium-headless-shell)")
        sys.exit(77)
    unittest.main()
