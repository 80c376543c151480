"""The uniform walk with scikit-learn's SGDClassifier, one `partial_fit` per hop."""

import json
import sys
import time

import numpy as np
from sklearn.linear_model import SGDClassifier


def main(path: str, seconds: str) -> None:
    job = np.load(path)
    nodes = len(job["indptr"]) - 1
    neighbours = np.split(job["indices"], job["indptr"][1:-1])
    rows = len(job["y"]) // nodes
    X, y = job["X"].reshape(nodes, rows, -1), job["y"].reshape(nodes, rows)
    learner = SGDClassifier(
        loss="log_loss",
        alpha=float(job["penalty"]),
        fit_intercept=False,
        learning_rate="constant",
        eta0=float(job["constant"]) / rows,
    )
    generator = np.random.default_rng(1)
    node, updates, begin, limit = 0, 0, time.process_time(), float(seconds)
    while (taken := time.process_time() - begin) < limit:
        learner.partial_fit(X[node], y[node], classes=[-1.0, 1.0])
        updates += 1
        there = neighbours[node][generator.integers(len(neighbours[node]))]
        if generator.random() * len(neighbours[there]) < len(neighbours[node]):
            node = there
    print(json.dumps({"updates": updates, "seconds": taken, "models": learner.coef_.tolist()}))


main(*sys.argv[1:])
