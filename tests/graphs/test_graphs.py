"""Every graph satisfies one contract; random graphs have their exact distribution.

Statistical tests fix their seeds. The number in their comments is the chance that a correct
generator would fail under a fresh seed.
"""

import copy
import gzip
import pickle
import sys
from collections import Counter
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import chdtrc

from walklearn import graphs
from walklearn.graphs import (
    DisconnectedGraphError,
    Graph,
    independent_edges,
    pairs,
    sparse_rows,
)
from walklearn.graphs.names import draw_family

SEEDS = st.integers(0, 2**32)
BLOCKS = np.full((3, 3), 0.1) + 0.4 * np.eye(3)

FIXED = {
    "ring": (graphs.ring, (7,), nx.cycle_graph),
    "even ring": (graphs.ring, (8,), nx.cycle_graph),
    "edge": (graphs.ring, (2,), nx.path_graph),
    "single node": (graphs.ring, (1,), nx.path_graph),
    "grid": (graphs.grid, (3, 4), nx.grid_2d_graph),
    "path": (graphs.grid, (1, 5), nx.grid_2d_graph),
    "torus": (graphs.torus, (3, 4), lambda r, c: nx.grid_2d_graph(r, c, periodic=True)),
    "torus of side 2": (graphs.torus, (2, 5), lambda _, c: nx.circular_ladder_graph(c)),
    "complete": (graphs.complete, (6,), nx.complete_graph),
    "complete of one": (graphs.complete, (1,), nx.complete_graph),
    "star": (graphs.star, (6,), lambda n: nx.star_graph(n - 1)),
    "star of one": (graphs.star, (1,), lambda n: nx.star_graph(n - 1)),
    "barbell": (graphs.barbell, (4, 3), nx.barbell_graph),
    "barbell without path": (graphs.barbell, (2, 0), nx.barbell_graph),
    "hypercube": (graphs.hypercube, (4,), nx.hypercube_graph),
    "hypercube of one": (graphs.hypercube, (0,), None),
}
RANDOM = {
    "erdos_renyi": lambda seed: graphs.erdos_renyi(60, 0.05, seed=seed, connected="largest"),
    "dense erdos_renyi": lambda seed: graphs.erdos_renyi(9, 0.9, seed=seed, connected="retry"),
    "random_regular": lambda seed: graphs.random_regular(20, 4, seed=seed, connected="retry"),
    "cubic": lambda seed: graphs.random_regular(14, 3, seed=seed, connected="retry"),
    "dense regular": lambda seed: graphs.random_regular(9, 6, seed=seed),
    "barabasi_albert": lambda seed: graphs.barabasi_albert(70, 3, seed=seed),
    "watts_strogatz": lambda seed: graphs.watts_strogatz(40, 4, 0.3, seed=seed, connected="retry"),
    "full watts_strogatz": lambda seed: graphs.watts_strogatz(7, 6, 1.0, seed=seed),
    "dense watts_strogatz": lambda seed: graphs.watts_strogatz(15, 12, 0.7, seed=seed),
    "stochastic_block": lambda seed: graphs.stochastic_block(
        [9, 1, 20], BLOCKS, seed=seed, connected="largest"
    ),
    "geometric": lambda seed: graphs.geometric(50, 0.2, seed=seed, connected="largest"),
}


def assert_contract(graph: Graph) -> None:
    nodes = graph.node_count
    rows = np.repeat(np.arange(nodes), np.diff(graph.indptr))
    keys = rows * nodes + graph.indices
    assert (np.diff(keys) > 0).all(), "rows ascend, without double edges"
    assert (rows != graph.indices).all(), "no loops"
    assert np.array_equal(np.sort(graph.indices * np.int64(nodes) + rows), keys), "symmetric"
    assert sparse.csgraph.connected_components(graph.adjacency())[0] == 1
    assert graph.indptr.dtype == graph.indices.dtype == np.int32
    for array in (graph.indptr, graph.indices, graph.degrees, graph.neighbours(0)):
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    assert len(graph) == nodes
    assert graph.degrees.sum() == 2 * graph.edge_count
    assert graph.edges().shape == (graph.edge_count, 2)
    assert graph.is_bipartite == nx.is_bipartite(graphs.to_networkx(graph))
    # Every way of taking it apart leads back to the same graph.
    assert Graph(graph.indptr, graph.indices) == graph
    assert graphs.from_edges(graph.edges()[:, ::-1], nodes) == graph
    assert graphs.from_scipy(graph.adjacency()) == graph
    assert graphs.from_networkx(graphs.to_networkx(graph)) == graph
    for twin in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert twin == graph
        assert hash(twin) == hash(graph)
        assert twin.family == graph.family
        assert not twin.indices.flags.writeable


@pytest.mark.parametrize("name", FIXED)
def test_fixed_families_are_those_of_networkx(name):
    generator, arguments, reference = FIXED[name]
    graph = generator(*arguments)
    assert_contract(graph)
    if reference is not None:
        # Sorted labels give the same numbering: rows first, then columns; bits as binary.
        twin = reference(*arguments)
        ordered = nx.Graph()
        ordered.add_nodes_from(sorted(twin))
        ordered.add_edges_from(twin.edges)
        assert graph == graphs.from_networkx(ordered)


@settings(deadline=None)
@given(rows=st.integers(1, 5), columns=st.integers(1, 5))
def test_torus_of_any_side_is_simple(rows, columns):
    graph = graphs.torus(rows, columns)
    assert_contract(graph)
    extra = {1: 0, 2: 1}
    assert (graph.degrees == extra.get(rows, 2) + extra.get(columns, 2)).all()
    assert graphs.torus(1, columns) == graphs.ring(columns)


def test_family_is_set_where_closed_forms_hold():
    assert graphs.ring(3).family == ("ring", 3)
    assert graphs.ring(2).family == graphs.torus(2, 5).family == graphs.grid(3, 3).family == ()
    assert graphs.torus(3, 4).family == ("torus", 3, 4)
    assert graphs.hypercube(0).family == ("hypercube", 0)
    assert graphs.complete(4).family == ("complete", 4)
    assert graphs.star(4).family == ("star", 4)
    assert graphs.ring(3) == graphs.complete(3), "but they are not part of equality"
    assert hash(graphs.ring(3)) == hash(graphs.complete(3))


def test_graph_reads_as_a_value():
    graph = graphs.ring(5)
    assert repr(graph) == "Graph(5 nodes, 5 edges)"
    assert repr(graphs.complete(2)) == "Graph(2 nodes, 1 edge)"
    assert graph != graphs.ring(6)
    assert graph != "ring"
    assert graph.adjacency().dtype == np.float64
    with pytest.raises(AttributeError):
        graph.indptr = graph.indices
    with pytest.raises(IndexError, match=r"node -1 is not in 0\.\.4"):
        graph.neighbours(-1)


def test_too_many_nodes_are_refused():
    with pytest.raises(ValueError, match=r"2147483646 nodes.*1000000000001"):
        graphs.from_edges([(0, 1), (1, 10**12)])


def test_too_many_edges_are_refused(monkeypatch):
    monkeypatch.setattr(sparse_rows, "MAX_ENTRIES", 5)
    for make in (lambda: graphs.ring(3), lambda: Graph([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])):
        with pytest.raises(ValueError, match=r"2 edges .*got 3"):
            make()


def test_constructor_sorts_rows_and_copies():
    indices = np.array([2, 1, 0, 2, 1, 0])
    graph = Graph([0, 2, 4, 6], indices)
    assert graph == graphs.complete(3)
    indices[:] = 0
    assert graph == graphs.complete(3)


@settings(deadline=None, max_examples=25)
@given(seed=SEEDS)
@pytest.mark.parametrize("name", RANDOM)
def test_random_graphs_keep_the_contract(name, seed):
    graph = RANDOM[name](seed)
    assert_contract(graph)
    assert RANDOM[name](np.random.default_rng(seed)) == graph
    assert RANDOM[name](np.random.SeedSequence(seed)) == graph


@settings(deadline=None, max_examples=50)
@given(data=st.data(), nodes=st.integers(1, 12), seed=SEEDS)
def test_random_regular_of_every_degree(data, nodes, seed):
    degree = data.draw(st.integers(0, nodes - 1).filter(lambda degree: nodes * degree % 2 == 0))
    graph = graphs.random_regular(nodes, degree, seed=seed, connected="largest")
    assert (graph.degrees == degree).all()


@settings(deadline=None, max_examples=50)
@given(data=st.data(), nodes=st.integers(2, 40), seed=SEEDS)
def test_barabasi_albert_joins_distinct_earlier_nodes(data, nodes, seed):
    attachments = data.draw(st.integers(1, nodes - 1))
    edges = graphs.barabasi_albert(nodes, attachments, seed=seed).edges()
    newcomers = np.bincount(edges[:, 1], minlength=nodes)
    assert (newcomers[attachments + 1 :] == attachments).all()
    assert len(edges) == attachments * (nodes - attachments)


@pytest.mark.parametrize("rewiring", [0, 1])
def test_watts_strogatz_starts_from_the_lattice_and_keeps_its_edges(rewiring):
    graph = graphs.watts_strogatz(200, 6, rewiring, seed=3)
    lattice = graphs.from_networkx(nx.watts_strogatz_graph(200, 6, 0))
    assert graph.edge_count == lattice.edge_count
    assert graph.degrees.min() >= 3, "each edge keeps its first end"
    assert (graph == lattice) == (rewiring == 0)


@given(st.integers(0, 10**15))
def test_positions_of_pairs(position):
    (i,), (j,) = pairs.pair_at(np.array([position]))
    assert 0 <= i < j
    assert j * (j - 1) // 2 + i == position


@given(st.lists(st.integers(0, 500), unique=True), st.integers(0, 10**12), st.integers(1, 7))
def test_pairs_at_ascending_positions(gaps, first, block):
    positions = first + np.array(sorted(gaps), dtype=np.int64) ** 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "BLOCK", block)
        np.testing.assert_array_equal(pairs.narrow_pairs_at(positions), pairs.pair_at(positions))


def fit(counts: Counter, probabilities: dict, draws: int) -> float:
    """Return the p-value of Pearson's test of observed counts against exact probabilities."""
    assert set(counts) <= set(probabilities)
    statistic = sum((counts[k] - draws * p) ** 2 / (draws * p) for k, p in probabilities.items())
    return float(chdtrc(len(probabilities) - 1, statistic))


@pytest.mark.parametrize("probability", [0.3, 0.6])
def test_successes_are_independent(probability):
    rng, trials, draws = np.random.default_rng(1), 5, 10_000
    counts = Counter(
        tuple(independent_edges._successes(rng, trials, probability)) for _ in range(draws)
    )
    law = {
        subset: probability**size * (1 - probability) ** (trials - size)
        for size in range(trials + 1)
        for subset in combinations(range(trials), size)
    }
    assert fit(counts, law, draws) > 1e-4  # fails by chance 1e-4


def test_successes_continue_after_short_gaps():
    class ShortSteps:
        def geometric(self, probability, size):
            return np.ones(3, dtype=np.int64)

    assert independent_edges._successes(ShortSteps(), 10, 0.5).tolist() == list(range(10))


def test_erdos_renyi_has_a_binomial_number_of_edges_anywhere():
    nodes, probability, draws = 60, 0.3, 400
    drawn = [graphs.erdos_renyi(nodes, probability, seed=seed) for seed in range(draws)]
    counts = np.array([graph.edge_count for graph in drawn])
    pairs = nodes * (nodes - 1) / 2
    variance = pairs * probability * (1 - probability)
    assert abs(counts.mean() - pairs * probability) < 4 * (variance / draws) ** 0.5  # 6e-5
    assert abs(counts.var() / variance - 1) < 4 * (2 / draws) ** 0.5  # about 1e-4
    together = sum(graph.adjacency().toarray() for graph in drawn)
    frequency = together[np.triu_indices(nodes, 1)] / draws
    # Each of 1770 pairs within 5 standard deviations: fails by chance 1e-3.
    assert abs(frequency - probability).max() < 5 * (probability * (1 - probability) / draws) ** 0.5


def test_stochastic_block_has_the_density_of_each_block():
    sizes, chances = [150, 250], np.array([[0.2, 0.05], [0.05, 0.1]])
    matrix = graphs.stochastic_block(sizes, chances, seed=1).adjacency().toarray()
    bounds = [slice(0, 150), slice(150, 400)]
    for a, b in product(range(2), range(2)):
        pairs = sizes[a] * sizes[b] if a != b else sizes[a] * (sizes[a] - 1) / 2
        count = matrix[bounds[a], bounds[b]].sum() / (1 if a != b else 2)
        deviation = (pairs * chances[a, b] * (1 - chances[a, b])) ** 0.5
        assert abs(count - pairs * chances[a, b]) < 4 * deviation  # 2e-4 over the three


def test_geometric_joins_exactly_the_near():
    graph = graphs.geometric(300, 0.15, seed=4)
    points = np.random.default_rng(4).random((300, 2))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    near = (distance <= 0.15) & (distance > 0)
    assert np.array_equal(graph.adjacency().toarray(), near)


def exact_barabasi_albert_of_two(nodes: int) -> dict:
    """The law with two attachments, by enumeration of the pairs each newcomer can choose."""
    law = {((0, 2), (1, 2)): 1.0}
    for newcomer in range(3, nodes):
        following = Counter()
        for edges, chance in law.items():
            degree = Counter(end for edge in edges for end in edge)
            for chosen in combinations(range(newcomer), 2):
                one, other = (degree[node] / degree.total() for node in chosen)
                both = one * other * (1 / (1 - one) + 1 / (1 - other))
                following[edges + tuple((target, newcomer) for target in chosen)] += chance * both
        law = dict(following)
    return law


def test_barabasi_albert_has_its_exact_distribution():
    # Six nodes are the fewest where two newcomers are solved together, one reading the other.
    rng, draws = np.random.default_rng(1), 8000
    law = {frozenset(edges): chance for edges, chance in exact_barabasi_albert_of_two(6).items()}
    assert sum(law.values()) == pytest.approx(1)
    counts = Counter(
        frozenset(map(tuple, graphs.barabasi_albert(6, 2, seed=rng).edges().tolist()))
        for _ in range(draws)
    )
    assert fit(counts, law, draws) > 1e-4  # fails by chance about 1e-4


def test_barabasi_albert_has_the_hubs_of_networkx():
    nodes, attachments = 2000, 3
    ours = [graphs.barabasi_albert(nodes, attachments, seed=seed).degrees for seed in range(12)]
    theirs = [
        np.array([d for _, d in nx.barabasi_albert_graph(nodes, attachments, seed=seed).degree])
        for seed in range(12)
    ]
    assert np.mean(ours) == np.mean(theirs)
    for threshold in (5, 10, 20, 40):  # the tail P(degree > t), about 2 m^2 / t^2
        tail, other = (np.array([(d > threshold).mean() for d in them]) for them in (ours, theirs))
        deviation = ((tail.var() + other.var()) / 11) ** 0.5
        assert abs(tail.mean() - other.mean()) < 5 * deviation  # 3e-4 over the four (Student, 22)


@pytest.mark.parametrize(("nodes", "degree"), [(6, 2), (6, 3)])
def test_small_regular_graphs_are_uniform(nodes, degree):
    # 70 graphs: 60 hexagons and 10 pairs of triangles, or their complements. Degree 3 is
    # always connected; for degree 2 we look at hexagons alone.
    rng, draws = np.random.default_rng(1), 4000
    counts = Counter(
        graphs.random_regular(nodes, degree, seed=rng, connected="retry") for _ in range(draws)
    )
    assert len(counts) == (60 if degree == 2 else 70)
    assert fit(counts, dict.fromkeys(counts, 1 / len(counts)), draws) > 1e-4  # chance 1e-4


def test_large_regular_graphs_have_the_triangles_of_a_uniform_one():
    # Short cycles of a uniform d-regular graph are asymptotically Poisson, with mean
    # (d - 1)^3 / 6 = 20.8 triangles for d = 6.
    triangles = []
    for seed in range(60):
        adjacency = graphs.random_regular(1000, 6, seed=seed).adjacency()
        triangles.append((adjacency @ adjacency).multiply(adjacency).sum() / 6)
    mean = 5**3 / 6
    assert abs(np.mean(triangles) - mean) < 4.5 * (mean / 60) ** 0.5  # 1e-5, plus O(1/n)


def test_watts_strogatz_rewires_the_right_share_uniformly():
    nodes, degree, rewiring = 3000, 6, 0.2
    edges = graphs.watts_strogatz(nodes, degree, rewiring, seed=5).edges()
    gap = edges[:, 1] - edges[:, 0]
    distance = np.minimum(gap, nodes - gap)
    moved = (distance > degree // 2).sum()
    total = nodes * degree // 2
    deviation = (total * rewiring * (1 - rewiring)) ** 0.5
    assert abs(moved - total * rewiring) < 4.5 * deviation  # 1e-5; landing near again is 1e-3 of it
    far = distance[distance > degree // 2] / (nodes / 2)
    assert abs(far.mean() - 0.5) < 5 * (1 / 12 / far.size) ** 0.5  # 6e-7, uniform on the ring


PIECES = [(0, 1), (2, 3), (3, 4), (4, 2)]


def test_a_graph_in_pieces_is_refused_with_its_sizes():
    with pytest.raises(DisconnectedGraphError) as caught:
        graphs.from_edges(PIECES, nodes=7)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.component_count, error.largest_component) == (4, 3)
    facts = "4 components", "3 of 7 nodes", "from node 2 to 0, 1, 5 and 6", 'connected="largest"'
    for part in facts:
        assert part in str(error)


def test_the_largest_piece_keeps_its_order():
    triangle = graphs.complete(3)
    assert graphs.from_edges(PIECES, nodes=7, connected="largest") == triangle
    matrix = sparse.coo_array((np.ones(4), np.array(PIECES).T), shape=(5, 5))
    assert graphs.from_scipy(matrix + matrix.T, connected="largest") == triangle
    assert graphs.from_networkx(nx.Graph(PIECES), connected="largest") == triangle
    assert graphs.from_edges([(4, 1), (4, 3), (0, 2)], connected="largest") == graphs.from_edges(
        [(2, 0), (2, 1)]
    )
    assert graphs.from_edges([(0, 2), (3, 2)], connected="largest").family == ()


def test_disconnected_draws():
    with pytest.raises(DisconnectedGraphError, match='"retry"'):
        graphs.erdos_renyi(50, 0.01, seed=1)
    with pytest.raises(DisconnectedGraphError, match="none of 5 draws was connected"):
        graphs.erdos_renyi(50, 0.01, seed=1, connected="retry")
    sparse_graph = {"nodes": 30, "probability": 0.1, "seed": 0}
    with pytest.raises(DisconnectedGraphError):
        graphs.erdos_renyi(**sparse_graph)
    assert graphs.erdos_renyi(**sparse_graph, connected="retry").node_count == 30
    assert graphs.erdos_renyi(5, 0, seed=1, connected="largest") == graphs.complete(1)
    assert graphs.erdos_renyi(5, 1e-300, seed=1, connected="largest") == graphs.complete(1)
    assert graphs.erdos_renyi(5, 1, seed=1) == graphs.complete(5)


def test_from_edges_merges_repeats_and_directions():
    edges = np.array([[0, 1], [1, 0], [0, 1], [2, 1]], dtype=np.uint8)
    assert graphs.from_edges(edges) == graphs.grid(1, 3)
    assert graphs.from_edges([], nodes=1) == graphs.complete(1)


@pytest.mark.parametrize(
    "form", [np.asarray, sparse.coo_matrix, sparse.csc_array, sparse.csr_array, sparse.lil_array]
)
def test_from_scipy_accepts_every_format_unchanged(form):
    dense = graphs.star(4).adjacency().toarray() * -2.5
    matrix = form(dense)
    assert graphs.from_scipy(matrix) == graphs.star(4)
    assert np.array_equal(matrix if form is np.asarray else matrix.toarray(), dense)


def test_from_scipy_ignores_stored_zeros():
    matrix = sparse.csr_array(([1.0, 1.0, 0.0], ([0, 1, 0], [1, 0, 0])), shape=(2, 2))
    assert graphs.from_scipy(matrix) == graphs.complete(2)


def test_from_networkx_numbers_nodes_in_their_order():
    graph = nx.Graph([("hub", "b"), ("hub", "a")])
    assert graphs.from_networkx(graph) == graphs.star(3)


def test_to_networkx_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"\[networkx\]"):
        graphs.to_networkx(graphs.ring(3))


@pytest.mark.parametrize(
    "text",
    [
        "0 1\n1 2\n2 0\n",
        "# a triangle\n\n0 1  # first\n1\t2\n\n2 0",
        "0,1\n1 , 2\n2, 0\n0,2\n",
        "0,1\n1 2\n2\t0\n",  # mixed: only the careful reader takes it
        "id_1,id_2\n0,1\n1,2\n2,0\n",  # with a header, as SNAP's newer files have
        "\ufeff# saved by an editor that marks the start\n0 1\n1 2\n2 0\n",
    ],
)
def test_read_edge_list(tmp_path, text):
    path = tmp_path / "edges.txt"
    path.write_text(text, encoding="utf-8")
    assert graphs.read_edge_list(path) == graphs.complete(3)
    assert graphs.read_edge_list(str(path)) == graphs.complete(3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no edges"),
        ("# nothing\n\n", "no edges"),
        ("0\n1\n", "line 1:"),
        ("0,1\n1,,2\n", "line 2"),
        ("north wing oslo\noslo rome\n", "line 1: .*comma"),
        ("0 1\n2 3\n", "2 components"),
    ],
)
def test_read_edge_list_names_the_line(tmp_path, text, message):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        graphs.read_edge_list(path)
    assert "edges.txt" in str(caught.value) or "components" in message


def test_read_edge_list_as_snap_publishes_them(tmp_path):
    """Directed, numbered with gaps, in pieces, with comments and tabs, compressed."""
    path = tmp_path / "p2p-example.txt.gz"
    text = "# Directed graph\n# FromNodeId\tToNodeId\n3\t9\n9\t3\n9\t20\n20\t3\n100\t101\n"
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.warns(UserWarning, match=r"numbered 0 to 4 .* '3', '9', '20'"):
        assert graphs.read_edge_list(path, connected="largest") == graphs.complete(3)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("0 1 0.5\n1 2 7\n2 0 1\n", "first two of 3 columns"),
        ("0,1,5\n1,2,3\n2,0,1\n", "first two of 3 columns"),
        ("0 1\n1 1\n1 2\n2 0\n", "left out 1 edge"),
        ("0 1\n1 1\n2 2\n1 2\n2 0\n", "left out 2 edges"),
        ("from,to,km\n0,1,5\n1,2,3\n2,0,1\n", "first two of 3 columns"),
        ("from,to\n0,1\n1 2\n2,0\n", "line 1, 'from,to',"),
        ("% konect\n1 2\n2 3\n3 1\n", "numbered 0 to 2"),
        ("oslo;rome\nrome;new york\nnew york;oslo\n", "'new york', 'oslo' and 'rome'"),
    ],
)
def test_read_edge_list_warns_of_other_formats(tmp_path, text, warning):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.warns(UserWarning, match=warning):
        assert graphs.read_edge_list(path) == graphs.complete(3)


def test_an_edge_list_that_is_damaged(tmp_path):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"0 1\n1 2\n" * 1000)[:-20])
    with pytest.raises(ValueError, match="no edge list"):
        graphs.read_edge_list(path)


BAD = {
    "no nodes": (lambda: Graph([0], []), "one node"),
    "indptr short": (lambda: Graph([0, 1, 1], [1, 0]), "rise from 0 to 2"),
    "indptr falls": (lambda: Graph([0, 2, 1, 2], [1, 0]), "falls in between"),
    "indptr start": (lambda: Graph([1, 1, 2], [1, 0]), "runs from 1 to 2"),
    "float indices": (lambda: Graph([0, 1, 2], [1.0, 0.0]), "^indices .*integers"),
    "matrix indices": (lambda: Graph([0, 1, 2], [[1, 0]]), "one-dimensional"),
    "index range": (lambda: Graph([0, 1, 2], [1, 2]), r"edge \(1, 2\) has a node .* 0\.\.1"),
    "negative index": (lambda: Graph([0, 1, 2], [-1, 0]), r"edge \(0, -1\) has a node"),
    "loop": (lambda: Graph([0, 1, 3], [1, 0, 1]), r"edge \(1, 1\) is a self"),
    "double": (lambda: Graph([0, 2, 4], [1, 1, 0, 0]), r"edge \(0, 1\) occurs twice"),
    "one way": (lambda: Graph([0, 1, 3, 3], [1, 0, 2]), r"edge \(1, 2\) has no reverse"),
    "one way back": (lambda: Graph([0, 0, 1], [0]), r"edge \(1, 0\) has no reverse"),
    "alone": (lambda: Graph([0, 1, 2, 2], [1, 0]), "from node 0 to 2"),
    "edge loop": (lambda: graphs.from_edges([(0, 1), (1, 1)]), r"edge \(1, 1\) is a self"),
    "edge range": (lambda: graphs.from_edges([(0, 5)], 3), r"edge \(0, 5\) has a node .* 0\.\.2"),
    "edge sign": (lambda: graphs.from_edges([(0, 1), (-1, 0)]), r"edge \(-1, 0\)"),
    "edge floats": (lambda: graphs.from_edges([(0.0, 1.0)]), "whole numbers"),
    "edge triples": (lambda: graphs.from_edges([(0, 1, 2)]), r"without weights, got \[0, 1, 2\]"),
    "no edges": (lambda: graphs.from_edges([]), "number of nodes"),
    "zero nodes": (lambda: graphs.from_edges([], 0), "one node"),
    "edge choice": (lambda: graphs.from_edges([(0, 1)], connected="retry"), '"error" or "largest"'),
    "matrix shape": (lambda: graphs.from_scipy(np.ones((2, 3))), "square"),
    "matrix diagonal": (lambda: graphs.from_scipy(np.eye(2)), r"edge \(0, 0\) is a self"),
    "matrix one way": (lambda: graphs.from_scipy(np.eye(3, k=1)), r"edge \(0, 1\) has no reverse"),
    "directed": (lambda: graphs.from_networkx(nx.DiGraph([(0, 1)])), "to_undirected"),
    "multigraph": (lambda: graphs.from_networkx(nx.MultiGraph([(0, 1)])), r"networkx\.Graph\("),
    "networkx loop": (lambda: graphs.from_networkx(nx.Graph([("a", "a")])), "node 'a' has a self"),
    "networkx empty": (lambda: graphs.from_networkx(nx.Graph()), "one node"),
    "ring": (lambda: graphs.ring(0), "^nodes"),
    "grid": (lambda: graphs.grid(3, 0), "^columns"),
    "torus": (lambda: graphs.torus(-1, 3), "^rows"),
    "complete": (lambda: graphs.complete(0), "^nodes"),
    "star": (lambda: graphs.star(0), "^nodes"),
    "hypercube": (lambda: graphs.hypercube(-1), "^dimension"),
    "barbell": (lambda: graphs.barbell(1, 3), "^clique_size"),
    "barbell path": (lambda: graphs.barbell(3, -1), "^path_length"),
    "probability": (lambda: graphs.erdos_renyi(5, 1.5), "^probability"),
    "nan": (lambda: graphs.erdos_renyi(5, np.nan), "^probability"),
    "choice": (lambda: graphs.erdos_renyi(5, 0.5, connected="no"), '"retry" or "largest", .*no'),
    "parity": (lambda: graphs.random_regular(5, 3), r"must be even, got 5 \* 3"),
    "degree": (lambda: graphs.random_regular(5, 5), "^degree"),
    "attachments": (lambda: graphs.barabasi_albert(5, 5), "^attachments"),
    "odd degree": (lambda: graphs.watts_strogatz(9, 3, 0.1), "^degree .*even"),
    "rewiring": (lambda: graphs.watts_strogatz(9, 2, -0.1), "^rewiring"),
    "radius": (lambda: graphs.geometric(5, 0), "^radius"),
    "no family": (lambda: draw_family("rng", 5), "Did you mean 'ring'"),
    "sizes": (lambda: graphs.stochastic_block([3, 0], np.eye(2)), r"sizes\[1\]"),
    "no sizes": (lambda: graphs.stochastic_block([], []), "each of the 0 sizes"),
    "blocks": (lambda: graphs.stochastic_block([3], np.eye(2)), r"got shape \(2, 2\)"),
    "block range": (lambda: graphs.stochastic_block([3], [[2]]), "between 0 and 1"),
    "block sides": (lambda: graphs.stochastic_block([2, 2], [[1, 0.5], [0.1, 1]]), "symmetric"),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_named(name):
    mistake, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        mistake()


def test_sizes_are_whole_numbers():
    assert graphs.ring(np.int64(4)) == graphs.ring(4)
    with pytest.raises(ValueError, match=r"nodes .*4\.5"):
        graphs.ring(4.5)
