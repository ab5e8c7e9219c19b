#!/usr/bin/env python3
"""Records the powers that scikit-learn and xgboost predict, for tests/cli/test_power_oracle.py:

    research/record-power.py

It fits the models to the rows of that test and writes tests/fixtures/power_oracle.json.

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
from test_power_oracle import RECORDED, TREES, arrays, digest, make_rows, tried  # noqa: E402


def predictions(x, watts):
    def pipeline(*steps):
        return sklearn.pipeline.make_pipeline(*steps).fit(x, watts).predict(tried())

    scaled = sklearn.preprocessing.StandardScaler
    for name, degree in (("linear", 1), ("poly2", 2), ("poly3", 3)):
        yield name, pipeline(sklearn.preprocessing.PolynomialFeatures(degree), scaled(), sklearn.linear_model.LinearRegression())
    for penalty in (1.0, 250.0):
        yield f"ridge {penalty}", pipeline(scaled(), sklearn.linear_model.Ridge(alpha=penalty))
    narrow = numpy.float32
    trained = xgboost.train({"objective": "reg:squarederror", "tree_method": "exact", "max_depth": 6, "learning_rate": 0.1,
                             "subsample": 0.8, "colsample_bytree": 0.8, "seed": 5, "nthread": 1},
                            xgboost.DMatrix(x.astype(narrow), label=watts.astype(narrow)), TREES)
    yield "gbt", trained.predict(xgboost.DMatrix(tried().astype(narrow)))
    for seed in (1, 2, 3):
        forest = sklearn.ensemble.RandomForestRegressor(100, random_state=seed).fit(x, watts)
        yield f"rf {seed}", forest.predict(tried())


if __name__ == "__main__":
    rows = make_rows()
    _, x, watts = arrays(rows)
    found = {name: [round(float(value), 12) for value in values] for name, values in predictions(x, watts)}
    RECORDED.write_text(json.dumps({"of": digest(rows), **found}).replace('], "', '],\n"') + "\n")
