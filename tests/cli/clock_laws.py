"""Simulated sweeps over GPU clocks whose true power and time are known, and the scores of what `ipw optimize` recommends for
them.  Used by test_optimize_laws.py and research/simulate-optimize.py."""

import csv
import json
import math
import random
import statistics
import subprocess
from dataclasses import dataclass, field

FMAX = 1980
STEP_AT, STEP, CAP = 0.6, 1.35, 0.85  # of fmax


def voltage(floor):
    """P(x): idle, and what rises with x and with the square of a voltage that does not fall below that at `floor`."""
    def draw(rng):
        idle, linear, cubic = rng.uniform(25, 80), rng.uniform(0, 60), rng.uniform(60, 250)
        low = floor(rng)
        return lambda x: idle + linear * x + cubic * x * max(low, x) ** 2
    return draw


CUBIC = voltage(lambda rng: 0)
FLOOR = voltage(lambda rng: rng.uniform(0.6, 0.82))
EITHER = voltage(lambda rng: rng.choice((0, 0, 0.6, 0.7, 0.8)))


def knee(rng):
    at = rng.uniform(1.05, 1.8)
    return lambda u: max(1, u / at)


def linear(rng):
    share = rng.uniform(0.3, 1)
    return lambda u: 1 - share + share * u


def root(rng):
    exponent = rng.uniform(0.25, 1)
    return lambda u: u ** exponent


def smooth_knee(rng):
    at, norm = rng.uniform(1.05, 1.8), rng.uniform(2, 6)
    return lambda u: (1 + (u / at) ** norm) ** (1 / norm)


def any_of(*laws):
    return lambda rng: rng.choice(laws)(rng)


def both(power, time):
    return lambda rng: (power(rng), time(rng))


def throttled(power, time):
    """A card that does not exceed CAP whatever clock it is set to."""
    def draw(rng):
        watts, seconds = power(rng), time(rng)
        return lambda x: watts(min(x, CAP)), lambda u: seconds(max(u, 1 / CAP))
    return draw


def stepped(time):
    def draw(rng):
        seconds = time(rng)
        return lambda u: seconds(u) * (STEP if u > 1 / STEP_AT + 1e-9 else 1)
    return draw


# name: law(rng) -> P(f / fmax), T(fmax / f)
LAWS = {
    "knee": both(CUBIC, knee),
    "linear": both(CUBIC, linear),
    "power of f": both(EITHER, root),
    "f^-0.4": both(EITHER, lambda rng: lambda u: u ** 0.4),
    "smooth knee": both(EITHER, smooth_knee),
    "voltage floor": both(FLOOR, any_of(knee, linear, root, smooth_knee)),
    "throttled": throttled(EITHER, any_of(knee, linear, root, lambda rng: lambda u: u)),
    "step": both(EITHER, stepped(any_of(knee, linear, root, lambda rng: lambda u: 1))),
}


# ---- laws that the fit was not developed with ----

def exponential_power(rng):
    idle, scale, rate = rng.uniform(25, 80), rng.uniform(20, 80), rng.uniform(1.2, 2.5)
    return lambda x: idle + scale * x * math.exp(rate * (x - 0.3))


def voltage_steps(rng):
    idle, linear_w, cubic, steps = rng.uniform(25, 80), rng.uniform(0, 60), rng.uniform(60, 250), rng.choice((12, 20, 30))
    return lambda x: idle + linear_w * x + cubic * x * (math.ceil(x * steps - 1e-9) / steps) ** 2


def two_slopes(rng):
    first, second, share = rng.uniform(1.05, 1.3), rng.uniform(1.5, 2.2), rng.uniform(0.1, 0.5)
    return lambda u: 1 + share * max(0, u - first) + (1 - share) * max(0, u - second)


def saturating(rng):
    rise, scale = rng.uniform(0.3, 1.2), rng.uniform(0.2, 0.6)
    return lambda u: 1 + rise * (1 - math.exp((1 - u) / scale))


def s_shaped(rng):
    rise, scale, middle = rng.uniform(0.2, 0.8), rng.uniform(0.05, 0.15), rng.uniform(1.3, 1.9)
    return lambda u: 1 + rise / (1 + math.exp((middle - u) / scale))


def contended(rng):
    """Slightly faster below fmax, as memory-bound kernels may be."""
    at, dip = rng.uniform(1.2, 1.7), rng.uniform(0.005, 0.02)
    return lambda u: u / at if u > at else 1 - dip * math.sin((u - 1) / (at - 1) * math.pi)


def convex(rng):
    rise = rng.uniform(0.3, 1.2)
    return lambda u: 1 + rise * (u - 1) ** 2


def power_capped(rng):
    """A card that lowers its clock to stay below a power."""
    watts, cap = EITHER(rng), rng.uniform(0.75, 0.95)
    seconds = any_of(linear, root, smooth_knee)(rng)
    return lambda x: watts(min(x, cap)), lambda u: seconds(max(u, 1 / cap))


KNOWN_TIMES = any_of(knee, linear, root)
HELD_OUT_LAWS = {
    "exponential power": both(exponential_power, KNOWN_TIMES),
    "voltage in steps": both(voltage_steps, KNOWN_TIMES),
    "two slopes": both(EITHER, two_slopes),
    "saturating": both(EITHER, saturating),
    "S-shaped": both(EITHER, s_shaped),
    "contended": both(EITHER, contended),
    "convex": both(EITHER, convex),
    "power cap": power_capped,
}


@dataclass
class Curve:
    name: str
    law: str
    noise: float
    runs: int
    true: dict  # clock: (watts, seconds)
    rows: list = field(default_factory=list)  # (clock, watts, seconds) of each run

    def energy(self, mhz):
        return self.true[mhz][0] * self.true[mhz][1]

    def slowdown(self, mhz):
        return 100 * (self.true[mhz][1] / self.true[FMAX][1] - 1)

    def measured_slowdown(self, mhz):
        def median(at):
            return statistics.median(seconds for clock, _, seconds in self.rows if clock == at)
        return 100 * (median(mhz) / median(FMAX) - 1)


def curves(count, seed, laws=None):
    """Of all laws in turn, with 16 to 96 clocks, 1 or 3 runs, and a noise of 0.5 to 3 % per run."""
    laws, rng, made = laws or LAWS, random.Random(seed), []
    for i in range(count):
        law = list(laws)[i % len(laws)]
        power, time = laws[law](rng)
        seconds = rng.uniform(3, 30)
        clocks, noise, runs = rng.choice((16, 24, 48, 96)), rng.choice((0.005, 0.01, 0.02, 0.03)), rng.choice((1, 3))
        mhz = [round(FMAX * (0.35 + 0.65 * k / (clocks - 1))) for k in range(clocks)]
        one = Curve(f"{i:03}", law, noise, runs, {f: (power(f / FMAX), seconds * time(FMAX / f)) for f in mhz})
        one.rows = [(f, one.true[f][0] * math.exp(rng.gauss(0, noise)), one.true[f][1] * math.exp(rng.gauss(0, 0.7 * noise)))
                    for f in mhz for _ in range(runs)]
        made.append(one)
    return made


def write(made, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("gpu", "application", "freq_mhz", "power_w", "time_s"))
        writer.writerows(("G", one.name, *row) for one in made for row in one.rows)


def reports(program, path, *options):
    done = subprocess.run([program, "optimize", "--input", path, "--json", *map(str, options)], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def recommendations(program, made, path, *options):
    """{name: report} of `ipw optimize` for all curves in one file."""
    write(made, path)
    return {row["application"]: row for row in reports(program, path, *options)["applications"]}


@dataclass
class Score:
    """In percent and points of the energy at fmax."""
    curves: int
    claims: int        # recommended another clock than the highest
    covered: float     # claims whose ± covers the true saving
    width: float       # median ±
    bias: float        # mean of claimed less true saving
    regret: float      # mean objective at the chosen clock over the lowest within the limit; at fmax, where none is usable
    over_limit: int    # true slowdown beyond the limit by more than a point: not usable
    measured_over: int  # that of the clock's own runs, by more than their 90 % interval and a point


def score(made, reports, exponent, limit=math.inf):
    covered, widths, errors, regrets, over, measured_over = [], [], [], [], 0, 0
    for one in made:
        report = reports[one.name]
        mhz = round(report["recommended"]["freq_mhz"]) if report["recommended"] else FMAX

        def objective(at):
            return one.energy(at) * one.true[at][1] ** exponent
        least = min(objective(at) for at in one.true if one.slowdown(at) <= limit + 1e-9)
        is_over = one.slowdown(mhz) > limit + 1
        regrets.append(100 * max(0, objective(FMAX if is_over else mhz) / least - 1))
        if mhz == FMAX:
            continue
        savings = report["savings_pct"]
        true = 100 * (1 - one.energy(mhz) / one.energy(FMAX))
        covered.append(abs(savings["measured"] - true) <= savings["plus_minus"])
        widths.append(savings["plus_minus"])
        errors.append(savings["measured"] - true)
        over += is_over
        run_error = 100 * 1.645 * 0.7 * one.noise * math.sqrt(2 / one.runs)
        measured_over += one.measured_slowdown(mhz) > limit + 1 + run_error
    return Score(len(made), len(covered), 100 * statistics.mean(covered) if covered else math.nan,
                 statistics.median(widths) if widths else math.nan, statistics.mean(errors) if errors else math.nan,
                 statistics.mean(regrets), over, measured_over)
