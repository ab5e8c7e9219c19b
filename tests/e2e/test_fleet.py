#!/usr/bin/env python3
# test: real time
"""The examples for a fleet, each validated by its own tool: Prometheus and promtool, systemd-analyze, Kubernetes'
schema."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "cli"), str(Path(__file__).resolve().parent),
                str(Path(__file__).resolve().parent.parent / "fakes")]
from inference_server import PIECES, Server as InferenceServer  # noqa: E402
from machines import IntelNvidia  # noqa: E402
from monitors import Monitor, Scrape  # noqa: E402
from program import IPW, MachineTest  # noqa: E402
from proxies import Proxy  # noqa: E402
from prometheus import PROMETHEUS, PROMTOOL, Prometheus  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RULES = ("ipw.rules.yml", "ipw.alerts.yml")


# What each server calls its output tokens, prompt tokens, completed requests and requests in flight, with its labels.
SERVERS = {
    "vllm": ("vllm:generation_tokens_total", "vllm:prompt_tokens_total", "vllm:request_success_total",
             "vllm:num_requests_running", 'model_name="m",engine="0"'),
    "sglang": ("sglang:generation_tokens_total", "sglang:prompt_tokens_total", "sglang:num_requests_total",
               "sglang:num_running_reqs", 'model_name="m"'),
    "llama.cpp": ("llamacpp:tokens_predicted_total", "llamacpp:prompt_tokens_total", None,
                  "llamacpp:requests_processing", ""),
    "tgi": ("tgi_request_generated_tokens", "tgi_request_input_length", "tgi_request_success", "tgi_batch_current_size",
            ""),
}


class Page(http.server.ThreadingHTTPServer):
    """A page of metrics on a loopback address of its own, which is a node of its own."""

    def __init__(self, address, text):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(text().encode())

            def log_message(self, *_):
                pass

        super().__init__((address, 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def target(self):
        return "{}:{}".format(*self.server_address)

    def close(self):
        self.shutdown()
        self.server_close()


def server_page(kind):
    """The metrics of a server with ten more output tokens, 100 more prompt tokens and one more request per scrape."""
    scrapes = 0

    def sample(name, value, labels, counter):
        if name in ("tgi_request_generated_tokens", "tgi_request_input_length"):
            return (f'# TYPE {name} histogram\n{name}_bucket{{le="+Inf"}} {scrapes}\n{name}_sum {value}\n'
                    f"{name}_count {scrapes}\n")
        return f"# TYPE {name} {counter}\n{name}{{{labels}}} {value}\n"

    def text():
        nonlocal scrapes
        scrapes += 1
        *names, labels = SERVERS[kind]
        values = (10 * scrapes, 100 * scrapes, scrapes, 2)
        return "".join(sample(name, value, labels, "gauge" if value == 2 and name == names[3] else "counter")
                       for name, value in zip(names, values) if name)

    return text


def expressions(text):
    """Expressions of a rules file by name."""
    import yaml
    return {rule.get("record", rule.get("alert")): rule["expr"]
            for group in yaml.safe_load(text)["groups"] for rule in group["rules"]}


@unittest.skipUnless(PROMETHEUS and PROMTOOL, "Prometheus is not installed: `make test` unpacks Debian's")
class PrometheusExamples(MachineTest):
    def setUp(self):
        try:
            import yaml  # noqa: F401
        except ImportError:
            self.skipTest("no PyYAML; `tools/setup test` installs it")

    def files(self, targets):
        """The example files with an interval of one second instead of 15, and these targets by job."""
        import yaml
        texts = {name: (EXAMPLES / "prometheus" / name).read_text() for name in ("prometheus.yml", *RULES)}
        texts = {name: text.replace("15s", "1s") for name, text in texts.items()}
        config = yaml.safe_load(texts["prometheus.yml"])
        self.assertEqual({job["job_name"] for job in config["scrape_configs"]}, set(targets))
        for job in config["scrape_configs"]:
            job["static_configs"] = [{"targets": targets[job["job_name"]]}]
        return {**texts, "prometheus.yml": yaml.safe_dump(config)}

    def page(self, address, text):
        page = Page(address, text)
        self.addCleanup(page.close)
        return page.target

    def start_proxy(self, machine):
        """The target of a proxy that has requests all the time."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        upstream = InferenceServer()
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        proxy = Proxy(upstream.url("normal:gap_ms=20"), folder.name, machine=machine)
        self.addCleanup(proxy.close)
        ends = threading.Event()
        body = json.dumps({"model": "tiny-1b", "stream": True, "stream_options": {"include_usage": True},
                           "messages": [{"role": "user", "content": "x"}]}).encode()

        def ask():
            while not ends.wait(0.05):
                with urllib.request.urlopen(urllib.request.Request(
                        f"http://127.0.0.1:{proxy.port}/v1/chat/completions", body,
                        {"Content-Type": "application/json"}), timeout=60) as answer:
                    answer.read()

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        self.addCleanup(asking.join)
        self.addCleanup(ends.set)
        return f"127.0.0.1:{proxy.port}"

    def test_promtool_accepts_examples(self):
        for kind, name in (("config", "prometheus.yml"), ("rules", RULES[0]), ("rules", RULES[1])):
            done = subprocess.run([PROMTOOL, "check", kind, EXAMPLES / "prometheus" / name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_expression_has_values(self):
        """Expressions of rules, alerts and the dashboard are valid, and have values if there is data."""
        machine = self.machine(IntelNvidia)
        monitor = Monitor(machine, "--interval", "0.5")
        self.addCleanup(monitor.close)
        nodes = {kind: f"127.0.0.{2 + i}" for i, kind in enumerate(SERVERS)}
        prometheus = Prometheus(self.files({
            "ipw": [self.page(address, lambda: monitor.scrape().text) for address in nodes.values()],
            "ipw-proxy": [self.start_proxy(machine)],
            **{kind: [self.page(address, server_page(kind))] for kind, address in nodes.items()}}))
        self.addCleanup(prometheus.close)
        rules = expressions((EXAMPLES / "prometheus" / RULES[0]).read_text())
        self.assertGreater(len(rules), 5)
        for name in rules:  # recorded by Prometheus itself
            self.assertTrue(prometheus.wait(name), name)
        # 65 W of CPUs and 600 W of GPUs, on each node.
        watts = prometheus.wait("node:ipw_watts:rate1m > 300")  # over a minute, of which only seconds have passed
        self.assertTrue(all(value < 1000 for value in watts.values()), watts)
        for kind, address in nodes.items():
            self.check_server(prometheus, kind, f'{{node="{address}"}}')
        energy = prometheus.query("model:ipw_proxy_joules_per_request:rate5m / model:ipw_proxy_joules_per_output_token:rate5m")
        self.assertEqual([dict(labels)["model"] for labels in energy], ["tiny-1b"])
        self.assertAlmostEqual(next(iter(energy.values())), len(PIECES), delta=0.2 * len(PIECES))
        for name, expression in expressions((EXAMPLES / "prometheus" / RULES[1]).read_text()).items():
            prometheus.query(expression)  # fails on a PromQL error
        quiet = {"Sensors without readings", "Processes by attributed power", "Control groups by attributed power"}
        dashboard = json.loads((EXAMPLES / "grafana/ipw-nodes.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                found = prometheus.query(target["expr"].replace("$node", ".*"))
                self.assertTrue(found or panel["title"] in quiet, (panel["title"], target["expr"]))
        variable = re.fullmatch(r"label_values\((\w+), (\w+)\)", dashboard["templating"]["list"][1]["query"]["query"])
        self.assertTrue(all(dict(labels)[variable[2]] for labels in prometheus.query(variable[1])))

    def check_server(self, prometheus, kind, node):
        """Ten output tokens and 100 prompt tokens per request; llama.cpp's server does not count requests."""
        per_token = f"node:ipw_joules_per_output_token:rate5m{node}"
        found = prometheus.wait(f"node:ipw_joules_per_token:rate5m{node} / {per_token}")
        self.assertAlmostEqual(next(iter(found.values())), 10 / 110, delta=0.01, msg=kind)
        if SERVERS[kind][2]:
            found = prometheus.wait(f"{per_token} / node:ipw_joules_per_request:rate5m{node}")
            self.assertAlmostEqual(next(iter(found.values())), 0.1, delta=0.02, msg=kind)
        else:
            self.assertFalse(prometheus.query(f"node:ipw_joules_per_request:rate5m{node}"))

    def test_series_of_examples_exist(self):
        """Every ipw series in the examples is one of the monitor or of the proxy."""
        known = set(re.findall(r'FAMILY\(\w+, (\w+), "(\w+)"', (EXAMPLES.parent / "src/monitor/families.def").read_text()))
        proxy = (EXAMPLES.parent / "src/proxy/status.c").read_text()
        for kind, before in (("COUNTER", r"METRIC_COUNTER, |add_per_model\(status, to, |REQUESTS = \{"),
                             ("GAUGE", "METRIC_GAUGE, "), ("HISTOGRAM", r"add_histogram\(to, ")):
            known |= {(kind, name) for name in re.findall(f'(?:{before})"(ipw_proxy_\\w+)"', proxy)}
        known = {name + {"COUNTER": "_total", "HISTOGRAM": "_bucket"}.get(kind, "") for kind, name in known}
        recorded = set(expressions((EXAMPLES / "prometheus" / RULES[0]).read_text()))
        texts = [(EXAMPLES / "prometheus" / name).read_text() for name in RULES]
        texts.append((EXAMPLES / "grafana/ipw-nodes.json").read_text())
        named = {name for text in texts for name in re.findall(r"(?<![\w:])ipw_\w+", text)}
        self.assertGreater(len(named), 10)
        self.assertEqual(named - known, set())
        used = {name for text in texts for name in re.findall(r"\b(?:node|fleet|model):ipw_\w+:\w+", text)}
        self.assertEqual(used - recorded, set())


class Deployments(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze here")
    def test_systemd_units(self):
        with tempfile.TemporaryDirectory() as folder:
            for unit in (EXAMPLES / "systemd").glob("*.service"):
                text = re.sub(r"/usr/local/s?bin/(ipw\S*)", lambda found: str(Path(IPW).resolve().parent / found[1]),
                              unit.read_text())
                self.assertNotIn("/usr/local", text)
                (Path(folder) / unit.name).write_text(re.sub(r"^Documentation=.*\n", "", text, flags=re.M))
            units = sorted(Path(folder).iterdir())
            self.assertEqual(len(units), 2)
            done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=60)
            ours = [line for line in (done.stdout + done.stderr).splitlines() if "ipw-" in line]
            self.assertEqual((done.returncode, ours), (0, []))

    def test_kubernetes_manifests(self):
        try:
            import kubernetes_validate
            import yaml
        except ImportError as missing:
            self.skipTest(f"{missing}; `tools/setup test` installs it")
        documents = list(yaml.safe_load_all((EXAMPLES / "kubernetes/daemonset.yaml").read_text()))
        self.assertEqual([document["kind"] for document in documents], ["Namespace", "DaemonSet"])
        for document in documents:
            kubernetes_validate.validate(document, "1.31", strict=True)
            broken = json.loads(json.dumps(document))
            broken["metadata"]["labelz"] = {}
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(broken, "1.31", strict=True)
        command = documents[1]["spec"]["template"]["spec"]["containers"][0]["command"]
        helped = subprocess.run([IPW, *command[1:2], "--help"], capture_output=True, text=True).stdout
        for option in command:
            if option.startswith("--"):
                self.assertIn(option, helped)


class SlurmScripts(MachineTest):
    """Prolog and epilog without slurmd; tests/e2e/test_slurm.py runs them by slurmd."""

    def run_script(self, name, folder, monitor, job):
        environment = {**os.environ, "SLURM_JOB_ID": str(job), "SLURM_JOB_USER": "somebody",
                       "IPW_METRICS_URL": f"{monitor}/metrics", "IPW_SLURM_STATE": f"{folder}/state",
                       "IPW_SLURM_LOG": f"{folder}/jobs.jsonl"}
        done = subprocess.run([EXAMPLES / "slurm" / name], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_energy_of_a_job(self):
        machine = self.machine(IntelNvidia)
        monitor = Monitor(machine, "--interval", "0.2")
        self.addCleanup(monitor.close)
        folder = machine.root
        before = monitor.wait_updates(2)
        self.run_script("ipw-prolog.sh", folder, monitor.url, 7)
        start = monitor.scrape()
        until = time.monotonic() + 60
        while sum(monitor.scrape().find("ipw_node_joules_total")) < sum(start.find("ipw_node_joules_total")) + 300:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.1)
        end = monitor.scrape()
        self.run_script("ipw-epilog.sh", folder, monitor.url, 7)
        after = monitor.scrape()
        line = json.loads((folder / "jobs.jsonl").read_text())
        self.assertEqual((line["job_id"], line["user"]), ("7", "somebody"))
        total = {name: sum(scrape.find("ipw_node_joules_total"))
                 for name, scrape in (("before", before), ("start", start), ("end", end), ("after", after))}
        self.assertGreaterEqual(line["node_joules"], total["end"] - total["start"] - 0.01)
        self.assertLessEqual(line["node_joules"], total["after"] - total["before"] + 0.01)
        self.assertIsNone(line["active_joules"])  # this machine has no cgroup of the job
        self.assertFalse(list((folder / "state").iterdir()))

    def test_job_runs_without_monitor(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_script("ipw-prolog.sh", folder, "http://127.0.0.1:1", 8)
            self.run_script("ipw-epilog.sh", folder, "http://127.0.0.1:1", 8)
            self.assertFalse((Path(folder) / "jobs.jsonl").exists())

    def test_restarted_monitor_gives_no_energy(self):
        """The difference of restarted counters would be wrong; another job's cgroup is present."""
        with tempfile.TemporaryDirectory() as folder:
            pages = iter([self.page(100, 500, 9), self.page(200, 40, 9), self.page(100, 0, 11), self.page(100, 50, 11)])

            class Page(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(next(pages).encode())

                def log_message(self, *_):
                    pass

            server = http.server.HTTPServer(("127.0.0.1", 0), Page)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
            url = f"http://127.0.0.1:{server.server_port}"
            for job in (9, 11):
                self.run_script("ipw-prolog.sh", folder, url, job)
                self.run_script("ipw-epilog.sh", folder, url, job)
            lines = [json.loads(line) for line in (Path(folder) / "jobs.jsonl").read_text().splitlines()]
            self.assertIsNone(lines[0]["node_joules"])
            self.assertIsNone(lines[0]["active_joules"])
            self.assertEqual((lines[1]["node_joules"], lines[1]["active_joules"]), (50, 5))

    def page(self, began, joules, job):
        text = (f'ipw_node_joules_total{{method="counter"}} {joules}\n'
                f'ipw_cgroup_cpu_joules_total{{cgroup="/slurm/job_{job}/step_0"}} {joules / 10}\n'
                f'ipw_cgroup_cpu_joules_total{{cgroup="/slurm/job_{job}1/step_0"}} 77{joules}\n'
                f"ipw_monitor_start_time_seconds {began}\n")
        Scrape(text)  # in the format of the monitor
        return text


if __name__ == "__main__":
    unittest.main(verbosity=2)
