#!/usr/bin/env python3
"""Cost of `ipw serve`: memory with 1,000 clients of the live view, and the time of a page of 100,000 runs relative to
1,000."""
import itertools
import os
import re
import resource
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["IPW"] = IPW = os.path.join(HERE, "..", "ipw")
os.environ["IPW_FAKES"] = HERE
with open(os.path.join(HERE, "..", "CMakeCache.txt"), encoding="utf-8") as cache:
    SOURCE = re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests/cli"))
from dashboards import Dashboard  # noqa: E402
from machines import Nvidia  # noqa: E402

CLIENTS, SAMPLES, PAGES = 1000, 5, 300
ADDRESSES = itertools.count(2)
QUERIES = ("runs", "runs?sort=energy_j&order=asc", "runs?model=m3&sort=energy_j")


def row(name, value, unit, bound):
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{'pass' if value <= bound else 'fail'}", flush=True)


def rss_mb(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def bench_live_clients(folder):
    """Each client reads events until all have received some."""
    machine = Nvidia("devices 8\npower * constant 300\ntick * 0.02")
    served = Dashboard("--runs", folder, machine=machine)
    clients = []
    try:
        for _ in range(CLIENTS):
            clients.append(socket.create_connection(("127.0.0.1", served.port), timeout=60))
            clients[-1].sendall(b"GET /api/v1/live/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for client in clients:
            got = b""
            while got.count(b"event: sample") < SAMPLES:
                got += client.recv(1 << 16)
        row(f"serve: resident memory with {CLIENTS} live clients", rss_mb(served.process.pid), "MB", 100)
    finally:
        for client in clients:
            client.close()
        served.close()
        machine.close()


def database(folder, count):
    path = os.path.join(folder, f"{count}.db")
    subprocess.run([IPW, "db", "init", "--db", f"sqlite:///{path}"], check=True, capture_output=True)
    with sqlite3.connect(path) as db:
        db.executemany(
            "INSERT INTO runs (id, name, kind, host, digest, bytes, format, pushed, began, model, hardware, joules, finished)"
            " VALUES (?, ?, 'profile', 'h', 'd', 1, 1, ?, ?, ?, 'H200', ?, 1)",
            ((f"{i:016x}", f"profile_{i}", i, 1.7e9 + i, f"m{i % 10}", (i * 7919) % 100003) for i in range(count)))
    return f"sqlite:///{path}"


def page_s(served, query):
    """Median of many requests, so that a scan for new runs in between does not count.  Each request comes from another
    address, because requests per address are rate-limited."""
    connection, times = served.connect(source=f"127.0.0.{next(ADDRESSES)}"), []
    for _ in range(PAGES):
        began = time.perf_counter()
        connection.request("GET", "/api/v1/" + query)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200 and len(body) > 10_000, (answer.status, body[:200])
        times.append(time.perf_counter() - began)
    connection.close()
    return statistics.median(times)


def bench_pages(folder):
    few, many = (Dashboard("--db", database(folder, count), "--no-live", scratch=folder) for count in (1_000, 100_000))
    try:
        for query in QUERIES:
            for served in (few, many):
                served.get(query)  # builds the sort order
            ratio = statistics.median(page_s(many, query) / page_s(few, query) for _ in range(3))
            row(f"serve: {query} of 100,000 runs, against 1,000", ratio, "ratio", 2)
    finally:
        few.close()
        many.close()


def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    folder = tempfile.mkdtemp(prefix="ipw-bench-serve-")
    try:
        bench_live_clients(folder)
        bench_pages(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
