"""The perceptron of scikit-learn on data of one's own: two species of irises, of four measures each."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sweeplib import Result, simulator

Examples = Annotated[int, Field(ge=4, le=80, description="examples")]


@simulator(error=Result("1", label="errors on the other flowers"))
def perceptron(rng, n: Examples = 32, weights: Literal["last", "average"] = "last", data: str = "irises.csv"):
    table = np.loadtxt(Path(__file__).with_name(data), delimiter=",", skiprows=1)
    while True:
        table = rng.permutation(table)
        x, y = table[:, :-1], table[:, -1]
        if len(set(y[:n])) == 2:  # both species are among the examples
            break
    rule = SGDClassifier(
        loss="perceptron", learning_rate="constant", eta0=1, penalty=None, average=weights == "average", random_state=0
    )
    model = make_pipeline(StandardScaler(), rule).fit(x[:n], y[:n])
    return 1 - model.score(x[n:], y[n:])
