#!/usr/bin/env python3
"""CPU time of `ipw export` of 10^6 records relative to copying the bytes that it reads and writes (it also parses and
formats them, so the ratio is far above 1: the bound detects regressions), its peak memory and scaling; and CPU time of
`ipw compare` of two runs of 10^5 relative to reading them."""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
IPW = os.path.join(HERE, "..", "ipw")
MANY, FEW, DIFFERENT, ROUNDS = 1_000_000, 100_000, 1009, 3
with open(os.path.join(HERE, "..", "CMakeCache.txt"), encoding="utf-8") as cache:
    SOURCE = re.search("^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)[1]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests/cli"))


def row(name, value, unit, bound):
    print(f"{name}\t{value:.4g}\t{unit}\t<= {bound:g}\t{'pass' if value <= bound else 'fail'}", flush=True)


def make_run(path, count, scale=1.0):
    """Writes the journal of a finished run; records differ only in their names and questions."""
    from rundirs import query, summary
    lines = [json.dumps(query(0, joules=scale * (10 + i % 37), latency=1 + i % 11 / 10, tokens=20 + i % 101,
                              correct=i % 3 > 0), separators=(",", ":")) for i in range(DIFFERENT)]
    os.makedirs(path)
    with open(os.path.join(path, "records.jsonl"), "w", encoding="utf-8") as file:
        file.write('{"kind":"run","format":1,"start":1,"started_at":1700000000.0}\n')
        for i in range(count):
            file.write(lines[i % DIFFERENT].replace("q000000", f"q{i:06d}").replace(
                '"question 0"', f'"question {i}"').replace('"index":0', f'"index":{i}') + "\n")
    with open(os.path.join(path, "summary.json"), "w", encoding="utf-8") as file:
        json.dump({**summary([]), "total_queries": count}, file)


def cost(*words):
    """CPU seconds and peak MB; wall time depends too much on other load."""
    with subprocess.Popen([*words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print("bench_export: skipped:", said.strip())
        sys.exit(0)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def copy_s(folder, *paths):
    """CPU seconds of copying files."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    copy = os.path.join(folder, "copy")
    with open(copy, "wb") as file:
        subprocess.run(["cat", *paths], stdout=file, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.unlink(copy)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    with tempfile.TemporaryDirectory(prefix="ipw-bench-") as folder:
        if shutil.disk_usage(folder).free < 8e9:
            print("bench_export: skipped: 8 GB of disk are needed")
            return
        many, few, other = (os.path.join(folder, name) for name in ("many", "few", "other"))
        make_run(many, MANY)
        make_run(few, FEW)
        make_run(other, FEW, 1.1)
        for name, bound in (("jsonl", 60), ("csv", 100), ("sqlite", 100)):
            out = os.path.join(folder, "out." + name)
            spent, peak_mb = cost(IPW, "export", many, "--to", name, "-o", out)
            copied = sorted(copy_s(folder, os.path.join(many, "records.jsonl"), out) for _ in range(ROUNDS))[ROUNDS // 2]
            print(f"for comparison: ipw export of 10^6 records to {name}, CPU {spent:.4g} s", flush=True)
            os.unlink(out)
            row(f"ipw export of 10^6 records to {name}, against copying what is read and written",
                spent / copied, "ratio", bound)
            row(f"ipw export of 10^6 records to {name}, peak memory", peak_mb, "MB", 64)
            tenth = []
            for i in range(ROUNDS):  # each into its own file: a database keeps the runs that it has
                tenth.append(cost(IPW, "export", few, "--to", name, "-o", f"{out}.{i}")[0])
                os.unlink(f"{out}.{i}")
            tenth.sort()
            row(f"ipw export to {name} for ten times the records", spent / tenth[ROUNDS // 2], "ratio", 15)
        reading = sorted(sum(cost(IPW, "analyze", run, "--analysis", "latency", "--json")[0]
                             for run in (few, other)) for _ in range(ROUNDS))[ROUNDS // 2]
        comparing = sorted(cost(IPW, "compare", few, other, "--json")[0] for _ in range(ROUNDS))[ROUNDS // 2]
        row("ipw compare of two runs of 10^5, against reading them", comparing / reading, "ratio", 4)


if __name__ == "__main__":
    main()
