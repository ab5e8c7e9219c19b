#!/usr/bin/env python3
"""CPU time of sampling one GPU, against a bare loop that makes the same NVML calls, and the error of the energy of each
minute, with a fake NVML whose calls cost as much as on an H200.

Programs run concurrently, after those whose CPU time is measured."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime

HERE = os.path.dirname(os.path.abspath(__file__))
IPW = os.path.join(HERE, "..", "ipw")
BARE = os.path.join(HERE, "bare_nvml")
# Microseconds of CPU per call, as examples/nvml_costs.py measured them (docs/measurements.md).
COSTS = ("nvmlDeviceGetTotalEnergyConsumption=5300,field=43,nvmlDeviceGetSamples=646,nvmlDeviceGetMemoryInfo_v2=60,"
         "nvmlDeviceGetProcessUtilization=1900,nvmlGpmSampleGet=160,*=29")
# Steady-state cost of a long-running program: after the counter's reading at 32 s, over two of its periods.
START_S, WATCHED_S, ENERGY_S = 33, 60, 70


def row(name, value, unit, bound):
    verdict = "pass" if value <= bound else "fail"
    print(f"{name}\t{value:.3g}\t{unit}\t<= {bound:g}\t{verdict}", flush=True)


class Program:
    def __init__(self, folder, name, power, *words, program=IPW):
        self.out, self.calls = (os.path.join(folder, f"{name}.{kind}") for kind in ("out", "calls"))
        script = os.path.join(folder, f"{name}.nvml")
        with open(script, "w") as file:
            file.write(f"power 0 {power}\nprocess 0 1 1e9 50\nfail field:186:2 0 3\n")  # an H200 has the memory's power as a mean only
        env = dict(os.environ, IPW_NVML=os.path.join(HERE, "libfake_nvml.so"), IPW_FAKE_NVML=script,
                   IPW_FAKE_NVML_COSTS=COSTS, IPW_FAKE_NVML_CALLS=self.calls)
        env.pop("CUDA_VISIBLE_DEVICES", None)
        with open(self.out, "w") as out:
            self.process = subprocess.Popen([program, *words], env=env, stdout=out, stderr=subprocess.DEVNULL)

    def cpu_s(self):
        tasks = f"/proc/{self.process.pid}/task"
        return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) / 1e9

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def rows(self):
        """(seconds since the library was loaded, joules since the start)"""
        with open(self.calls) as file:
            zero = float(dict(line.split() for line in file)["zero"])
        rows = []
        for line in open(self.out):
            reading = json.loads(line)
            at = datetime.fromisoformat(reading["time"].replace("Z", "+00:00")).timestamp() - zero
            gpu = next(device for device in reading["devices"] if device["id"] == "gpu0")
            rows.append((at, gpu["energy_since_start"]["joules"]))
        return rows


def square_wave(low, high, period):
    def joules(t):
        whole, inside = t // period * period / 2, min(t % period, period / 2)
        return low * t + (high - low) * (whole + inside)
    return f"square {low} {high} {period}", joules


def staircase(count, length, first, last):
    """Power in equal steps from `first` to `last`."""
    watts = [first + (last - first) * i / (count - 1) for i in range(count)]

    def joules(t):
        return sum(w * min(max(t - i * length, 0), length if i + 1 < count else t) for i, w in enumerate(watts))
    return "steps " + " ".join(f"{i * length}:{w:.3f}" for i, w in enumerate(watts)), joules


SHAPES = {
    "constant": ("constant 300", lambda t: 300 * t),
    "square of 30 ms": square_wave(80, 690, 0.03),
    "square of 100 ms": square_wave(80, 690, 0.1),
    "square of 1.7 s": square_wave(80, 690, 1.7),
    "square of 40 s": square_wave(80, 690, 40),
    "ramp": staircase(30, 3, 80, 690),
}


def worst_minute_error_pct(rows, joules):
    worst = 0
    for i, (start, before) in enumerate(rows):
        for end, after in rows[i:]:
            if 59 <= end - start <= 61:
                worst = max(worst, abs((after - before) / (joules(end) - joules(start)) - 1))
    if not worst and len(rows) < 60:
        sys.exit("no minute of rows")
    return 100 * worst


def main():
    with tempfile.TemporaryDirectory() as folder:
        load = SHAPES["square of 1.7 s"][0]
        bare = {name: Program(folder, f"bare-{name}", load, interval, program=BARE)
                for name, interval in (("10 Hz", "0.1"), ("1 Hz", "1"))}
        costs = [(name, against, bound, Program(folder, name.replace(" ", "-"), load, *words))
                 for name, against, bound, words in (
            ("ipw energy at 10 Hz", "10 Hz", 0.6, ("energy", "-i", "0.1", "--format", "csv")),
            ("ipw energy at 1 Hz", "1 Hz", 2, ("energy", "-i", "1", "--format", "csv")),
            ("ipw energy at 0.2 Hz", "1 Hz", 1.6, ("energy", "-i", "5", "--format", "csv")),
            ("ipw monitor at 10 Hz", "10 Hz", 0.6, ("monitor", "--listen", "127.0.0.1:0", "--interval", "0.1")),
            ("ipw monitor at 1 Hz", "1 Hz", 2, ("monitor", "--listen", "127.0.0.1:0")),
            ("ipw run", "10 Hz", 0.4, ("run", "--", "sleep", str(START_S + WATCHED_S + 5))))]
        programs = [*bare.values(), *(program for *_, program in costs)]
        time.sleep(START_S)
        before = {program: program.cpu_s() for program in programs}
        time.sleep(WATCHED_S)
        spent = {program: program.cpu_s() - before[program] for program in programs}
        for name, against, bound, program in costs:
            print(f"for comparison: {name}, one H200: CPU {100 * spent[program] / WATCHED_S:.3g} % of a core", flush=True)
            row(f"{name}, one H200: CPU over that of the bare calls at {against}", spent[program] / spent[bare[against]],
                "ratio", bound)
        for program in programs:
            program.end()
        energies = [(name, joules, Program(folder, name.replace(" ", "-"), power, "energy", "-i", "1", "--json"))
                    for name, (power, joules) in SHAPES.items()]
        time.sleep(ENERGY_S)
        for name, joules, program in energies:
            program.end()
            row(f"energy of a minute, {name}: largest error", worst_minute_error_pct(program.rows(), joules), "%", 0.5)


main()
