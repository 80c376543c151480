"""walklearn on the job: `simulate` from its call to its trace, on one core."""

import json
import sys
import time

import numpy as np

import walklearn as wl


def main(path: str, seconds: str, kind: str, replicates: str) -> None:
    job, count = np.load(path), int(replicates)
    nodes = len(job["indptr"]) - 1
    graph = wl.Graph(job["indptr"], job["indices"])
    owner = np.repeat(np.arange(nodes), len(job["y"]) // nodes)
    problem = wl.Problem(job["X"], job["y"], node_of_row=owner,
                         penalty=float(job["penalty"]), aggregate="node-mean")  # fmt: skip
    method = wl.walks.Uniform() if kind == "walk" else wl.AsynchronousGossip()

    def run(steps: int) -> tuple[wl.Trace, float]:
        begin = time.process_time()
        trace = wl.simulate(problem, graph, method, steps=steps, replicates=count, seed=1, cores=1,
                            step_size=wl.ConstantStep(float(job["constant"])), records=1,
                            gaps=False, progress=False)  # fmt: skip
        return trace, time.process_time() - begin

    run(1000)  # compiles or loads
    _, probe = run(20_000)
    trace, taken = run(int(20_000 * max(1.0, float(seconds) / probe)))
    answer = {"updates": int(trace.updates[-1]) * count, "seconds": taken,
              "models": trace.models.reshape(-1, problem.size).tolist()}  # fmt: skip
    print(json.dumps(answer))


main(*sys.argv[1:])
