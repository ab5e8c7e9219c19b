#!/usr/bin/env python3
# test: real time
"""Command-line tests of `ipw serve`: API on runs with known figures, access control, behavior as a server."""

import contextlib
import csv
import datetime
import io
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from urllib.parse import quote, urlencode

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from dashboards import Dashboard  # noqa: E402
from machines import Nvidia  # noqa: E402
from profiling import MODEL, Server  # noqa: E402
from program import MachineTest, TIMEOUT_S, SANITIZED, wait_until, ipw, main_parallel  # noqa: E402
from rundirs import query, summary, write_run  # noqa: E402
from sweeps import write_sweep  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
TOKEN = "correct-horse-battery"
HOSTILE = "<img src=x onerror=alert(1)> \"quoted\" ü"


class ServeTest(MachineTest):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ipw-serve-test-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder])
        self.runs = self.folder / "runs"
        self.runs.mkdir()

    def serve(self, *options, runs=True, live=False, **more):
        served = Dashboard(*(["--runs", self.runs] if runs else []), *([] if live else ["--no-live"]), *options,
                           scratch=self.folder, **more)
        self.addCleanup(served.close)
        return served

    def write(self, name, joules, **facts):
        return write_run(self.runs / name, [query(i, joules, correct=i % 2 == 0, problem=HOSTILE) for i in range(4)],
                         group=name, **facts)

    def write_three_runs(self):
        self.write("alpha", 10.0, hardware="H100")
        self.write("beta", 30.0, hardware="A100")
        self.write("gamma", 20.0, hardware="H100")

    def three_models(self):
        """Writes three runs to be listed; their records have another model."""
        self.write("alpha", 10.0, hardware="H100", model="one")
        self.write("beta", 30.0, hardware="A100", model="two")
        self.write("gamma", 20.0, hardware="H100", model=HOSTILE)


class ListTest(ServeTest):
    def test_rows_agree_with_summaries(self):
        self.three_models()
        page = self.serve().get("runs?sort=energy_j&order=asc")
        self.assertEqual([(row["id"], row["energy_j"], row["model"]) for row in page["runs"]],
                         [("alpha", 40, "one"), ("gamma", 80, HOSTILE), ("beta", 120, "two")])
        row = page["runs"][0]
        self.assertAlmostEqual(row["energy_plus_minus_j"], 1.2)
        self.assertEqual((row["energy_method"], row["state"], row["kind"], row["queries"]), ("counter", "done", "profile", 4))
        self.assertIsNone(row["accuracy"])  # missing in the summary: unknown, not 0
        self.assertEqual((page["total"], page["next_cursor"]), (3, None))
        self.assertEqual(page["facets"], {"kind": ["profile"], "model": sorted(["one", "two", HOSTILE]),
                                          "hardware": ["A100", "H100"]})

    def test_filters_and_search(self):
        self.three_models()
        served = self.serve()

        def found(query_text):
            page = served.get("runs?order=asc&sort=name&" + query_text)
            self.assertEqual(page["total"], len(page["runs"]))
            return [row["id"] for row in page["runs"]]

        self.assertEqual(found("hardware=H100"), ["alpha", "gamma"])
        self.assertEqual(found("q=ONERROR"), ["gamma"])
        self.assertEqual(found("model=" + quote(HOSTILE)), ["gamma"])
        self.assertEqual(found("hardware=A100&model=one"), [])

    def test_paging_while_runs_are_added_and_removed(self):
        for i in range(7):
            self.write(f"run{i}", 1.0 + i % 3)
        served = self.serve()
        for order in ("asc", "desc"):
            seen, cursor, pages = [], "", 0
            while cursor is not None:
                page = served.get(f"runs?sort=energy_j&order={order}&limit=3{cursor and '&cursor=' + cursor}")
                seen += [(row["energy_j"], row["id"]) for row in page["runs"]]
                cursor, pages = page["next_cursor"], pages + 1
            self.assertEqual(seen, sorted(seen, reverse=order == "desc"))
            self.assertEqual((len(set(seen)), pages), (7, 3))
        first = served.get("runs?sort=name&order=asc&limit=2")
        subprocess.run(["rm", "-r", self.runs / "run1"], check=True)  # the run of the cursor
        self.write("run1b", 1.0)
        wait_until(lambda: "run1b" in [r["id"] for r in served.get("runs?limit=20")["runs"]], "the new run")
        page = served.get("runs?sort=name&order=asc&limit=2&cursor=" + first["next_cursor"])
        self.assertEqual([row["id"] for row in page["runs"]], ["run1b", "run2"])

    def test_unfinished_and_damaged_runs_are_listed(self):
        self.write_three_runs()
        write_run(self.runs / "stopped", [query(0)], whole=False)
        (self.write("broken", 1.0) / "summary.json").write_text("{ no JSON")
        (self.runs / "notes").mkdir()
        (self.runs / "file.txt").write_text("no run")
        served = self.serve()
        rows = {row["id"]: row for row in served.get("runs")["runs"]}
        self.assertEqual(set(rows), {"alpha", "beta", "gamma", "stopped", "broken"})
        for name in ("stopped", "broken"):
            self.assertEqual((rows[name]["state"], rows[name]["energy_j"]), ("interrupted", None))
        self.assertEqual(rows["stopped"]["created_at"], "2023-11-14T22:13:20.000Z")
        self.assertIsNone(served.get("runs/broken")["summary"])
        self.assertEqual(served.get("runs/alpha")["summary"]["ipw"]["energy"]["joules"], 40)
        (self.runs / "beta" / "records.jsonl").write_bytes(b"\xff\x00" * 1000)
        answer = served.ask("/api/v1/runs/beta/report")
        self.assertIn(answer.status, (404, 409), answer.body)
        self.assertEqual(served.get("runs/alpha/report")["runs"][0]["rows"], 4)

    def test_current_run_index_is_used(self):
        for name in ("alpha", "beta", "gamma", "delta"):
            queries = [query(i, 10.0) for i in range(4)]
            write_run(self.runs / name, queries, whole={**summary(queries), "generated_at": time.time(), "run_kind": "run"})
        ipw(None, "list", "runs", self.runs)
        index = self.runs / "catalog.db"
        if not index.exists():
            self.skipTest("SQLite is not installed")
        with sqlite3.connect(index) as database:  # figures that only the index has
            database.execute("UPDATE runs SET joules = 777")
            database.execute("UPDATE runs SET written_at = written_at - 1 WHERE directory = 'gamma'")
            database.execute("DELETE FROM runs WHERE directory = 'delta'")
        os.utime(self.runs / "beta" / "summary.json")
        rows = {row["id"]: row for row in self.serve().get("runs")["runs"]}
        self.assertEqual({name: row["energy_j"] for name, row in rows.items()},
                         {"alpha": 777, "beta": 40, "gamma": 40, "delta": 40})
        for row in rows.values():
            self.assertEqual((row["kind"], row["state"], row["queries"], row["hardware"]), ("run", "done", 4, "H100"))
            self.assertAlmostEqual(row["energy_plus_minus_j"], 1.2)
        with sqlite3.connect(index) as database:  # and the rows that were read are written
            self.assertEqual(dict(database.execute("SELECT directory, joules FROM runs")),
                             {"alpha": 777, "beta": 40, "gamma": 40, "delta": 40})

    def test_run_in_progress(self):
        served = self.serve()
        process = subprocess.Popen(
            [served.process.args[0], "profile", "--client", "null", "--dataset", "builtin", "--model", "m", "--request-rate", "20",
             "--max-queries", "200", "--idle", "0", "--output-dir", self.runs, "-q"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        wait_until(lambda: served.get("runs?state=running")["runs"], "a running run")
        row = served.get("runs?state=running")["runs"][0]
        wait_until(lambda: (served.get("runs/" + row["id"])["progress"] or {}).get("done", 0) > 2, "some progress")
        progress = served.get("runs/" + row["id"])["progress"]
        self.assertEqual(progress["total"], 200)
        # 20 arrivals per second determine the remaining time.
        self.assertAlmostEqual(progress["eta_s"], (200 - progress["done"]) / progress["done"] * progress["elapsed_s"], delta=0.5)
        self.assertEqual(served.get("runs/" + row["id"])["state"], "running")
        wait_until(lambda: [r["id"] for r in served.get("live")["running"]] == [row["id"]], "the run in the live view")
        process.send_signal(signal.SIGINT)
        process.wait(TIMEOUT_S)
        wait_until(lambda: served.get("runs/" + row["id"])["state"] == "interrupted", "its end")
        header = json.loads((self.runs / row["id"] / "records.jsonl").read_text().splitlines()[0])
        self.assertEqual(header["measuring"]["queries"], 200)
        self.assertIsNone(served.get("runs/" + row["id"])["progress"])

    def test_a_hundred_thousand_runs_are_paged(self):
        database = self.folder / "runs.db"
        self.assertEqual(ipw(None, "db", "init", "--db", f"sqlite:///{database}").returncode, 0)
        with sqlite3.connect(database) as db:
            db.executemany("INSERT INTO runs (id, name, kind, host, digest, bytes, format, pushed, began, model, joules, finished)"
                           " VALUES (?, ?, 'profile', 'h', 'd', 1, 1, ?, ?, ?, ?, 1)",
                           ((f"{i:016x}", f"run{i}", i, 1.7e9 + i, f"m{i % 5}", (i * 7919) % 100003)
                            for i in range(100_000)))
        served = self.serve("--db", f"sqlite:///{database}", runs=False)
        page = served.get("runs?sort=energy_j&order=desc&limit=3&model=m2")
        expected = sorted(((i * 7919) % 100003 for i in range(2, 100_000, 5)), reverse=True)
        self.assertEqual([row["energy_j"] for row in page["runs"]], expected[:3])
        page = served.get("runs?sort=energy_j&order=desc&limit=3&model=m2&cursor=" + page["next_cursor"])
        self.assertEqual([row["energy_j"] for row in page["runs"]], expected[3:6])
        self.assertEqual(served.get("runs?limit=1")["total"], 100_000)


class RunTest(ServeTest):
    def setUp(self):
        super().setUp()
        self.write_three_runs()
        self.served = self.serve()

    def test_records_and_downloads(self):
        page = self.served.get("runs/alpha/records?limit=3")
        self.assertEqual([record["key"] for record in page["records"]], ["q000000", "q000001", "q000002"])
        rest = self.served.get("runs/alpha/records?limit=3&cursor=" + page["next_cursor"])
        self.assertEqual(([record["key"] for record in rest["records"]], rest["next_cursor"]), (["q000003"], None))
        answer = self.served.ask("/api/v1/runs/alpha/records.csv")
        self.assertEqual(answer.headers["Content-Disposition"], 'attachment; filename="alpha.csv"')
        exported = ipw(None, "export", self.runs / "alpha", "--to", "csv").stdout
        self.assertEqual(answer.body.decode(), exported)
        self.assertEqual(len(list(csv.DictReader(io.StringIO(exported)))), 4)
        self.assertEqual(self.served.ask("/api/v1/runs/alpha/records.arrow").status, 404)  # a synthetic run has none
        files = {file["name"]: file for file in self.served.get("runs/alpha")["files"]}
        content = self.served.ask(files["records.jsonl"]["url"])
        self.assertEqual(content.body, (self.runs / "alpha" / "records.jsonl").read_bytes())
        self.assertEqual(files["records.jsonl"]["bytes"], len(content.body))

    def test_arrow_download_is_file_of_run(self):
        done = ipw(None, "profile", "--client", "null", "--dataset", "builtin", "--model", "m", "--max-queries", "3", "--idle",
                   "0", "--output-dir", self.runs, "--name", "own", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        files = list((self.runs / "own").glob("data-*.arrow"))
        self.assertEqual(len(files), 1)
        wait_until(lambda: self.served.ask("/api/v1/runs/own/records.arrow").status == 200, "the run")
        answer = self.served.ask("/api/v1/runs/own/records.arrow")
        self.assertEqual((answer.body, answer.headers["Content-Type"]),
                         (files[0].read_bytes(), "application/vnd.apache.arrow.stream"))

    def test_compare_agrees_with_command(self):
        expected = json.loads(ipw(None, "compare", self.runs / "alpha", self.runs / "beta", "--json").stdout)
        self.assertEqual(self.served.get("compare?run=alpha&run=beta"), expected)
        for wrong, status in (("run=alpha", 400), ("", 400), ("run=alpha&run=nowhere", 404),
                              ("&".join(["run=alpha"] * 9), 400)):
            self.assertEqual(self.served.ask("/api/v1/compare?" + wrong).status, status, wrong)

    def test_page_and_data_agree_with_report(self):
        page = self.served.ask("/api/v1/runs/gamma/page")
        self.assertEqual(page.status, 200)
        self.assertIn("sandbox", page.headers["Content-Security-Policy"])
        self.assertNotIn(HOSTILE.encode(), page.body)
        data = self.served.get("runs/gamma/report")
        self.assertEqual((data["runs"][0]["rows"], data["runs"][0]["summary"]["ipw"]["energy"]["joules"]), (4, 80))

    def test_pareto_front(self):
        for i, (joules, accuracy) in enumerate(((10, 0.5), (20, 0.9), (30, 0.8), (5, 0.4), (10, 0.5))):
            run = self.write(f"p{i}", 1.0)
            whole = json.loads((run / "summary.json").read_text())
            whole["ipw"].update(joules_per_query=joules, accuracy=accuracy, energy={"joules": 100, "plus_minus": 5, "method": "counter"})
            (run / "summary.json").write_text(json.dumps(whole))
        served = self.serve()
        found = served.get("pareto?x=j_per_query&y=accuracy&group=model")
        points = {point["id"]: point for point in found["points"]}
        self.assertEqual({name for name, point in points.items() if point["on_front"]}, {"p0", "p1", "p3", "p4"})
        self.assertEqual((found["left_out"], found["x"]["better"], found["y"]["better"]), (3, "low", "high"))
        self.assertEqual((found["x"]["label"], found["x"]["unit"]), ("Energy per query", "J"))
        self.assertEqual(served.get("status")["figures"]["joules_per_query"],
                         {"label": "Energy per query", "heading": "Per query", "unit": "J"})
        self.assertAlmostEqual(points["p1"]["x_plus_minus"], 1.0)  # 5 % of 20 J
        self.assertIsNone(points["p1"]["y_plus_minus"])
        for wrong in ("name", "queries", "failed"):  # a count is neither better nor worse
            self.assertEqual(served.ask(f"/api/v1/pareto?x={wrong}").status, 400)

    def test_list_of_sweeps_has_optimum(self):
        write_sweep(self.runs / "clocks", ("clock",), [((clock,), {"joules": joules * f, "seconds": 10})
                                                      for clock, joules in ((1980, 100), (1200, 75), (600, 90)) for f in (0.99, 1, 1.01)])
        wait_until(lambda: [row for row in self.served.get("sweeps")["sweeps"] if row["id"] == "clocks"], "the sweep")
        row = next(row for row in self.served.get("sweeps")["sweeps"] if row["id"] == "clocks")
        self.assertEqual((row["settings"], row["attempts"], row["optimum"]), (3, 9, "clock=1200"))
        self.assertAlmostEqual(row["saving_pct"], 25)
        self.assertTrue(0 < row["saving_plus_minus_pct"] < 5, row)
        self.assertTrue(row["conclusion"].startswith("clock=1200 uses 25.0"), row["conclusion"])

    def test_sweep_page(self):
        done = ipw(None, "sweep", "--output-dir", self.runs, "--knob", "s=0.01,0.02", "-q", "--", "sleep", "{s}")
        self.assertEqual(done.returncode, 0, done.stderr)
        name = next(self.runs.glob("sweep_*")).name
        wait_until(lambda: self.served.get("sweeps")["sweeps"], "the sweep")
        row = self.served.get("sweeps")["sweeps"][0]
        self.assertEqual((row["id"], row["settings"], row["attempts"]), (name, 2, 2))
        self.assertEqual((row["saving_pct"], row["saving_plus_minus_pct"]), (None, None))  # one attempt each
        sweep = self.served.get("sweeps/" + name)
        analyzed = json.loads(ipw(None, "analyze", self.runs / name, "--json").stdout)
        self.assertIn(sweep["result"]["summary"]["conclusion"], json.dumps(analyzed))
        self.assertEqual(len(sweep["result"]["data"]["settings"]), 2)
        attempt = next((self.runs / name / "points").glob("*/run_*")).relative_to(self.runs)
        self.assertEqual(self.served.get("runs/" + quote(str(attempt), safe=""))["kind"], "run")
        self.assertEqual(self.served.ask("/api/v1/runs/" + quote(f"{name}/points", safe="")).status, 404)
        self.assertEqual(self.served.ask("/api/v1/sweeps/alpha").status, 404)

    def test_estimates_agree_with_command(self):
        models, hardware = self.served.get("models")["models"], self.served.get("hardware")["hardware"]
        self.assertIn("resnet50", [model["id"] for model in models])
        self.assertEqual({device["id"]: device["memory_bytes"] for device in hardware}["a100-pcie-40gb"], 40 * 2**30)
        expected = json.loads(ipw(None, "estimate", "--model", "resnet50", "--hardware", "h100-sxm", "--batch", "8", "--json").stdout)
        self.assertEqual(self.served.get("estimate?model=resnet50&hardware=h100-sxm&batch=8"), expected)
        prices = {"price_per_kwh": "0.3", "gco2_per_kwh": "400", "device_price_per_hour": "2.5"}
        options = [word for name, value in prices.items() for word in ("--" + name.replace("_", "-"), value)]
        expected = json.loads(ipw(None, "estimate", "--model", "gpt2", "--hardware", "l4", *options, "--json").stdout)
        self.assertGreater(expected["operating"]["cost_per_query"], 0)
        self.assertEqual(self.served.get("estimate?model=gpt2&hardware=l4&" + urlencode(prices)), expected)
        for name in prices:
            for wrong in ("-1", "1e9", "x", "nan"):
                self.assertEqual(self.served.ask(f"/api/v1/estimate?model=gpt2&hardware=l4&{name}={wrong}").status, 400, (name, wrong))
        (self.folder / "resnet50").write_text("no model")
        for wrong, status in (("model=/etc/passwd&hardware=h100-sxm", 404), ("model=resnet50&hardware=none", 404),
                              ("model=resnet50", 400), ("model=resnet50&hardware=h100-sxm&batch=1..9", 400),
                              ("model=resnet50&hardware=all", 400), (f"model={quote(str(self.folder / 'resnet50'))}&hardware=h100-sxm", 404)):
            self.assertEqual(self.served.ask("/api/v1/estimate?" + wrong).status, status, wrong)


class DatabaseTest(ServeTest):
    def test_database_gives_same_runs_as_folder(self):
        self.write_three_runs()
        address = f"sqlite:///{self.folder / 'team.db'}"
        ipw(None, "db", "init", "--db", address)
        self.assertEqual(ipw(None, "db", "push", self.runs / "alpha", self.runs / "beta", "--db", address).returncode, 0)
        served, folder = self.serve("--db", address, runs=False), self.serve()
        self.assertEqual(served.get("status")["runs"]["source"], "database")
        rows, same = (
            {row["name"]: {key: row[key] for key in row if key != "id"} for row in each.get("runs")["runs"]}
            for each in (served, folder))
        self.assertEqual(rows["beta"], {**same["beta"], "created_at": rows["beta"]["created_at"]})
        self.assertEqual(set(rows), {"alpha", "beta"})
        ids = {row["name"]: row["id"] for row in served.get("runs")["runs"]}
        self.assertEqual(served.get(f"runs/{ids['alpha']}")["summary"], folder.get("runs/alpha")["summary"])
        self.assertEqual(served.get(f"runs/{ids['alpha']}/records"), folder.get("runs/alpha/records"))
        self.assertEqual(ipw(None, "db", "push", self.runs / "gamma", "--db", address).returncode, 0)
        wait_until(lambda: len(served.get("runs")["runs"]) == 3, "the run that was pushed")
        self.assertTrue(list(self.folder.glob("ipw-copies-*/" + ids["alpha"])))
        self.assertEqual(served.end(), 0)
        self.assertEqual(list(self.folder.glob("ipw-copies-*")), [])

    def test_missing_database_fails(self):
        done = ipw(None, "serve", "--listen", "127.0.0.1:0", "--db", f"sqlite:///{self.folder}/none.db", "--no-live")
        self.assertEqual(done.returncode, 1)
        self.assertIn("none.db", done.stderr)


class LiveTest(ServeTest):
    def test_power_of_a_gpu(self):
        machine = self.machine(Nvidia, "devices 1\npower 0 constant 300\ntick * 0.02\nvalue temperature 0 51\n"
                               "value clock_sm 0 1500\nvalue memory_used 0 3e9")
        served = self.serve(live=True, machine=machine)

        def gpu():
            return next((d for d in served.get("live")["devices"] if d["id"] == "gpu0/gpu"), {"power_w": None})

        def series():
            history = served.get("live/history?seconds=5")["devices"]
            return next((each for each in history if each["id"] == "gpu0/gpu"), {"power_w": []})

        # Power is corrected by the first counter readings.
        wait_until(lambda: len(series()["power_w"]) >= 3 and
                        all(abs((watts or 0) - 300) < 1 for watts in series()["power_w"][-3:]), "300 W for three seconds")
        device, live = gpu(), served.get("live")
        self.assertEqual((device["health"], device["method"], device["temperature_c"], device["clock_mhz"],
                          device["memory_used_bytes"], device["utilization_pct"]), ("ok", "counter", 51, 1500, 3e9, 50))
        self.assertAlmostEqual(live["totals"]["power_w"], sum(d["power_w"] for d in live["devices"] if d["counted"]))
        self.assertGreater(device["energy_j"], 300)
        history = series()
        self.assertEqual(len(history["t"]), len(history["power_w"]))
        self.assertAlmostEqual(history["power_w"][-1], 300, delta=1)
        self.assertTrue(served.get("status")["live"])
        self.assertIn("nvml", [sensor["driver"] for sensor in served.get("sensors")["sensors"]])

    def test_history_agrees_with_stream(self):
        """One point for every streamed sample, with its power."""
        machine = self.machine(Nvidia, "devices 1\npower 0 square 100 300 1.4\ntick * 0.02")
        served = self.serve(live=True, machine=machine)
        with contextlib.closing(served.connect()) as connection:
            connection.request("GET", "/api/v1/live/stream")
            stream, samples = connection.getresponse(), []
            while len(samples) < 4:
                line = stream.readline().decode()
                if line.startswith("data: "):
                    samples.append(json.loads(line[6:]))
        history = next(each for each in served.get("live/history")["devices"] if each["id"] == "gpu0/gpu")
        times = [datetime.datetime.fromisoformat(sample["time"].replace("Z", "+00:00")).timestamp() + 0.001
                 for sample in samples]  # truncated to milliseconds
        # A point is taken just before its sample is written, so there is one between two samples.
        points = [(t, watts) for t, watts in zip(history["t"], history["power_w"]) if times[0] < t <= times[-1]]
        self.assertEqual(len(points), len(samples) - 1, (history, times))
        for (t, watts), before, after, sample in zip(points, times, times[1:], samples[1:]):
            self.assertTrue(before < t <= after, (t, times))
            power = next(device["power_w"] for device in sample["devices"] if device["id"] == "gpu0/gpu")
            self.assertAlmostEqual(watts, power, delta=0.01) if power is not None else self.assertIsNone(watts)
        self.assertTrue(any(watts is not None for _, watts in points), points)

    def test_stream_has_every_sample(self):
        served = self.serve()
        connection = served.connect()
        connection.request("GET", "/api/v1/live/stream")
        stream = connection.getresponse()
        self.assertEqual(stream.headers["Content-Type"], "text/event-stream")
        times = []
        while len(times) < 3:
            line = stream.readline().decode()
            if line.startswith("data: "):
                times.append(json.loads(line[6:])["time"])
        self.assertEqual(times, sorted(set(times)))
        head = served.ask("/api/v1/live/stream", "HEAD")
        self.assertEqual((head.status, head.headers["Content-Type"], head.body), (200, "text/event-stream", b""))
        self.assertEqual(served.end(), 0)  # open streams do not delay it
        connection.close()

    def test_live_view_without_sensors_has_reason(self):
        live = self.serve().get("live")
        self.assertEqual((live["devices"], live["totals"]["power_w"]), ([], None))
        self.assertIn("--no-live", live["missing"])


class AccessTest(ServeTest):
    def setUp(self):
        super().setUp()
        self.write_three_runs()
        self.token = self.folder / "token"
        self.token.write_text(TOKEN + "\n")

    def test_only_run_files_can_be_read(self):
        (self.folder / "secret").write_text("secret")
        (self.runs / "alpha" / "notes.txt").write_text("secret")
        (self.runs / "alpha" / "samples.csv").symlink_to(self.folder / "secret")
        (self.runs / "link").symlink_to(self.folder)
        served = self.serve()
        for path in ("/assets/../../etc/passwd", "/assets/%2e%2e/app.js", "/../../etc/passwd", "/assets//etc/passwd",
                     "/api/v1/runs/..", "/api/v1/runs/%2e%2e%2fsecret", "/api/v1/runs/alpha%2f..%2f..%2fsecret",
                     "/api/v1/runs/..%2fruns%2falpha", "/api/v1/runs/alpha/files/..%2f..%2fsecret", "/api/v1/runs/alpha%00",
                     "/api/v1/runs/alpha/files/notes.txt", "/api/v1/runs/alpha/files/samples.csv", "/api/v1/runs/link",
                     "/api/v1/runs/alpha/files/.lock", "/api/v1/runs/%2fetc", "/api/v1/runs//report"):
            answer = served.ask(path)
            self.assertIn(answer.status, (400, 404), path)
            self.assertNotIn(b"secret\n", answer.body + b"\n")
        self.assertNotIn("samples.csv", [file["name"] for file in served.get("runs/alpha")["files"]])

    def test_links_and_paths_of_sweeps_do_not_lead_outside(self):
        """Whatever a directory in the folder contains: records, the Arrow file, attempts of a sweep, whole runs."""
        outside = write_run(self.folder / "outside/secret_run", [query(i, 1.0, problem="secret question") for i in range(2)],
                            group="x", hardware="secret hardware")
        (outside / "data-00000-of-00001.arrow").write_bytes(b"secret bytes")
        for name in ("linked", "arrow", "journal", "everything"):
            self.write(name, 10.0)
        for name, files in {"arrow": ["data-00000-of-00001.arrow"], "journal": ["records.jsonl"],
                            "everything": ["records.jsonl", "summary.json", "spans.jsonl", "traces.jsonl", "layers.json",
                                           "estimate.json", "samples.csv", "data-00000-of-00001.arrow"]}.items():
            for file in files:
                if not (source := outside / file).exists():
                    source.write_text(json.dumps({"secret": 1, "kind": "query", "key": "q000000"}) + "\n")
                (self.runs / name / file).unlink(missing_ok=True)
                (self.runs / name / file).symlink_to(source)
        subprocess.run(["rm", "-r", self.runs / "linked"], check=True)
        (self.runs / "linked").symlink_to(outside)
        hostile = {"escaping": "../../outside/secret_run", "absolute": str(outside), "inside": "points/p001_r1/link"}
        for name, run in hostile.items():
            sweep = write_sweep(self.runs / name, ("a",), [((1,), {"joules": 10, "seconds": 1}), ((2,), {"joules": 5, "seconds": 2})])
            (sweep / "points/p001_r1/link").symlink_to(outside)
            lines = [json.loads(line) for line in (sweep / "records.jsonl").read_text().splitlines()]
            lines[1]["run"] = run
            (sweep / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        served = self.serve()
        wait_until(lambda: any(row["id"] == "gamma" for row in served.get("runs")["runs"]), "the runs")
        self.assertNotIn("linked", [row["id"] for row in served.get("runs?limit=100")["runs"]])
        names = ["linked", "arrow", "journal", "everything", *(f"{name}/{run}" for name, run in hostile.items()), *hostile]
        for name in names:
            for rest in ("", "/records", "/records.arrow", "/records.csv", "/report", "/page", "/files/records.jsonl",
                         "/files/data-00000-of-00001.arrow", "/files/summary.json"):
                path = "/api/v1/runs/" + quote(name, safe="") + rest
                answer = served.ask(path)
                self.assertNotIn(b"secret", answer.body.replace(b"secret_run", b""), path)
                if "/" in name or name == "linked":
                    self.assertEqual(answer.status, 404, path)
            answer = served.ask("/api/v1/sweeps/" + quote(name, safe=""))
            self.assertNotIn(b"secret", answer.body.replace(b"secret_run", b""), name)
        self.assertNotIn("secret", json.dumps(served.get("sweeps")).replace("secret_run", ""))
        self.assertEqual(served.ask("/api/v1/runs/arrow/records.arrow").status, 404)
        self.assertEqual(served.ask("/api/v1/runs/arrow/records").status, 200)  # its journal is its own
        answer = served.ask("/api/v1/sweeps/escaping")
        self.assertIn("is not below the directory of the sweep", answer.json["error"]["message"])

    def test_pipes_do_not_block(self):
        for name in ("records.jsonl", "summary.json"):
            run = self.write("piped_" + name[0], 10.0)
            (run / name).unlink()
            os.mkfifo(run / name)
        served = self.serve()
        wait_until(lambda: any(row["id"] == "gamma" for row in served.get("runs")["runs"]), "the runs")
        for rest in ("piped_r", "piped_r/records", "piped_r/report", "piped_s", "piped_s/records", "piped_s/report"):
            self.assertIn(served.ask("/api/v1/runs/" + rest).status, (200, 404, 409), rest)

    def test_served_folder_may_be_a_link(self):
        (self.folder / "link").symlink_to(self.runs)
        served = self.serve("--runs", f"{self.folder}/link/", runs=False)
        self.assertEqual(len(served.get("runs/alpha/records")["records"]), 4)
        self.assertEqual(served.ask("/api/v1/runs/alpha/report").status, 200)

    def test_rejects_invalid_requests(self):
        served = self.serve()
        for path, status in (("/api/v1/runs?limit=0", 400), ("/api/v1/runs?limit=5&limit=6", 400), ("/api/v1/runs?x=1", 400),
                             ("/api/v1/runs?sort=nothing", 400), ("/api/v1/runs?order=up", 400), ("/api/v1/runs?cursor=x", 400),
                             ("/api/v1/runs?q=%zz", 400), ("/api/v1/runs?q=%00", 400), ("/api/v1/runs?q=%ff", 400),
                             ("/api/v1/nothing", 404), ("/nothing", 404), ("/api/v1/runs/none", 404),
                             ("/api/v1/runs/none/records", 404), ("/api/v1/live/history?seconds=4000", 400),
                             ("/api/v1/runs?" + "&".join(f"q{i}=1" for i in range(40)), 400)):
            answer = served.ask(path)
            self.assertEqual(answer.status, status, path)
            self.assertEqual(set(answer.json["error"]), {"code", "message"})
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            answer = served.ask("/api/v1/runs", method)
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"), method)
        head, whole = served.ask("/api/v1/runs", "HEAD"), served.ask("/api/v1/runs")
        self.assertEqual((head.status, head.body, head.headers["Content-Length"]), (200, b"", str(len(whole.body))))
        self.assertEqual(served.ask("/login", "POST", "x" * 20000).status, 413)
        self.assertIn(served.ask("/api/v1/runs?q=" + "x" * 40000).status, (400, 414, 431))
        self.assertEqual(served.ask("/api/v1/runs").status, 200)

    def test_security_headers(self):
        served = self.serve()
        for path in ("/", "/runs/alpha", "/api/v1/runs", "/assets/app.js", "/nothing"):
            headers = served.ask(path).headers
            self.assertIn("default-src 'none'; script-src 'self'; style-src 'self';", headers["Content-Security-Policy"], path)
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
        self.assertEqual(served.ask("/api/v1/runs").headers["Cache-Control"], "no-store")
        asset = served.ask("/assets/app.js")
        again = served.ask("/assets/app.js", If_None_Match=asset.headers["ETag"])
        self.assertEqual((asset.status, again.status, again.body), (200, 304, b""))

    def test_rejects_foreign_host_headers(self):
        served = self.serve("--allow-host", "lab.example")
        for host, status in ((f"127.0.0.1:{served.port}", 200), ("localhost", 200), ("[::1]:80", 200), ("lab.example:1", 200),
                             ("LAB.example", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("", 403),
                             ("localhost@evil.example", 403), ("lab.example.evil", 403), ("evil:lab.example", 403),
                             ("user@127.0.0.1", 403), ("user:word@localhost", 403), ("127.0.0.1/", 403)):
            self.assertEqual(served.ask("/api/v1/runs", Host=host).status, status, host)
        self.assertIn("--allow-host evil.example", served.ask("/", Host="evil.example:80").json["error"]["message"])

    def test_token_is_required(self):
        served = self.serve("--token-file", self.token)
        self.assertEqual(served.ask("/healthz").status, 200)
        self.assertEqual(served.ask("/api/v1/runs").status, 401)
        self.assertEqual(served.ask("/api/v1/runs", Authorization="Bearer " + TOKEN[:-1]).status, 401)
        self.assertEqual(served.ask("/api/v1/runs", Cookie="ipw_session=" + "0" * 32).status, 401)
        self.assertEqual(served.ask("/api/v1/live/stream").status, 401)
        self.assertEqual(served.get("runs", Authorization="Bearer " + TOKEN)["total"], 3)
        self.assertEqual(served.get("runs", x_ipw_token=TOKEN)["total"], 3)
        page = served.ask("/runs/alpha?x=1")
        self.assertEqual((page.status, page.headers["Location"]), (303, "/login?next=%2Fruns%2Falpha%3Fx%3D1"))
        self.assertEqual(served.ask("/login").status, 200)
        served.end()
        self.assertNotIn(TOKEN, served.startup_message + served.process.stderr.read())

    def test_browser_login(self):
        served = self.serve("--token-file", self.token)

        def log_in(**form):
            body = "&".join(f"{key}={quote(value)}" for key, value in form.items())
            return served.ask("/login", "POST", body, Content_Type="application/x-www-form-urlencoded")

        wrong = log_in(token="wrong-token", next="/runs")
        self.assertEqual((wrong.status, wrong.headers["Location"]), (303, "/login?failed=1&next=%2Fruns"))
        self.assertIsNone(wrong.headers["Set-Cookie"])
        for target, location in (("/runs?q=a", "/runs?q=a"), ("//evil.example", "/"), ("https://evil.example", "/"),
                                 ("/\\evil.example", "/")):
            answer = log_in(token=TOKEN, next=target)
            self.assertEqual((answer.status, answer.headers["Location"]), (303, location))
        cookie, *flags = answer.headers["Set-Cookie"].split("; ")
        self.assertEqual(flags, ["Path=/", "HttpOnly", "SameSite=Strict"])
        self.assertNotIn(TOKEN, cookie)
        self.assertEqual(served.get("runs", Cookie="a=b; " + cookie)["total"], 3)
        self.assertEqual(served.ask("/api/v1/runs", Cookie=cookie[:-1]).status, 401)
        tries = [log_in(token=f"wrong-token-{i}").status for i in range(15)]
        self.assertEqual((tries[0], tries[-1]), (303, 429))
        self.assertEqual(served.ask("/api/v1/runs", Authorization="Bearer wrong").status, 429)
        self.assertEqual(log_in(token=TOKEN).status, 429, "a guess was confirmed")
        self.assertEqual(served.get("runs", Cookie=cookie)["total"], 3, "a session ended")

    def test_rate_limit(self):
        served = self.serve()
        connection, statuses = served.connect(), set()
        for _ in range(20000):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            statuses.add(answer.status)
            if answer.status == 429:
                break
        self.assertEqual(statuses, {200, 429})
        self.assertEqual(answer.headers["Retry-After"], "1")
        wait_until(lambda: served.ask("/healthz").status == 200, "another second")

    def test_slow_and_disconnected_clients_block_no_other(self):
        served = self.serve()
        held = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
        for each in held[:25]:
            each.sendall(b"GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\n")
        for each in held[25:]:
            each.sendall(b"GET /api/v1/runs/alpha/report HTTP/1.1\r\nHost: localhost\r\n\r\n")
            each.close()
        self.assertEqual(served.get("runs")["total"], 3)
        for each in held[:25]:
            each.close()
        self.assertEqual(served.end(), 0)

    def test_tls_certificate(self):
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.folder / "key",
                               "-out", self.folder / "cert", "-days", "2", "-subj", "/CN=localhost", "-addext",
                               "subjectAltName=IP:127.0.0.1"], capture_output=True)
        if made.returncode:
            self.skipTest("openssl cannot create a certificate")
        served = self.serve("--tls-cert", self.folder / "cert", "--tls-key", self.folder / "key", "--token-file", self.token)
        import ssl
        import urllib.request
        context = ssl.create_default_context(cafile=self.folder / "cert")
        request = urllib.request.Request(served.url + "/api/v1/runs", headers={"Authorization": "Bearer " + TOKEN})
        self.assertEqual(json.load(urllib.request.urlopen(request, context=context, timeout=TIMEOUT_S))["total"], 3)
        import http.client
        connection = http.client.HTTPSConnection("127.0.0.1", served.port, context=context, timeout=TIMEOUT_S)
        connection.request("POST", "/login", "token=" + TOKEN)
        self.assertTrue(connection.getresponse().headers["Set-Cookie"].endswith("; Secure"))


class StartTest(ServeTest):
    NULL = {"client": "null", "model": "m", "max_queries": 3}

    def setUp(self):
        super().setUp()
        self.token = self.folder / "token"
        self.token.write_text(TOKEN + "\n")

    def allowed(self):
        return self.serve("--allow-runs", "--token-file", self.token)

    def post(self, served, asked, **headers):
        body = asked if isinstance(asked, str) else json.dumps(asked)
        headers = {"Authorization": "Bearer " + TOKEN, "Content_Type": "application/json", **headers}
        return served.ask("/api/v1/runs", "POST", body, **{key: value for key, value in headers.items() if value})

    def current(self, served):
        return served.get("current", Authorization="Bearer " + TOKEN)

    def stop(self, served):
        return served.ask("/api/v1/current", "DELETE", Authorization="Bearer " + TOKEN)

    def endless(self, served):
        """Starts a run that takes minutes; returns its name once it has sent requests."""
        server = Server()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        answer = self.post(served, {"client": "openai", "model": MODEL, "base_url": server.url("normal:gap_ms=40") + "/v1", "concurrency": 2,
                                    "max_queries": 10000, "max_tokens": 7})
        self.assertEqual(answer.status, 202, answer.body)
        wait_until(lambda: len(server.requests) > 12, "queries")
        self.assertEqual(json.loads(server.requests[-1]["body"])["max_tokens"], 7)
        return answer.json["id"]

    def finished(self, name):
        return json.loads((self.runs / name / "summary.json").read_text())

    def test_started_run_is_listed(self):
        served = self.allowed()
        self.assertTrue(served.get("status", Authorization="Bearer " + TOKEN)["allow_runs"])
        self.assertEqual((self.current(served)["state"], self.current(served)["id"]), ("idle", None))
        answer = self.post(served, self.NULL, Origin=served.url)
        self.assertEqual((answer.status, answer.json["state"]), (202, "running"), answer.body)
        name = answer.json["id"]
        self.assertEqual(answer.headers["Location"], "/api/v1/runs/" + name)
        wait_until(lambda: self.current(served)["state"] != "running", "its end")
        self.assertEqual([self.current(served)[key] for key in ("state", "id", "exit_code", "message")], ["done", name, 0, None])
        wait_until(lambda: served.ask(answer.headers["Location"], Authorization="Bearer " + TOKEN).status == 200, "the run")
        row = served.get("runs/" + name, Authorization="Bearer " + TOKEN)
        self.assertEqual([row[key] for key in ("state", "client", "model", "dataset", "queries")], ["done", "null", "m", "builtin", 3])
        self.assertEqual(self.post(served, self.NULL).status, 202)  # and the next one

    def test_only_one_run_at_a_time_and_stop(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in background jobs of a shell
        self.addCleanup(signal.signal, signal.SIGINT, before)
        served = self.allowed()
        name = self.endless(served)
        second = self.post(served, self.NULL)
        self.assertEqual((second.status, name in second.json["error"]["message"]), (409, True), second.body)
        for child in subprocess.run(["pgrep", "-P", str(served.process.pid)], capture_output=True, text=True).stdout.split():
            seen = b"".join(Path(f"/proc/{child}/{file}").read_bytes() for file in ("cmdline", "environ"))
            self.assertIn(name.encode(), seen)
            self.assertNotIn(TOKEN.encode(), seen)
        answer = self.stop(served)
        self.assertEqual((answer.status, answer.json["state"]), (202, "stopping"), answer.body)
        wait_until(lambda: self.current(served)["state"] != "stopping", "its end")
        self.assertEqual([self.current(served)[key] for key in ("state", "exit_code")], ["stopped", 128 + signal.SIGTERM])
        self.assertGreater(self.finished(name)["ipw"]["queries"], 0)
        self.assertEqual(self.stop(served).status, 409)

    def test_run_ends_with_server(self):
        served = self.allowed()
        name = self.endless(served)
        self.assertEqual(served.end(), 0)
        self.assertGreater(self.finished(name)["ipw"]["queries"], 0)

    def test_failed_run_has_reason(self):
        served = self.allowed()
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        self.assertEqual(self.post(served, {"client": "openai", "model": "m", "base_url": f"http://127.0.0.1:{port}/v1"}).status, 202)
        wait_until(lambda: self.current(served)["state"] == "failed", "its failure")
        found = self.current(served)
        self.assertGreater(found["exit_code"], 0)
        self.assertIn(f"127.0.0.1:{port}", found["message"])

    def test_rejects_invalid_settings(self):
        served = self.allowed()
        for change, key in (({"dataset": "/etc/passwd"}, "dataset"), ({"dataset": "jsonl"}, "dataset"), ({"dataset": "ipw"}, "dataset"),
                            ({"client": "llama"}, "client"), ({"client": 1}, "client"), ({"client": None}, "client"), ({"model": ""}, "model"),
                            ({"model": "a\nb"}, "model"), ({"model": "x" * 201}, "model"), ({"max_queries": 0}, "max_queries"),
                            ({"max_queries": 10001}, "max_queries"), ({"max_queries": 1.5}, "max_queries"), ({"max_queries": "3"}, "max_queries"),
                            ({"concurrency": 257}, "concurrency"), ({"max_tokens": -1}, "max_tokens"), ({"output_dir": "/tmp"}, "output_dir"),
                            ({"base_url": "file:///etc/passwd"}, "base_url"), ({"base_url": "http://user:pass-word@host"}, "base_url"),
                            ({"base_url": ["http://host"]}, "base_url")):
            answer = self.post(served, {**self.NULL, **change})
            self.assertEqual(answer.status, 400, (change, answer.body))
            self.assertIn(key, answer.json["error"]["message"])
            self.assertNotIn("pass-word", answer.json["error"]["message"])
        for body in ("", "[]", "{}", "null", "{", '{"client": "null"}', '{"client": "null", "model": "a", "model": "b"}'):
            self.assertEqual(self.post(served, body).status, 400, body)
        self.assertEqual(self.post(served, " " * 20000).status, 413)
        self.assertEqual((self.current(served)["state"], list(self.runs.glob("profile*"))), ("idle", []))
        dash = self.post(served, {**self.NULL, "model": "--overwrite"})  # a value is no option

        def run():
            return served.ask("/api/v1/runs/" + dash.json["id"], Authorization="Bearer " + TOKEN)
        # Its row is reread as soon as the run has ended.
        wait_until(lambda: run() and self.current(served)["state"] == "done", "its end")
        self.assertEqual(run().json["model"], "--overwrite")

    def test_rejects_start_from_other_origin_or_without_token(self):
        served = self.allowed()
        other = f"http://127.0.0.1:{served.port + 1}"
        for headers, status in (({"Authorization": None}, 401), ({"Authorization": "Bearer wrong-token"}, 401), ({"Content_Type": None}, 415),
                                ({"Content_Type": "text/plain"}, 415), ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
                                ({"Origin": "null"}, 403), ({"Origin": "https://evil.example"}, 403), ({"Origin": other}, 403),
                                ({"Origin": served.url + ".evil.example"}, 403), ({"Host": "evil.example"}, 403)):
            self.assertEqual(self.post(served, self.NULL, **headers).status, status, headers)
        self.assertEqual(served.ask("/api/v1/current", "DELETE").status, 401)
        self.assertEqual(served.ask("/api/v1/current", "DELETE", Authorization="Bearer " + TOKEN, Origin=other).status, 403)
        self.assertEqual(served.ask("/api/v1/runs", "OPTIONS", Origin=other).headers["Allow"], "GET, HEAD, POST")
        self.assertEqual((self.current(served)["state"], list(self.runs.iterdir())), ("idle", []))
        self.assertEqual(self.post(served, self.NULL, Content_Type="Application/JSON; charset=utf-8", Origin=served.url).status, 202)

    def test_rejects_start_unless_allowed(self):
        served = self.serve("--token-file", self.token)
        self.assertFalse(served.get("status", Authorization="Bearer " + TOKEN)["allow_runs"])
        self.assertEqual((self.post(served, self.NULL).status, self.stop(served).status), (405, 405))
        self.assertEqual((self.current(served)["state"], list(self.runs.glob("profile*"))), ("idle", []))
        for options, word in ((("--runs", self.runs), "--token-file"), (("--db", "sqlite:////x", "--token-file", self.token), "--db")):
            done = ipw(None, "serve", "--listen", "127.0.0.1:0", "--no-live", "--allow-runs", *options)
            self.assertEqual((done.returncode, word in done.stderr), (2, True), done.stderr)


class CommandTest(ServeTest):
    def refused(self, *options, code=2):
        done = ipw(None, "serve", "--listen", "127.0.0.1:0", *options)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_rejects_invalid_options(self):
        self.assertIn("--runs", self.refused("--runs", self.folder / "none"))
        self.assertIn("are mutually exclusive", self.refused("--runs", self.runs, "--db", "sqlite:////x"))
        self.assertIn("needed together", self.refused("--runs", self.runs, "--tls-cert", self.folder))
        self.assertIn("invalid database address", self.refused("--db", "mysql://x"))
        self.assertIn("--token-file", self.refused("--runs", self.runs, "--listen", "0.0.0.0:0"))
        self.assertIn("'nonsense', which is not an address", self.refused("--runs", self.runs, "--listen", "nonsense"))
        self.assertIn("--token-file", self.refused("--runs", self.runs, "--token", "abc"))
        (self.folder / "short").write_text("abc")
        self.assertIn("too short", self.refused("--runs", self.runs, "--token-file", self.folder / "short"))
        (self.folder / "pem").write_text("no PEM")
        self.assertIn("PEM", self.refused("--runs", self.runs, "--tls-cert", self.folder / "pem", "--tls-key", self.folder / "pem"))
        served = self.serve()
        self.assertIn("in use", self.refused("--runs", self.runs, "--listen", f"127.0.0.1:{served.port}", code=1))

    def test_exit_status_on_signals(self):
        self.assertEqual(self.serve().end(signal.SIGTERM), 0)
        self.assertEqual(self.serve().end(signal.SIGINT), 130)

    def test_openapi_file_has_every_path(self):
        routes = re.findall(r'^ROUTE\("([^"]+)"', (SOURCE / "src/serve/routes.def").read_text(), re.M)
        described = self.serve("--allow-runs", "--token-file", self.token_file()).get("openapi.json", x_ipw_token=TOKEN)
        read_only = self.serve().get("openapi.json")
        self.assertEqual({method for methods in read_only["paths"].values() for method in methods}, {"get"})
        self.assertEqual(read_only, {**described, "paths": {path: {"get": methods["get"]} for path, methods
                                                            in described["paths"].items()}})
        self.assertEqual(sorted(described["paths"]), sorted(routes))
        text = (SOURCE / "docs/serve.md").read_text()
        self.assertEqual([path for path in routes if f"`{path}`" not in text], [])
        params = dict(re.findall(r'^ROUTE\("([^"]+)", \w+, \w+,\s*"([^"]*)"', (SOURCE / "src/serve/routes.def").read_text(), re.M))
        actions = re.findall(r'^ACTION\("(\w+)", "([^"]+)"', (SOURCE / "src/serve/routes.def").read_text(), re.M)
        self.assertEqual({(method.upper(), path) for path, methods in described["paths"].items() for method in methods if method != "get"},
                         set(actions))
        for path, names in params.items():
            listed = {p["name"] for p in described["paths"][path]["get"]["parameters"] if p["in"] == "query"}
            self.assertEqual(listed, {name.rstrip("*") for name in names.split()}, path)

    def token_file(self):
        path = self.folder / "token"
        path.write_text(TOKEN)
        return path

    def test_openapi_file_excludes_control_characters(self):
        served = self.serve()
        described = served.get("openapi.json")
        schemas = [p["schema"].get("items", p["schema"]) for methods in described["paths"].values()
                   for p in methods["get"]["parameters"]]
        schemas += described["components"]["schemas"]["Profile"]["properties"].values()
        patterns = {schema["pattern"] for schema in schemas if schema.get("type") == "string"}
        for character in "\0\t\n\x1b\x7f\x9f\u061c\u200e\u2028\u202e\u2069":
            self.assertEqual([p for p in patterns if re.search(p, f"a{character}b")], [], repr(character))
            self.assertEqual(served.ask("/api/v1/runs?q=" + quote(character)).status, 400, repr(character))
        self.assertEqual(len([p for p in patterns if re.search(p, "a \u00fc/<\U0001f600>")]), 1)

    def test_api_conforms_to_openapi_file(self):
        """schemathesis generates valid and invalid requests from the OpenAPI file and validates every response.  Invalid
        ones (its phase coverage) are refused before anything is read, so once is enough."""
        tester = Path(os.environ.get("IPW_PYTHON", sys.executable)).with_name("schemathesis")
        if not tester.exists():
            self.skipTest("schemathesis is not installed: tools/setup")
        self.write_three_runs()
        address = f"sqlite:///{self.folder / 'team.db'}"
        ipw(None, "db", "init", "--db", address)
        ipw(None, "db", "push", self.runs / "alpha", self.runs / "beta", "--db", address)
        for options, phases in (((), "coverage,fuzzing"), (("--db", address), "fuzzing"))[SANITIZED:]:
            served = self.serve(*options, runs=not options)
            described = served.get("openapi.json")
            ids = [row["id"] for row in served.get("runs")["runs"]] + ["none"]
            plain = described["paths"]["/api/v1/runs/{id}"]["get"]["parameters"][0]["schema"]
            text = json.dumps(described).replace(json.dumps(plain), json.dumps({"enum": ids}))
            (self.folder / "openapi.json").write_text(text)
            done = subprocess.run([tester, "run", self.folder / "openapi.json", "--url", served.url, "--phases", phases,
                                   "--max-examples", "3", "--exclude-path", "/api/v1/live/stream", "--generation-deterministic", "--no-color"],
                                  capture_output=True, text=True, timeout=TIMEOUT_S, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr)


if __name__ == "__main__":
    main_parallel()
