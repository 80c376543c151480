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
    dimension = job["X"].shape[1]
    signed = (job["X"] * job["y"][:, None]).reshape(nodes, -1, dimension)  # rows times labels
    rows = [tuple(each) if len(each) == 2 else (each[0], None) for each in signed]
    constant, shrink = float(job["constant"]), 1 - float(job["constant"]) * float(job["penalty"])
    share = constant / signed.shape[1]
    generator = np.random.default_rng(1)
    model = np.zeros(dimension)
    node, updates, begin, limit = 0, 0, time.process_time(), float(seconds)
    while time.process_time() - begin < limit:
        uniforms = generator.random((20_000, 2)).tolist()
        for propose, accept in uniforms:
            first, second = rows[node]
            pull_first = share / (1 + math.exp(first.dot(model)))
            if second is None:
                model *= shrink
            else:
                pull_second = share / (1 + math.exp(second.dot(model)))
                model *= shrink
                model += pull_second * second
            model += pull_first * first
            there = neighbours[node][int(propose * degree[node])]
            if accept * degree[there] < degree[node]:
                node = there
        updates += len(uniforms)
    taken = time.process_time() - begin
    print(json.dumps({"updates": updates, "seconds": taken, "models": [model.tolist()]}))


main(*sys.argv[1:])
