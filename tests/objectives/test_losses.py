"""Each loss against its formula in plain Python."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from walklearn.objectives.linear.losses import Huber, Logistic, Loss, Softmax, Squared, SquaredHinge

NUMBERS = st.floats(-30, 30)
LABELS = st.sampled_from([-1.0, 1.0])
EXAMPLES = settings(max_examples=50, deadline=None)


def one(function, score, target):
    """A loss function applied to one row."""
    return float(function(np.array([score]), np.array([target]))[0])


@given(score=NUMBERS, label=LABELS)
@EXAMPLES
def test_logistic(score, label):
    margin = label * score
    assert one(Logistic().value, score, label) == pytest.approx(math.log1p(math.exp(-margin)))
    assert one(Logistic().slope, score, label) == pytest.approx(-label / (1 + math.exp(margin)))
    p = 1 / (1 + math.exp(margin))
    curvature = p / (1 + math.exp(-margin))
    assert one(Logistic().curvature, score, label) == pytest.approx(curvature, abs=1e-15)


@given(score=NUMBERS, target=NUMBERS)
@EXAMPLES
def test_squared(score, target):
    assert one(Squared().value, score, target) == pytest.approx((score - target) ** 2 / 2)
    assert one(Squared().slope, score, target) == score - target
    assert one(Squared().curvature, score, target) == 1.0


@given(score=NUMBERS, target=NUMBERS, threshold=st.sampled_from([0.1, 1.0, 10.0]))
@EXAMPLES
def test_huber(score, target, threshold):
    r = score - target
    inside = abs(r) <= threshold
    expected = r * r / 2 if inside else threshold * (abs(r) - threshold / 2)
    loss = Huber(threshold)
    assert one(loss.value, score, target) == pytest.approx(expected, abs=1e-14)
    assert one(loss.slope, score, target) == (r if inside else math.copysign(threshold, r))


def test_a_loss_of_a_user_is_named_by_its_class() -> None:
    class Custom(Loss):
        name, takes = "custom", "sign"
        value = slope = curvature = None

    with pytest.raises(ValueError, match="Logistic takes labels"):
        Logistic().check_targets(np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"^Custom takes labels"):
        Custom().check_targets(np.array([1.0, 0.0]))


@given(score=NUMBERS, label=LABELS)
@EXAMPLES
def test_squared_hinge(score, label):
    short = max(0.0, 1 - label * score)
    assert one(SquaredHinge().value, score, label) == pytest.approx(short * short / 2)
    assert one(SquaredHinge().slope, score, label) == pytest.approx(-label * short)
    assert one(SquaredHinge().curvature, score, label) == float(short > 0)


@given(scores=st.lists(NUMBERS, min_size=2, max_size=5), data=st.data())
@EXAMPLES
def test_softmax(scores, data):
    target = data.draw(st.integers(0, len(scores) - 1))
    weights = [math.exp(s) for s in scores]
    s, t, loss = np.array([scores]), np.array([float(target)]), Softmax()
    expected = math.log(sum(weights)) - scores[target]
    assert loss.value(s, t)[0] == pytest.approx(expected, rel=1e-12, abs=1e-13)
    slopes = [w / sum(weights) - (k == target) for k, w in enumerate(weights)]
    assert np.allclose(loss.slope(s, t)[0], slopes, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("shift", [-1e6, 1e6])
def test_softmax_depends_on_differences_of_scores_only(shift):
    """Whole numbers, so that the shift itself is exact; ln Σ must not be added to it."""
    scores, targets = np.array([[1.0, 0.0, -2.0], [5.0, -30.0, 5.0]]), np.array([0.0, 2.0])
    value = Softmax().value(scores, targets)
    assert np.allclose(Softmax().value(scores + shift, targets), value, rtol=1e-13, atol=0)


def test_softmax_of_two_classes_is_logistic():
    generator = np.random.default_rng(1)
    s, y = 3 * generator.standard_normal(50), generator.choice([-1.0, 1.0], 50)
    both = np.stack([np.zeros(50), s], axis=1)
    classes = (y + 1) / 2
    assert np.allclose(Softmax().value(both, classes), Logistic().value(s, y), rtol=1e-12)
    assert np.allclose(Softmax().slope(both, classes)[:, 1], Logistic().slope(s, y), rtol=1e-12)


def test_arguments_are_not_changed():
    for loss in (Logistic(), Squared(), Huber(), SquaredHinge(), Softmax()):
        shape = (4, 2) if isinstance(loss, Softmax) else (4,)
        scores, targets = np.full(shape, 0.5), np.ones(4)
        for function in (loss.value, loss.slope, loss.curvature):
            function(scores, targets)
        assert (scores == 0.5).all()
        assert (targets == 1).all()


def test_invalid_settings_are_refused():
    for threshold in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="threshold"):
            Huber(threshold)
    for classes in (1, 0, -3):
        with pytest.raises(ValueError, match="at least 2"):
            Softmax(classes)


def test_classes_of_softmax():
    assert Softmax().outputs(np.zeros(3)) == 2
    assert Softmax().outputs(np.array([0.0, 4.0])) == 5
    assert Softmax(7).outputs(np.array([0.0, 4.0])) == 7


def test_messages_have_a_remedy():
    with pytest.raises(ValueError, match=r"row 2 has label 0.*np\.where"):
        Logistic().check_targets(np.array([1.0, -1.0, 0.0]))
    with pytest.raises(ValueError, match=r"0\.\.2 .* row 1 has label 3.*np\.unique"):
        Softmax(3).check_targets(np.array([0.0, 3.0]))


def test_losses_are_values():
    losses = [Logistic(), Squared(), Huber(), Huber(2.0), SquaredHinge(), Softmax(), Softmax(3)]
    assert len(set(losses)) == len(losses)
    for loss in losses:
        twin = pickle.loads(pickle.dumps(loss))
        assert twin == loss
        assert hash(twin) == hash(loss)
    with pytest.raises(AttributeError):
        Huber().threshold = 2.0
