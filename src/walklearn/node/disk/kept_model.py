"""The model that a node holds, as anyone can use it; read from its disk, running or not."""

from __future__ import annotations

from walklearn.models import Model
from walklearn.node.disk.creation import ledger_of
from walklearn.node.disk.directory import NodeDirectory
from walklearn.node.disk.store import Release, Store
from walklearn.node.protocol.tokens import Limits


def newest_model(directory: NodeDirectory) -> tuple[Model, bool]:
    """Find the newest model that the node has seen.

    Parameters
    ----------
    directory
        The node's directory.

    Returns
    -------
    Model
        The model.
    is_final : bool
        Whether it is the final one.
    """
    plan = directory.plan
    with Store.look(directory.store_path, Limits.of_plan(plan)) as store:
        record, release = store.record, store.release() or Release()
    token = record.newest_model
    if token is None:
        raise ValueError(f"no model has come to {directory.path} yet: the token was never here.")
    final, content = token is record.final, plan.to_dict()
    model = Model(
        plan.training_target.to_original(token.model, plan.intercept),
        plan.training_target.to_original(token.average, plan.intercept),
        loss=plan.loss.name,
        columns=plan.encoding,
        classes=plan.classes,
        intercept=plan.intercept,
        penalty=plan.penalty,
        updates=token.updates,
        iterate="average" if token.carries_average else "last",
        target=plan.target,
        walk=plan.walk,
        privacy=content.get("privacy", {}),
        ledger=ledger_of(plan, release).to_dict(),
        details={"plan": content, "final": final, "contributions": record.contributions},
    )
    return model, final
