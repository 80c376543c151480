"""scikit-learn estimators that are trained by a model that walks over a graph.

`RandomWalkClassifier` and `RandomWalkRegressor` fit a linear model in the way of a network without
a server: rows belong to nodes, and a token carries the model between neighbours. They work with
pipelines, grid search, cross-validation and pandas.

>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> classifier = RandomWalkClassifier(random_state=1).fit(X, y)      # one row per node
>>> classifier.score(X, y) > 0.95
True

**Privacy.** Without `epsilon` nothing is protected: two consecutive models reveal the gradient of
the rows used between them, and so the row of a node with a single one. `epsilon` and `delta` are
the total for everything that leaves a node because of its rows, the model included; the unit is one
row of a node (`protect="rows"`) or all of them ("node"). They need public facts, at best a typical
centre and spread of each column (`schema`). docs/privacy.md explains it.
"""

from walklearn.extras import extra as _extra

with _extra("sklearn", "the estimators need"):
    from walklearn.estimators.classifier import RandomWalkClassifier
    from walklearn.estimators.mlflow_callback import MlflowCallback
    from walklearn.estimators.regressor import RandomWalkRegressor

__all__ = ["MlflowCallback", "RandomWalkClassifier", "RandomWalkRegressor"]
