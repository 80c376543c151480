"""decent-bench on the job: adapt-then-combine, synchronous: every node updates in an iteration."""

import json
import sys
import time

import networkx as nx
import numpy as np
from decent_array import interoperability as iop
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import ATC
from decent_bench.costs import L2RegularizerCost, LogisticRegressionCost
from decent_bench.networks import P2PNetwork


def main(path: str, seconds: str) -> None:
    iop.set_backend("numpy", "cpu")
    job = np.load(path)
    nodes, dimension = len(job["indptr"]) - 1, job["X"].shape[1]
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    for i, neighbours in enumerate(np.split(job["indices"], job["indptr"][1:-1])):
        graph.add_edges_from((i, int(j)) for j in neighbours)
    labels = (job["y"] > 0).astype(float)

    def cost(i):
        rows = [
            (iop.from_numpy(job["X"][r]), iop.from_numpy(labels[r : r + 1]))
            for r in (2 * i, 2 * i + 1)
        ]
        return LogisticRegressionCost(rows) + float(job["penalty"]) * L2RegularizerCost(
            (dimension,)
        )

    agents = [Agent(cost(i), state_snapshot_period=10**9) for i in range(nodes)]
    network = P2PNetwork(graph, agents)
    algorithm = ATC(step_size=float(job["constant"]))
    iterations, begin, limit = 0, time.process_time(), float(seconds)
    while (taken := time.process_time() - begin) < limit:
        algorithm.run(network, iterations + 10, start_iteration=iterations)
        iterations += 10
    models = [np.asarray(iop.to_numpy(agent.x)).tolist() for agent in agents]
    print(json.dumps({"updates": iterations * nodes, "seconds": taken, "models": models}))


main(*sys.argv[1:])
