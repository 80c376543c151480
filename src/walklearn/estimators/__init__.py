"""scikit-learn estimators that are trained by a model walking over a graph.

`RandomWalkClassifier` and `RandomWalkRegressor` fit a linear model as a network without a server
would: rows belong to nodes, and a token carries the model from neighbour to neighbour. They work
with pipelines, grid search, cross-validation and pandas like any other estimator.

>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> classifier = RandomWalkClassifier(random_state=1).fit(X, y)      # one row per node
>>> classifier.score(X, y) > 0.95
True

**What is private, and what is not.** Without `epsilon` nothing is: two consecutive models reveal
the gradient of the rows used between them. If a node has one row, that reveals the row. `epsilon`
and `delta` are the total for everything that leaves a node because of its rows, the model included,
with one row of a node (`protect="rows"`) or all of them ("node") as the unit. That needs public
facts, at best a typical centre and spread of every column (`schema`); clip, noise, steps and length
of the walk follow. docs/privacy.md explains it.
"""

from walklearn.extras import extra as _extra

with _extra("sklearn", "the estimators need"):
    from walklearn.estimators.classifier import RandomWalkClassifier
    from walklearn.estimators.mlflow_callback import MlflowCallback
    from walklearn.estimators.regressor import RandomWalkRegressor

__all__ = ["MlflowCallback", "RandomWalkClassifier", "RandomWalkRegressor"]
