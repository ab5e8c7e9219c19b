"""Re-executes a test with the Python interpreter that has the oracle packages ($IPW_PYTHON), if there is one; and what
several of them share."""

import json
import os
import sys
from pathlib import Path


def use():
    wanted = os.environ.get("IPW_PYTHON")
    if not wanted or "IPW_AGAIN" in os.environ:
        return
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(wanted)))
    if os.path.realpath(sys.prefix) != os.path.realpath(prefix):
        os.environ["IPW_AGAIN"] = "1"
        os.execv(wanted, [wanted, *sys.argv])


def save_rows(path, rows, shards=1):
    """A directory as Dataset.save_to_disk of the package datasets writes it, which takes a second to start."""
    import pyarrow
    path = Path(path)
    path.mkdir(parents=True)
    table, names = pyarrow.Table.from_pylist(rows), []
    for number in range(shards):
        from_row, to_row = (len(rows) * n // shards for n in (number, number + 1))
        names.append(f"data-{number:05}-of-{shards:05}.arrow")
        with pyarrow.ipc.new_stream(path / names[-1], table.schema) as stream:
            stream.write_table(table.slice(from_row, to_row - from_row))
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names], "_split": None}))


def load_rows(path):
    """The rows of such a directory."""
    import pyarrow
    files = json.loads((Path(path) / "state.json").read_text())["_data_files"]
    return [row for file in files for row in pyarrow.ipc.open_stream(Path(path) / file["filename"]).read_all().to_pylist()]


def studentized(figure, *sides, logs=True, draws=2000, seed=1):
    """The 95 % bootstrap-t interval of figure(sums of each side), with jackknife errors, never narrower than Student's t
    and widened by 1 + 1.5 / n.  A side is a list of columns that are resampled together; sides are resampled
    independently."""
    import numpy as np
    import scipy.stats as st
    sides = [np.column_stack([np.asarray(column, float) for column in side]) for side in sides]
    rng = np.random.default_rng(seed)

    def estimate(rows):
        totals = [side.sum(0) for side in rows]
        parts = []
        for i, side in enumerate(rows):
            without = figure(*[(totals[j] - side).T if j == i else totals[j] for j in range(len(rows))])
            parts.append((len(side) - 1) * without.var())
        return figure(*totals), np.array(parts)

    value, parts = estimate(sides)
    freedom = parts.sum() ** 2 / sum(part ** 2 / (len(side) - 1) for part, side in zip(parts, sides))
    far = []
    for _ in range(draws):
        drawn, scatter = estimate([side[rng.integers(len(side), size=len(side))] for side in sides])
        error = scatter.sum() ** 0.5
        if error > 1e-9 * abs(drawn):
            far.append(np.log(drawn / value) * drawn / error if logs else (drawn - value) / error)
    student = st.t.isf(0.025, freedom)
    low, high = np.quantile(far, (0.025, 0.975))
    error = parts.sum() ** 0.5 * (1 + 1.5 / (freedom + 1))
    ends = -max(high, student) * error, -min(low, -student) * error
    return tuple(value * np.exp(end / value) if logs else value + end for end in ends)
