"""The engine of a setting: compiled code if all parts have a kernel, else the reference."""

from __future__ import annotations

import warnings
from typing import Any

from walklearn.checks import check_choice
from walklearn.objectives import Problem
from walklearn.objectives.linear.domains import Ball, Box, Everywhere
from walklearn.objectives.linear.losses import FunctionLoss, Softmax
from walklearn.simulation.averaging import GossipSetting
from walklearn.simulation.batches import ReferenceGossip, ReferenceWalks
from walklearn.simulation.compiled_batches import CompiledGossip, CompiledMemory, CompiledWalks
from walklearn.simulation.compiled_finito import CompiledFinito
from walklearn.simulation.compiled_tokens import CompiledTokens
from walklearn.simulation.events import ReferenceTokens
from walklearn.simulation.kernel_inputs import BUILT_IN, announce_compilation, rejection_of
from walklearn.visit import Setting

# By `Update.compiled`.
COMPILED: dict[str | None, type[CompiledWalks]] = {
    "sgd": CompiledWalks, "saga": CompiledMemory, "finito": CompiledFinito,
}  # fmt: skip
SEVERAL_TOKENS: dict[str | None, type[CompiledWalks]] = {"finito": CompiledTokens}
# Methods of a problem that kernels replace. A subclass that overrides one has no kernel.
_REPLACED = (
    "gradient", "value", "project", "row_gradients", "row_factor", "linear_rows", "local_value",
)  # fmt: skip


def batch_class_of(
    setting: Setting | GossipSetting, engine: str | None = None, progress: bool | None = None
) -> type[Any]:
    """Return the class of the batches. The reference in place of compiled code raises a warning.

    `engine` is the user's choice; "compiled" raises a ValueError if a part has no kernel. An
    objective of the user's own causes no warning: nobody would expect a kernel for it.
    """
    check_choice("engine", engine, ("compiled", "reference", None))
    is_gossip, objective = isinstance(setting, GossipSetting), setting.objective
    if engine != "reference":
        part = uncompiled_part(setting)
        if part is None:
            announce_compilation(objective, progress)
            classes = SEVERAL_TOKENS if setting.tokens > 1 else COMPILED
            return CompiledGossip if is_gossip else classes[setting.update.compiled]
        rejection = rejection_of(part)
        reason = f"Numba rejects {part!r} ({rejection})" if rejection else f"{part!r} has no kernel"
        if engine == "compiled":
            raise ValueError(f'{reason}. Pass engine="reference".')
        if part is not objective or isinstance(part, Problem):
            warnings.warn(
                f"{reason}: the reference engine runs, about a thousand times slower. "
                'simulate(engine="reference") runs it without this warning.',
                stacklevel=3,
            )
    if is_gossip:
        return ReferenceGossip
    return ReferenceTokens if setting.tokens > 1 else ReferenceWalks


def uncompiled_part(setting: Setting | GossipSetting) -> object:
    """Return the part that the kernels do not know; None if they know all."""
    objective = setting.objective
    if not isinstance(objective, Problem) or any(
        getattr(type(objective), name) is not getattr(Problem, name) for name in _REPLACED
    ):
        return objective
    if type(objective.loss) not in (*BUILT_IN, Softmax, FunctionLoss):
        return objective.loss
    if type(objective.domain) not in (Ball, Box, Everywhere):
        return objective.domain
    walks = [setting.walk] if isinstance(setting, Setting) else []
    for part in (*walks, setting.update, setting.privacy):
        if not part.is_compiled:
            return part
    if setting.tokens > 1 and setting.update.compiled not in SEVERAL_TOKENS:
        return setting.update
    return objective.loss if rejection_of(objective.loss) else None
