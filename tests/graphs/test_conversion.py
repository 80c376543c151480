"""Graphs from igraph, from names and from all other forms."""

from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from walklearn import graphs
from walklearn.graphs.names import NAMES


def test_from_igraph_keeps_the_vertices():
    graph = igraph.Graph.Erdos_Renyi(n=30, m=120)
    same = graphs.from_igraph(graph)
    assert [same.neighbours(i).tolist() for i in range(30)] == [
        sorted(graph.neighbors(i)) for i in range(30)
    ]
    pieces = igraph.Graph(n=6, edges=[(0, 1), (1, 2), (2, 0)])
    assert graphs.from_igraph(pieces, connected="largest") == graphs.complete(3)


def test_igraphs_are_refused_with_a_remedy():
    directed = igraph.Graph(edges=[(0, 1), (1, 2)], directed=True)
    with pytest.raises(ValueError, match="as_undirected"):
        graphs.from_igraph(directed)
    assert graphs.from_igraph(directed.as_undirected()) == graphs.grid(1, 3)
    double = igraph.Graph(edges=[(0, 1), (0, 1), (1, 1)])
    with pytest.raises(ValueError, match=r"graph\.simplify\(\)"):
        graphs.from_igraph(double)
    assert graphs.from_igraph(double.simplify()) == graphs.ring(2)


class TestAsGraph:
    def test_every_form_of_a_graph(self, tmp_path):
        path = tmp_path / "edges.txt"
        path.write_text("0 1\n1 2\n2 3\n3 0\n")
        wanted = graphs.ring(4)
        matrix = wanted.adjacency()
        for given in (
            wanted, nx.cycle_graph(4), igraph.Graph.Ring(4), matrix, matrix.tocoo(),
            csr_matrix(matrix), matrix.toarray(), path, str(path), "ring", "Ring",
        ):  # fmt: skip
            assert graphs.as_graph(given, nodes=4) == wanted, given
        assert graphs.as_graph(wanted) is wanted
        assert graphs.as_graph(nx.Graph([(0, 1), (2, 3), (3, 4)]), 3, connected="largest") == (
            graphs.grid(1, 3)
        )

    @pytest.mark.parametrize("name", NAMES)
    def test_every_name_on_any_number_of_nodes(self, name):
        for nodes in [2**k for k in range(5)] if name == "hypercube" else range(1, 30):
            assert graphs.as_graph(name, nodes, seed=nodes).node_count == nodes
        number = 64
        again = [graphs.as_graph(name.replace("-", "_"), number, seed=5) for _ in range(2)]
        assert again[0] == again[1]

    def test_a_file_named_like_a_family(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        Path("ring").write_text("0 1\n")
        assert graphs.as_graph(Path("ring")).node_count == 2
        assert graphs.as_graph("ring", 5).node_count == 5

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            (("ring",), ValueError, "'ring'.*nodes"),
            (("rnig", 5), ValueError, "'rnig'.*'ring'"),
            (("edges.txt",), ValueError, "edges.txt"),
            ((graphs.ring(4), 5), ValueError, " 4 nodes.* 5"),
            (("hypercube", 20), ValueError, "16 and 32"),
            (([(0, 1)],), TypeError, "from_edges"),
            ((np.array([[0, 1], [1, 2], [2, 3]]),), ValueError, "from_edges"),
            ((3,), TypeError, "got int"),
        ],
    )
    def test_other_objects_are_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            graphs.as_graph(*arguments)

    def test_a_similar_name_is_suggested(self):
        with pytest.raises(ValueError, match=r"Did you mean 'erdos-renyi'\?"):
            graphs.as_graph("erdos-reny", 5)
