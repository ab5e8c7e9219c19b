#!/usr/bin/env python3
"""Records the powers that scikit-learn and xgboost predict, for tests/cli/test_power_oracle.py:

    research/record-power.py

It fits the models to the rows of that test and writes tests/fixtures/power_oracle.json.  With the public measurements of a
V100 ($IPW_SHARED, or shared/ next to the source tree), it also records the errors of scikit-learn's default models on
applications that are left out.

    pip install numpy scikit-learn 'xgboost ~= 1.7.0'
"""

import json
import sys
from pathlib import Path

import numpy
import sklearn.ensemble
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
import xgboost

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests/cli"))
from test_power_oracle import RECORDED, TREES, V100, arrays, digest, make_rows, tried, v100_rows  # noqa: E402

CUBIC_RIDGE = 0.01  # per row, of model poly3


def predictions(x, watts):
    def pipeline(*steps):
        return sklearn.pipeline.make_pipeline(*steps).fit(x, watts).predict(tried())

    scaled = sklearn.preprocessing.StandardScaler
    for name, degree in (("linear", 1), ("poly2", 2)):
        yield name, pipeline(sklearn.preprocessing.PolynomialFeatures(degree), scaled(), sklearn.linear_model.LinearRegression())
    yield "poly3", pipeline(sklearn.preprocessing.PolynomialFeatures(3), scaled(),
                            sklearn.linear_model.Ridge(alpha=CUBIC_RIDGE * len(x)))
    for penalty in (1.0, 250.0):
        yield f"ridge {penalty}", pipeline(scaled(), sklearn.linear_model.Ridge(alpha=penalty))
    narrow = numpy.float32
    trained = xgboost.train({"objective": "reg:squarederror", "tree_method": "exact", "max_depth": 6, "learning_rate": 0.1,
                             "subsample": 0.8, "colsample_bytree": 0.8, "seed": 5, "nthread": 1},
                            xgboost.DMatrix(x.astype(narrow), label=watts.astype(narrow)), TREES)
    yield "gbt", trained.predict(xgboost.DMatrix(tried().astype(narrow)))
    for seed in (1, 2, 3):
        forest = sklearn.ensemble.RandomForestRegressor(100, max_features=2, min_samples_leaf=5, random_state=seed)
        yield f"rf {seed}", forest.fit(x, watts).predict(tried())


def held_out_errors():
    """Mean over applications of the mean relative error of the power, for default models that know the activities at every
    clock of the application that is left out."""
    names, x, watts = arrays(v100_rows())
    cubic = sklearn.pipeline.make_pipeline(sklearn.preprocessing.PolynomialFeatures(3), sklearn.preprocessing.StandardScaler(),
                                           sklearn.linear_model.LinearRegression())
    for name, model in (("rf", sklearn.ensemble.RandomForestRegressor(100, random_state=1)), ("poly3", cubic)):
        off = [numpy.mean(numpy.abs(model.fit(x[names != one], watts[names != one]).predict(x[names == one])
                                    / watts[names == one] - 1)) for one in sorted(set(names))]
        yield name, round(float(numpy.mean(off)), 4)


if __name__ == "__main__":
    rows = make_rows()
    _, x, watts = arrays(rows)
    found = {name: [round(float(value), 12) for value in values] for name, values in predictions(x, watts)}
    held_out = dict(held_out_errors()) if V100.exists() else json.loads(RECORDED.read_text())["held out"]
    RECORDED.write_text(json.dumps({"of": digest(rows), **found, "held out": held_out}).replace('], "', '],\n"') + "\n")
