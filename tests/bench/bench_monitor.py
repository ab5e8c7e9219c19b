#!/usr/bin/env python3
"""CPU time of a scrape of `ipw monitor` relative to Debian's node exporter, per 500 series, in the same run; and memory
growth over 10^4 scrapes."""
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ["IPW"] = os.path.join(HERE, "..", "ipw")
os.environ["IPW_FAKES"] = HERE
with open(os.path.join(HERE, "..", "CMakeCache.txt"), encoding="utf-8") as cache:
    SOURCE = re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests/cli"))
from machines import Nvidia  # noqa: E402
from monitors import Monitor  # noqa: E402

SERIES, SCRAPES, OTHERS_SCRAPES = 500, 10_000, 200
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def row(name, value, unit, bound):
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{'pass' if value <= bound else 'fail'}", flush=True)


def report(name, value, unit):
    """A figure without a bound."""
    print(f"for comparison: {name} {value:.4g} {unit}")


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def rss_mb(pid):
    with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def scrape(port, count):
    """Returns the number of samples in the last response."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, connection.makefile("rb") as stream:
        for _ in range(count):
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            length, chunked, body = 0, False, b""
            while (line := stream.readline().strip().lower()):
                length = int(line.split(b":")[1]) if line.startswith(b"content-length:") else length
                chunked |= line == b"transfer-encoding: chunked"
            while chunked and (size := int(stream.readline(), 16)):
                body += stream.read(size)
                stream.readline()
            if chunked:
                stream.readline()
            body = body if chunked else stream.read(length)
    return sum(not line.startswith(b"#") for line in body.splitlines())


def per_series(pid, port, count):
    """CPU seconds per scrape, scaled to SERIES samples."""
    before = cpu_s(pid)
    samples = scrape(port, count)
    return (cpu_s(pid) - before) / count * SERIES / samples, samples


def exporter_cost():
    unpacked = os.path.join(SOURCE, ".test-env/prometheus-node-exporter/usr/bin/prometheus-node-exporter")
    program = unpacked if os.path.exists(unpacked) else shutil.which("prometheus-node-exporter")
    if not program:
        return None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([program, f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        for _ in range(300):
            try:
                scrape(port, 5)
                break
            except ConnectionError:
                time.sleep(0.1)
        cost, _ = per_series(process.pid, port, OTHERS_SCRAPES)
        process.kill()
    return cost


def main():
    script = "devices 14\npower * constant 300\n"
    with Nvidia(script) as machine:
        monitor = Monitor(machine)
        monitor.wait_updates(3)
        pid = monitor.process.pid
        scrape(monitor.port, 100)
        before = rss_mb(pid)
        cost, samples = per_series(pid, monitor.port, SCRAPES)
        row(f"memory growth over {SCRAPES} scrapes of {samples} series", rss_mb(pid) - before, "MB", 1)
        monitor.end()
    other = exporter_cost()
    if other is None:
        print("bench_monitor: skipped: no prometheus-node-exporter to compare with")
        return
    row(f"CPU of a scrape of {SERIES} series, against node exporter", cost / other, "ratio", 1)
    report(f"CPU of a scrape of {SERIES} series", cost * 1e6, "us")


main()
