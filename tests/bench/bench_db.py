#!/usr/bin/env python3
"""Time of `ipw db push` of a run of 10^5 queries relative to `psql \\copy` of the same rows into the same tables, and
of a list of 10^5 runs relative to one of 10^3."""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
IPW = os.path.join(HERE, "..", "ipw")
QUERIES, ROUNDS = 100_000, 3
TABLES = ("files", "queries", "runs")
with open(os.path.join(HERE, "..", "CMakeCache.txt"), encoding="utf-8") as cache:
    SOURCE = re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)[1]
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(SOURCE, "tests/cli"), os.path.join(SOURCE, "tests/e2e")]
from postgres import Postgres  # noqa: E402
from rundirs import query, summary  # noqa: E402


def row(name, value, unit, bound):
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{'pass' if value <= bound else 'fail'}", flush=True)


def make_run(path):
    os.makedirs(path)
    with open(os.path.join(path, "records.jsonl"), "w", encoding="utf-8") as file:
        file.write('{"kind":"run","format":1,"start":1,"started_at":1700000000.0}\n')
        for i in range(QUERIES):
            file.write(json.dumps(query(i, joules=(10 + i % 1009) / 3, correct=i % 3 > 0), separators=(",", ":")) + "\n")
    with open(os.path.join(path, "summary.json"), "w", encoding="utf-8") as file:
        json.dump({**summary([]), "total_queries": QUERIES}, file)


def seconds(*words):
    begin = time.monotonic()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    return time.monotonic() - begin


def bench_push(server, folder, url):
    run = os.path.join(folder, "run")
    make_run(run)
    psql = ["psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port), "-U",
            "postgres", "-d", "bench"]
    pushed, copied = [], []
    for _ in range(ROUNDS):
        server.psql("TRUNCATE ipw.runs, ipw.queries, ipw.files", "bench")
        pushed.append(seconds(IPW, "db", "push", "--db", url, run))
        for table in TABLES:
            server.psql(f"\\copy ipw.{table} TO {folder}/{table}.copy", "bench")
        server.psql("TRUNCATE ipw.runs, ipw.queries, ipw.files", "bench")
        copied.append(seconds(*psql, *(word for table in TABLES
                                       for word in ("-c", f"\\copy ipw.{table} FROM {folder}/{table}.copy"))))
    push, copy = statistics.median(pushed), statistics.median(copied)
    print(f"for comparison: ipw db push of 10^5 queries {push:.3g} s, psql \\copy of the same rows {copy:.3g} s", flush=True)
    row("ipw db push of 10^5 queries, against psql \\copy of the same rows", push / copy, "ratio", 2)


def bench_list(server, url):
    spent = []
    for count in 1_000, 100_000:
        server.psql("TRUNCATE ipw.runs, ipw.queries, ipw.files; INSERT INTO ipw.runs (id, name, kind, host, digest, bytes, "
                    "pushed, began, model, joules) SELECT lpad(to_hex(i), 16, '0'), 'run' || i, 'profile', "
                    f"'node' || i % 50, '0', 1, i, i, 'model' || i % 20, i FROM generate_series(1, {count}) i; "
                    "ANALYZE ipw.runs", "bench")
        list_once = (IPW, "db", "list", "--db", url, "--host", "node7", "--limit", "50", "--json")
        spent.append(statistics.median(seconds(*list_once) for _ in range(9)))
    row("ipw db list of 50 runs out of 10^5, against out of 10^3", spent[1] / spent[0], "ratio", 2)


def main():
    try:
        server = Postgres()
    except unittest.SkipTest as reason:
        print("bench_db: skipped:", reason)
        return
    try:
        url = server.create("bench")
        subprocess.run([IPW, "db", "init", "-q", url], check=True)
        with tempfile.TemporaryDirectory(prefix="ipw-bench-") as folder:
            bench_push(server, folder, url)
        bench_list(server, url)
    finally:
        server.release()


main()
