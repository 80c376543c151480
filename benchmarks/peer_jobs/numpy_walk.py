"""The uniform walk in plain Python and NumPy, as a careful researcher writes it in an hour."""

import json
import math
import sys
import time

import numpy as np


def main(path: str, seconds: str) -> None:
    job = np.load(path)
    nodes = len(job["indptr"]) - 1
    neighbours = [each.tolist() for each in np.split(job["indices"], job["indptr"][1:-1])]
    degree = [len(each) for each in neighbours]
    signed = (job["X"] * job["y"][:, None]).reshape(nodes, 2, -1)  # rows times their labels
    rows = [(signed[i, 0], signed[i, 1]) for i in range(nodes)]
    constant, shrink = float(job["constant"]), 1 - float(job["constant"]) * float(job["penalty"])
    generator = np.random.default_rng(1)
    model = np.zeros(signed.shape[2])
    node, updates, begin, limit = 0, 0, time.perf_counter(), float(seconds)
    while time.perf_counter() - begin < limit:
        uniforms = generator.random((20_000, 2)).tolist()
        for propose, accept in uniforms:
            first, second = rows[node]
            pull_first = constant * 0.5 / (1 + math.exp(first.dot(model)))
            pull_second = constant * 0.5 / (1 + math.exp(second.dot(model)))
            model *= shrink
            model += pull_first * first
            model += pull_second * second
            there = neighbours[node][int(propose * degree[node])]
            if accept * degree[there] < degree[node]:
                node = there
        updates += len(uniforms)
    taken = time.perf_counter() - begin
    print(json.dumps({"updates": updates, "seconds": taken, "models": [model.tolist()]}))


main(*sys.argv[1:])
