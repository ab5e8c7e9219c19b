#!/usr/bin/env python3
"""The HTML report of 10^5 queries: time until it is interactive in Chromium, file size, and CPU time relative to
reading the run."""
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
IPW = os.path.join(HERE, "..", "ipw")
QUERIES, ROUNDS = 100_000, 5
with open(os.path.join(HERE, "..", "CMakeCache.txt"), encoding="utf-8") as cache:
    SOURCE = re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)[1]


def row(name, value, unit, bound):
    verdict = "pass" if value <= bound else "fail"
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{verdict}")


def report(name, value, unit):
    """A figure without a bound."""
    print(f"for comparison: {name} {value:.4g} {unit}")


def cpu_s(*words):
    """CPU seconds of ipw; wall time depends too much on other load."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([IPW, *words], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print("bench_report: skipped:", done.stderr.strip())
        sys.exit(0)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def load_and_sort_s(browser, page):
    """Seconds until the page is drawn, and until the table of all queries is sorted after a key press."""
    opened = browser.open(page)
    browser.run("document.querySelector('#queries thead th:nth-child(4) button').focus()")
    began = time.monotonic()
    browser.key("Enter")
    return opened, time.monotonic() - began


def main():
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(SOURCE, "tests/e2e"))
    from browser import Browser, chromium
    from synthetic_run import make_run
    with tempfile.TemporaryDirectory(prefix="ipw-bench-") as folder:
        make_run(folder, QUERIES, concurrency=32)
        reading = cpu_s("analyze", folder, "--json")
        row("ipw report of 10^5 queries, against ipw analyze", cpu_s("report", folder) / reading, "ratio", 2)
        page = os.path.join(folder, "report.html")
        row("report of 10^5 queries, size", os.path.getsize(page) / 1e6, "MB", 5)
        if not chromium():
            print("bench_report: opening the page is skipped: no Chromium here (Debian: chromium-headless-shell)")
            return
        few = os.path.join(folder, "few")
        make_run(few, QUERIES // 100, concurrency=32)
        cpu_s("report", few)
        with Browser() as browser:
            rounds = [(*load_and_sort_s(browser, page), *load_and_sort_s(browser, os.path.join(few, "report.html")))
                      for _ in range(ROUNDS)]
        opened, sorted_s, few_opened, few_sorted = (statistics.median(times) for times in zip(*rounds))
        report("report of 10^5 queries, time to interactive", opened, "s")
        row("the same, against 10^3 queries", opened / few_opened, "ratio", 5)
        report("report of 10^5 queries, sorting the table", sorted_s, "s")
        row("the same, against 10^3 queries", sorted_s / few_sorted, "ratio", 20)


main()
