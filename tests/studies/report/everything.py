"""A study with everything that a page can show, and with texts that are scripts."""

HOSTILE = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"

# Three methods that differ in epsilon alone.
LAPLACE = "\n".join(
    f'laplace-{epsilon} = {{ walk = "weighted", mechanism = "laplace", epsilon = {epsilon}, '
    'delta = 0, bounds = [0.5, 100.0], graphs = ["er"], problems = ["a"] }'
    for epsilon in (1, 3, 9)
)

STUDY = f"""
name = "everything"
question = "Is this safe? {HOSTILE}"
seed = 1
instances = 12
updates = 200
records = 12
metric = "average_gap"
facts = true

[graphs]
er = {{ family = "erdos_renyi", nodes = 12, probability = 0.5 }}
ring = {{ family = "ring", nodes = 11 }}

[problems]   # a full grid over two numbers: a map
a = {{ data = "two_gaussians", dimension = 2, variance = 1.0, penalty = 0.5 }}
b = {{ data = "two_gaussians", dimension = 2, variance = 1.0, penalty = 1.0 }}
c = {{ data = "two_gaussians", dimension = 2, variance = 4.0, penalty = 0.5 }}
d = {{ data = "two_gaussians", dimension = 2, variance = 4.0, penalty = 1.0 }}

[methods]
uniform = {{ walk = "uniform" }}
weighted = {{ walk = "weighted" }}
gossip = {{ gossip = "asynchronous" }}
"<img src=x onerror='window.hacked = 1'>" = {{ walk = "simple", graphs = ["er"], problems = ["a"] }}
{LAPLACE}
[step_sizes.printed]
constant = 0.02
exponent = 0.75

[[claims]]
kind = "beats"
text = "The weighted walk beats the uniform one {HOSTILE}"
source = "{HOSTILE}"
better = "weighted"
worse = "uniform"
metrics = ["average_gap", "distance"]
at = [50, 200]

[[claims]]
kind = "rank"
text = "The mixing time ranks graphs"
methods = ["uniform"]
by = "mixing_time"

[[claims]]
kind = "cost-to-target"
text = "The uniform walk gets there before gossip"
better = "uniform"
worse = "gossip"
metrics = ["distance"]
target = 0.8
relative = true
cost = ["updates", "messages"]
"""
