"""gossipy on the job: push gossip with MERGE_UPDATE (UPDATE stops learning after the first hop).

A node that times out sends its model to a random neighbour, which averages it with its own and
makes one SGD step: one update per message.
"""

import json
import sys
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
import torch  # noqa: E402
from gossipy import LOG, set_seed  # noqa: E402
from gossipy.core import (  # noqa: E402
    AntiEntropyProtocol,
    ConstantDelay,
    CreateModelMode,
    StaticP2PNetwork,
)
from gossipy.data import DataDispatcher  # noqa: E402
from gossipy.data.handler import ClassificationDataHandler  # noqa: E402
from gossipy.model.handler import TorchModelHandler  # noqa: E402
from gossipy.model.nn import LogisticRegression  # noqa: E402
from gossipy.node import GossipNode  # noqa: E402
from gossipy.simul import GossipSimulator  # noqa: E402


def main(path: str, seconds: str) -> None:
    set_seed(1)
    torch.set_num_threads(1)
    LOG.setLevel("ERROR")
    job = np.load(path)
    nodes = len(job["indptr"]) - 1
    adjacency = np.zeros((nodes, nodes), dtype=int)
    for i, neighbours in enumerate(np.split(job["indices"], job["indptr"][1:-1])):
        adjacency[i, neighbours] = 1
    X, y = torch.tensor(job["X"]).float(), torch.tensor((job["y"] > 0).astype(np.int64))
    handler = ClassificationDataHandler(X, y, X[:0], y[:0])  # nothing to evaluate on
    dispatcher = DataDispatcher(handler, n=nodes, eval_on_user=False, auto_assign=False)
    dispatcher.set_assignments(np.arange(len(y)).reshape(nodes, -1).tolist(), None)
    model = TorchModelHandler(
        net=LogisticRegression(X.shape[1], 2),
        optimizer=torch.optim.SGD,
        optimizer_params={"lr": float(job["constant"]), "weight_decay": float(job["penalty"])},
        criterion=torch.nn.functional.cross_entropy,
        batch_size=len(y) // nodes,
        create_model_mode=CreateModelMode.MERGE_UPDATE,
    )
    crowd = GossipNode.generate(
        data_dispatcher=dispatcher,
        model_proto=model,
        round_len=100,
        p2p_net=StaticP2PNetwork(nodes, topology=adjacency),
        sync=True,
    )
    simulator = GossipSimulator(
        nodes=crowd,
        data_dispatcher=dispatcher,
        delta=100,
        protocol=AntiEntropyProtocol.PUSH,
        delay=ConstantDelay(0),
    )
    simulator.init_nodes(seed=1)
    calls = 0
    step = TorchModelHandler._update

    def counted(self, data):
        nonlocal calls
        calls += 1
        step(self, data)

    TorchModelHandler._update = counted
    begin, limit = time.process_time(), float(seconds)
    while (taken := time.process_time() - begin) < limit:
        simulator.start(n_rounds=10)
    layers = [node.model_handler.model.model for node in crowd.values()]
    models = [(layer.weight[1] - layer.weight[0]).tolist() for layer in layers]
    print(json.dumps({"updates": calls, "seconds": taken, "models": models}))


main(*sys.argv[1:])
