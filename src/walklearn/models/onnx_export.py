"""Export of a walklearn model to ONNX, which runs on inference servers and in other languages.

If all columns are numeric, the input is `X` of shape (rows, columns). Otherwise each column is an
input with its name, of shape (rows, 1), and the graph does the one-hot encoding. The outputs are
`label` and `probabilities` (`scores` if the loss gives no probabilities) of a classifier, and
`value` of a regressor. Numbers are float64, so predictions equal those of `Model.predict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from walklearn import __version__
from walklearn.extras import extra
from walklearn.models.model import Model
from walklearn.objectives.linear.losses import LOSSES
from walklearn.tables.encoding import Column

if TYPE_CHECKING:
    import onnx

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8
# Inner values begin with a slash, so that they differ from the names of columns.


def to_onnx(model: Model) -> onnx.ModelProto:
    """Return the checked ONNX model."""
    with extra("onnx", "to_onnx needs"):
        import onnx
    graph = _Graph(onnx)
    graph.encode(model)
    graph.score(model)
    if model.classes is None:
        graph.output("/scores", "value", graph.double, 1)
    else:
        graph.classify(model)
    helper = onnx.helper
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "walklearn", graph.inputs, graph.outputs, graph.constants),
        producer_name="walklearn", producer_version=__version__, ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid(*each) for each in OPSETS.items()],
    )  # fmt: skip
    onnx.checker.check_model(proto, full_check=True)
    return proto


class _Graph:
    """The nodes, inputs and outputs so far; values have names."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.double = onnx.TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add an operation and return the name of its output."""
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: Any) -> str:
        """Add a constant tensor of numbers or texts."""
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def input(self, name: str, kind: int, width: int) -> str:
        """Declare an input of any number of rows."""
        info = self.onnx.helper.make_tensor_value_info(name, kind, ["rows", width])
        self.inputs.append(info)
        return name

    def output(self, value: str, name: str, kind: int, *width: int) -> None:
        """Declare an output, the same as an inner value, of any number of rows."""
        taken = {each.name for each in self.inputs}
        free = f"predicted_{name}" if name in taken else name
        self.node("Identity", [value], free)
        self.outputs.append(self.onnx.helper.make_tensor_value_info(free, kind, ["rows", *width]))

    def encode(self, model: Model) -> None:
        """Add the value `features`: the columns scaled, cut off and one-hot encoded."""
        columns = model.encoding.columns
        if all(column.categories is None for column in columns):
            self._scale(self.input("X", self.double, len(columns)), columns, "")
            return
        parts = [self._encode_column(at, column) for at, column in enumerate(columns)]
        self.node("Concat", parts, "/features", axis=1)

    def _scale(self, raw: str, columns: Sequence[Column], at: str) -> str:
        """Scale and cut off columns of numbers; `at` ends the names of values."""
        centre = self.constant(f"/centre{at}", [column.centre for column in columns])
        spread = self.constant(f"/spread{at}", [column.spread for column in columns])
        shifted = self.node("Sub", [raw, centre], f"/shifted{at}")
        scaled = self.node("Div", [shifted, spread], f"/scaled{at}")
        ends = np.array([column.cut_off for column in columns])
        low, high = self.constant(f"/low{at}", -ends), self.constant(f"/high{at}", ends)
        return self.node(
            "Max", [self.node("Min", [scaled, high], f"/cut{at}"), low], f"/features{at}"
        )

    def _encode_column(self, at: int, column: Column) -> str:
        if column.categories is None:
            return self._scale(self.input(column.name, self.double, 1), [column], f"/{at}")
        raw = self.input(column.name, self.onnx.TensorProto.STRING, 1)
        hot = self.node(
            "OneHotEncoder", [raw], f"/hot/{at}", domain="ai.onnx.ml",
            cats_strings=list(column.categories), zeros=0,
        )  # fmt: skip
        flat = self.node("Flatten", [hot], f"/flat/{at}", axis=1)
        return self.node("Cast", [flat], f"/features/{at}", to=self.double)

    def score(self, model: Model) -> None:
        """Add the value `scores`: features · weights + intercepts."""
        weights = self.constant("/weights", np.ascontiguousarray(model.coefficients.T))
        intercepts = self.constant("/intercepts", model.intercepts)
        self.node(
            "Add", [self.node("MatMul", ["/features", weights], "/product"), intercepts], "/scores"
        )

    def classify(self, model: Model) -> None:
        """Add the outputs `label` and `probabilities`, or `scores` of every class."""
        assert model.classes is not None
        count = len(model.classes)
        if len(model.used) == 1:  # the score of the second class against the first
            scores = [self.node("Neg", ["/scores"], "/negated"), "/scores"]
            self.node("Concat", scores, "/of_each_class", axis=1)
        else:
            self.node("Identity", ["/scores"], "/of_each_class")
        best = self.node("ArgMax", ["/of_each_class"], "/best", axis=1, keepdims=0)
        labels, kind = self._labels(model)
        self.output(self.node("Gather", [labels, best], "/label"), "label", kind)
        if not model.gives_probabilities:
            self.output("/of_each_class", "scores", self.double, count)
            return
        if len(model.used) > 1 and LOSSES[model.loss].takes == "class":
            self.node("Softmax", ["/of_each_class"], "/shares", axis=1)
        else:  # one against the rest needs the sum; that of two classes is 1
            each = self.node("Sigmoid", ["/of_each_class"], "/odds")
            axis = self.constant("/axis", np.array([1], dtype=np.int64))
            total = self.node("ReduceSum", [each, axis], "/total", keepdims=1)
            self.node("Div", [each, total], "/shares")
        self.output("/shares", "probabilities", self.double, count)

    def _labels(self, model: Model) -> tuple[str, int]:
        """Add the table of labels, and return its name and type."""
        classes, proto = np.array(model.classes), self.onnx.TensorProto
        if classes.dtype.kind in "bi":
            return self.constant("/classes", classes.astype(np.int64)), proto.INT64
        if classes.dtype.kind == "f":
            return self.constant("/classes", classes), proto.DOUBLE
        return self.constant("/classes", classes.astype(object)), proto.STRING
