import numpy as np
import pytest

import walklearn as wl
from walklearn.graphs import Network, place_rows

X = np.arange(12.0).reshape(6, 2)
Y = np.array([0, 1, 0, 1, 0, 1])
SITES = ["oslo", "rome", "bern", "oslo", "rome", "bern"]


def network(rows: int = 6, family: str = "ring") -> Network:
    return place_rows(family, SITES[:rows], rows, seed=1)


def test_a_network_places_only_its_rows() -> None:
    model = wl.RandomWalkClassifier(graph=network(), steps=20, random_state=0)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="has 6 rows"):
        model.fit(X[:4], Y[:4])
    with pytest.raises(ValueError, match="without nodes="):
        model.fit(X, Y, nodes=SITES)


def test_a_later_network_has_all_earlier_nodes() -> None:
    earlier = network()
    assert place_rows(earlier, None, 6, 1, previous=earlier) is earlier
    with pytest.raises(ValueError, match="3 nodes"):
        place_rows(network(2), None, 2, 1, previous=earlier)
    with pytest.raises(ValueError, match="only gain nodes"):
        place_rows(network(family="complete"), None, 6, 1, previous=earlier)


def test_the_repr_of_an_estimator_hides_the_owners_of_rows() -> None:
    shown = repr(wl.RandomWalkClassifier(graph=network(), steps=20))
    assert "Network(Graph(3 nodes, 3 edges))" in shown
    assert "oslo" not in shown
