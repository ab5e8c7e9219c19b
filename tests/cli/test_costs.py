#!/usr/bin/env python3
# test: real time
"""Operating cost and emissions of run, profile, compare and estimate, at given prices, against independent
computation."""

import json
import re
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from estimates import EstimateTest  # noqa: E402
from machines import IntelNvidia, Intel, Machine  # noqa: E402
from profiling import ProfileTest  # noqa: E402
from program import MachineTest, ipw, main_parallel  # noqa: E402
from rundirs import query, summary, texts_of, write_run  # noqa: E402

PRICE, CARBON, HOURLY = 0.36, 400, 1.8
OPTIONS = ("--price-per-kwh", PRICE, "--gco2-per-kwh", CARBON, "--device-price-per-hour", HOURLY)
KWH, HOUR = 3.6e6, 3600


class Costs(unittest.TestCase):
    """Mixin: checks cost and emissions."""

    def check(self, found, each, joules, error, device_s, price=PRICE, hourly=HOURLY, carbon=CARBON):
        """`error`: relative error of the joules; None if the ± includes more."""
        self.assertAlmostEqual(found["cost" + each] / (joules / KWH * price + device_s / HOUR * hourly), 1, places=9)
        self.assertAlmostEqual(found["gco2e" + each] / (joules / KWH * carbon), 1, places=9)
        if error is not None:
            self.assertAlmostEqual(found["cost" + each + "_plus_minus"] / (error / KWH * price), 1, places=9)
            self.assertAlmostEqual(found["gco2e" + each + "_plus_minus"] / (error / KWH * carbon), 1, places=9)


class CommandCosts(MachineTest, Costs):
    def test_cost_of_command_is_energy_and_time(self):
        report, done = self.run_json(self.machine(Intel, 50), *OPTIONS, "--", "sleep", "0.2")
        found = report["operating"]
        self.assertEqual((found["price_per_kwh"], found["gco2_per_kwh"], found["device_price_per_hour"], found["devices"]),
                         (PRICE, CARBON, HOURLY, 1))
        self.check(found, "", report["energy"]["joules"], report["energy"]["plus_minus"], report["wall_s"]["mean"])

    def test_device_price_applies_per_gpu(self):
        report, done = self.run_json(self.machine(IntelNvidia), "--device-price-per-hour", HOURLY, "--", "sleep", "0.1")
        found = report["operating"]
        self.assertEqual(found["devices"], 2)
        self.assertAlmostEqual(found["cost"] / (2 * report["wall_s"]["mean"] / HOUR * HOURLY), 1, places=9)
        self.assertEqual((found["cost_plus_minus"], found["gco2e"]), (None, None))

    def test_no_costs_shown_without_prices(self):
        machine = self.machine(Intel, 50)
        report, done = self.run_json(machine, "--", "true")
        self.assertIsNone(report["operating"])
        self.assertNotRegex(ipw(machine, "run", "--", "true").stderr, "cost|emissions|CO2")

    def test_unknown_energy_has_unknown_cost(self):
        machine = self.machine(Machine)
        report, done = self.run_json(machine, *OPTIONS, "--", "true")
        found = report["operating"]
        self.assertEqual([found[key] for key in ("cost", "cost_plus_minus", "gco2e", "gco2e_plus_minus")], [None] * 4)
        self.assertIn("cost and emissions unknown: the energy is", ipw(machine, "run", *OPTIONS, "--", "true").stderr)

    def test_report_states_prices_and_scope(self):
        done = ipw(self.machine(Intel, 50), "run", *OPTIONS, "--", "sleep", "0.1")
        self.assertRegex(done.stderr, r"cost [\d.]+( ± [\d.]+)?, emissions [\d.]+ ± [\d.]+ .?gCO2e; "
                                      r"at 0.36 per kWh, 1.8 per device hour, 400 gCO2e/kWh\n")
        self.assertIn("electricity at the devices, without cooling (PUE); emissions location-based, of electricity only",
                      done.stderr)

    def test_rejects_invalid_prices(self):
        for command in (("run", "--", "true"), ("profile",), ("compare", "a", "b"), ("estimate", "--model", "gpt2")):
            for option, value, words in (("--price-per-kwh", "-0.1", "must be between 0 and"),
                                         ("--price-per-kwh", "nan", "takes a number, not 'nan'"),
                                         ("--price-per-kwh", "inf", "takes a number, not 'inf'"),
                                         ("--price-per-kwh", "0.3EUR", "takes a number, not '0.3EUR'"),
                                         ("--gco2-per-kwh", "400000", "must be between 0 and 10000"),
                                         ("--device-price-per-hour", "-1", "must be between 0 and")):
                done = ipw(None, command[0], option, value, *command[1:])
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn(f"{option} {words}", done.stderr)


class ProfileCosts(ProfileTest, Costs):
    def operating(self, report):
        saved = self.run.summary()["ipw"]["operating"]
        self.assertEqual(report["operating"], saved)
        return saved

    def test_cost_of_run_is_energy_and_time(self):
        report = self.profile(*OPTIONS, machine=self.machine(IntelNvidia), scenario="normal:gap_ms=20")
        found, energy = self.operating(report), report["energy"]
        error = energy["plus_minus"] / energy["joules"]
        self.assertAlmostEqual(found["device_seconds"] / (2 * report["seconds"]), 1, places=9)
        self.check(found, "", energy["joules"], energy["plus_minus"], found["device_seconds"])
        self.assertAlmostEqual(report["electricity_cost"] / (energy["joules"] / KWH * PRICE), 1, places=9)
        for each, joules, count in (("query", "joules_per_query", report["completed"]),
                                    ("million_input_tokens", "joules_per_input_token", report["input_tokens"] / 1e6),
                                    ("million_output_tokens", "joules_per_output_token", report["output_tokens"] / 1e6)):
            one = report[joules] * (1e6 if "token" in joules else 1)
            self.check(found, "_per_" + each, one, error * one, found["device_seconds"] / count)

    def test_options_override_the_price_file(self):
        prices = self.on.put("/prices.json", json.dumps({"currency": "EUR", "electricity_per_kwh": 5,
                                                         "gco2_per_kwh": 30, "device_per_hour": 7}))
        report = self.profile("--prices", prices, "--price-per-kwh", PRICE, "--gco2-per-kwh", 0,
                              machine=self.machine(Intel, 50), scenario="normal:gap_ms=20")
        found = self.operating(report)
        self.assertEqual((found["price_per_kwh"], found["gco2_per_kwh"], found["device_price_per_hour"]), (PRICE, 0, 7))
        self.assertEqual((report["currency"], found["gco2e_per_query"]), ("EUR", 0))
        self.assertRegex(self.done.stderr, r"operating     [\d.]+ (± [\d.]+ )?EUR per query, .* EUR per million output tokens")

    def test_resumed_run_keeps_its_prices(self):
        machine = self.machine(Intel, 50)
        self.profile(*OPTIONS, "--max-queries", 2, machine=machine, scenario="normal:gap_ms=20")
        found = self.operating(self.profile("--resume", "--gco2-per-kwh", 30, machine=machine,
                                            scenario="normal:gap_ms=20"))
        self.assertEqual((found["price_per_kwh"], found["gco2_per_kwh"], found["device_price_per_hour"]),
                         (PRICE, 30, HOURLY))

    def test_costs_are_null_without_prices(self):
        report = self.profile(machine=self.machine(Intel, 50))
        known = {key for key, value in self.operating(report).items() if value is not None}
        self.assertEqual(known, {"device_seconds"})
        self.assertNotRegex(self.done.stderr, "operating|emissions|CO2")

    def test_unknown_energy_has_unknown_cost(self):
        report = self.profile(*OPTIONS, machine=self.machine(Machine))
        known = {key for key, value in self.operating(report).items() if value is not None}
        self.assertEqual(known, {"price_per_kwh", "gco2_per_kwh", "device_price_per_hour", "device_seconds"})


class CompareCosts(MachineTest, Costs):
    QUERIES = 30

    def run_of(self, name, factor=1.0, prices=None, seconds=None):
        root = self.machine(Machine).root
        queries = [query(i, joules=(10 + i % 7) * factor, latency=1 + i % 3, tokens=20 + i % 5)
                   for i in range(self.QUERIES)]
        whole = summary(queries)
        whole["ipw"]["seconds"] = seconds or sum(1 + i % 3 for i in range(self.QUERIES))
        whole["ipw"]["devices"] = [{"id": "gpu0", "in_total": True}, {"id": "gpu1", "in_total": True}]
        if prices:
            whole["ipw"]["operating"] = prices
        return write_run(root / name, queries, whole=whole)

    def compare(self, *arguments):
        self.done = ipw(None, "compare", *arguments, "--json")
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        return json.loads(self.done.stdout)["comparisons"][0]

    def test_prices_apply_to_both_runs(self):
        a, b = self.run_of("a"), self.run_of("b", 1.5, seconds=90)
        metrics = self.compare(a, b, *OPTIONS)["metrics"]
        tokens = sum(20 + i % 5 for i in range(self.QUERIES))
        joules = sum(10 + i % 7 for i in range(self.QUERIES))
        for side, factor, seconds in (("baseline", 1, 60), ("run", 1.5, 90)):
            energy = joules * factor / KWH
            cost = energy * PRICE + 2 * seconds / HOUR * HOURLY
            wanted = {"cost_per_query": cost / self.QUERIES, "cost_per_million_output_tokens": cost / tokens * 1e6,
                      "gco2e_per_query": energy * CARBON / self.QUERIES,
                      "gco2e_per_million_output_tokens": energy * CARBON / tokens * 1e6}
            for name, value in wanted.items():
                self.assertAlmostEqual(metrics[name][side]["value"] / value, 1, places=9, msg=f"{name} of {side}")
        self.assertEqual((metrics["cost_per_query"]["unit"], metrics["gco2e_per_query"]["unit"]), ("currency", "g"))
        self.assertAlmostEqual(metrics["gco2e_per_query"]["relative"], 0.5, places=9)
        self.assertEqual(metrics["gco2e_per_query"]["verdict"], "worse")

    def test_prices_do_not_change_other_verdicts(self):
        a, b = self.run_of("a"), self.run_of("b", 1.01)
        plain, priced = self.compare(a, b)["metrics"], self.compare(a, b, *OPTIONS)["metrics"]
        for name, row in plain.items():
            if re.match("cost|gco2e", name):
                self.assertEqual((row["baseline"]["value"], row["verdict"]), (None, "not known"))
            else:
                self.assertEqual(row, priced[name], name)
        # Emissions are proportional to energy, so their p-value is not smaller.
        self.assertGreaterEqual(priced["gco2e_per_query"]["p_holm"], priced["energy_per_query"]["p_holm"])

    def test_options_override_prices_of_run(self):
        own = {"price_per_kwh": 0.1, "gco2_per_kwh": 100, "device_price_per_hour": None}
        a, b = self.run_of("a", prices=own), self.run_of("b", prices={**own, "gco2_per_kwh": 200})
        found = self.compare(a, b)
        self.assertAlmostEqual(found["metrics"]["gco2e_per_query"]["relative"], 1, places=9)
        self.assertIn("different --gco2-per-kwh: 200, baseline 100; give one for both", texts_of(found))
        found = self.compare(a, b, "--gco2-per-kwh", 50)
        self.assertAlmostEqual(found["metrics"]["gco2e_per_query"]["relative"], 0, places=9)
        self.assertNotIn("gco2", " ".join(texts_of(found)))
        self.assertAlmostEqual(found["metrics"]["cost_per_query"]["relative"], 0, places=9)
        self.assertEqual(found["operating"], {"currency": None, "price_per_kwh": 0.1, "gco2_per_kwh": 50,
                                              "device_price_per_hour": None})

    def test_run_without_prices_has_unknown_cost(self):
        a, b = self.run_of("a", prices={"price_per_kwh": 0.1}), self.run_of("b")
        found = self.compare(a, b)
        self.assertIsNone(found["metrics"]["cost_per_query"]["run"]["value"])
        self.assertIn("only the baseline was saved with --price-per-kwh: give one for both", texts_of(found))

    def test_bound_on_cost(self):
        a, b = self.run_of("a"), self.run_of("b", 1.5)
        done = ipw(None, "compare", a, b, "--price-per-kwh", PRICE, "--fail-if", "cost_per_query > +5%")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"cost_per_query +0.000001283 ± .* 0.000001925 ± ")
        self.assertIn("operating cost and emissions at 0.36 per kWh; electricity at the devices, without cooling (PUE)\n",
                      done.stdout)

    def test_html_report_shows_costs(self):
        a, b = self.run_of("a"), self.run_of("b", 1.5)
        page = a.parent / "page.html"
        done = ipw(None, "compare", a, b, *OPTIONS, "--format", "html", "-o", page)
        if "assets" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = page.read_text()
        self.assertIn('"gco2e_per_query"', text)
        self.assertIn("Operating cost per query", text)


class EstimateCosts(EstimateTest, Costs):
    DEVICES = 2

    def test_cost_of_request_is_energy_and_time_of_all_devices(self):
        report = self.on("a100-sxm-80gb", "gpt2", "--tensor-parallel", self.DEVICES, "--batch", 4, *OPTIONS)
        found, joules = report["operating"], report["energy_j"]["total"]
        time = report["latency_s"] * self.DEVICES
        prompt, output = report["setting"]["prompt_tokens"], report["setting"]["output_tokens"]
        for each, count in (("query", 4), ("million_output_tokens", 4 * output / 1e6)):
            self.check(found, "_per_" + each, joules / count, None, time / count)
        prefill, count = report["request"]["phases"][0], 4 * prompt / 1e6  # prompt tokens: prefill only
        self.check(found, "_per_million_input_tokens", prefill["energy_j"]["total"] / count, None,
                   prefill["latency_s"] * self.DEVICES / count)
        for key in ("cost", "gco2e"):
            self.assertClose(found[f"{key}_per_million_input_tokens_plus_minus"],
                             prefill[f"{key}_per_million_tokens_plus_minus"])
        # The relative errors of time and energy are equal and correlated.
        error = (report["energy_j"]["plus_minus"] / KWH * PRICE
                 + report["latency_plus_minus"] * self.DEVICES / HOUR * HOURLY) / 4
        self.assertClose(found["cost_per_query_plus_minus"], error)
        for phase, count in zip(report["request"]["phases"], (prompt, output - 1)):
            per = 4 * count / 1e6
            self.check(phase, "_per_million_tokens", phase["energy_j"]["total"] / per, None,
                       phase["latency_s"] * self.DEVICES / per)

    def test_model_without_tokens_has_cost_per_query_only(self):
        found = self.on("a100-sxm-80gb", "resnet18", "--batch", 8, *OPTIONS)["operating"]
        self.assertIsNone(found["cost_per_million_output_tokens"])
        self.assertGreater(found["cost_per_query"], 0)

    def test_no_costs_shown_without_prices(self):
        self.assertIsNone(self.on("a100-sxm-80gb", "resnet18")["operating"])
        text = self.run_ipw("--model", "resnet18", "--hardware", "a100-sxm-80gb").stdout
        self.assertNotRegex(text, "cost|emissions|CO2")
        self.assertNotIn("cost_per_query", self.rows("resnet18", "--hardware", "a100-sxm-80gb")[0])

    def test_csv_has_cost_columns(self):
        rows = self.rows("gpt2", "--hardware", "a100-sxm-80gb", "--batch", "1,8", *OPTIONS)
        for row in rows:
            energy, time = float(row["energy_j"]), float(row["latency_s"])
            self.assertClose(float(row["cost_per_query"]),
                             (energy / KWH * PRICE + time / HOUR * HOURLY) / int(row["batch"]), 1e-6)
            self.assertClose(float(row["gco2e_per_million_output_tokens"]),
                             energy / KWH * CARBON / float(row["count"]) * 1e6, 1e-6)
        text = self.run_ipw("--model", "gpt2", "--hardware", "a100-sxm-80gb", "--batch", "1,8", *OPTIONS).stdout
        self.assertRegex(text, r"cost/Mtok +CO2e/Mtok")
        self.assertIn("at 0.36 per kWh, 1.8 per device hour, 400 gCO2e/kWh; electricity at the devices", text)

    def test_text_states_units_of_costs(self):
        text = self.run_ipw("--model", "llama-3.1-8b", "--hardware", "a100-sxm-80gb", *OPTIONS).stdout
        self.assertRegex(text, r"\n   cost +~[\d.]+( ± [\d.]+)? per request, ~[\d.]+( ± [\d.]+)? per million output tokens, "
                               r"~[\d.]+( ± [\d.]+)? per million prompt tokens \(prefill alone\)\n")
        self.assertRegex(text, r"\n   emissions +~[\d.]+ ± [\d.]+ .?gCO2e per request")


if __name__ == "__main__":
    main_parallel(jobs=2)
