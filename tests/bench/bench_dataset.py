#!/usr/bin/env python3
"""The cost of a dataset grows linearly with its number of columns, not quadratically."""
import os
import subprocess
import sys
import tempfile

IPW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ipw")
FEW, MANY, ROWS, ROUNDS = 5_000, 50_000, 4, 3


def write_rows(path, columns):
    with open(path, "w", encoding="utf-8") as file:
        file.write("question,answer," + ",".join(f"column{i}" for i in range(columns)) + "\n")
        for i in range(ROWS):
            file.write(f"{i}+1?,{i + 1}" + f",value{i}" * columns + "\n")


def cost(path, runs):
    """CPU seconds of a run over all rows, from the file to the Arrow dataset."""
    words = ["--client", "null", "--model", "m", "--idle", "0", "--warmup-queries", "0", "--quiet",
             "--overwrite", "--name", "run", "--output-dir", runs]
    with subprocess.Popen([IPW, "profile", "--dataset", path, *words], stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print("bench_dataset: skipped:", said.strip())
        sys.exit(0)
    return usage.ru_utime + usage.ru_stime


def main():
    with tempfile.TemporaryDirectory(prefix="ipw-bench-") as folder:
        files = {columns: os.path.join(folder, f"{columns}.csv") for columns in (FEW, MANY)}
        for columns, path in files.items():
            write_rows(path, columns)
        spent = {columns: [] for columns in files}
        for _ in range(ROUNDS):  # interleaved: a busy machine slows both equally
            for columns, path in files.items():
                spent[columns].append(cost(path, os.path.join(folder, "runs")))
        ratio = sorted(spent[MANY])[ROUNDS // 2] / sorted(spent[FEW])[ROUNDS // 2]
        print(f"ipw profile of a CSV with ten times the columns\t{ratio:.4g}\tratio\t<= 15\t"
              f"{'pass' if ratio <= 15 else 'fail'}")


if __name__ == "__main__":
    main()
