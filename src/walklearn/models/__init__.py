"""Trained models: prediction, a directory to save them in, exports to other tools.

The directory contains `model.json` (the model and its training), `weights.npz` (the last iterate w
and the average w̄), `ledger.json` (the releases and their cost) and `report.md` (a summary for
people). It contains no pickle, so loading a model runs no code from it.

>>> import tempfile
>>> model = Model(weights=[2.0, -1.0], average=[1.0, -1.0], loss="logistic",
...               columns=["age"], classes=["no", "yes"], intercept=True, updates=1000)
>>> model.predict({"age": [0.5, 3.0]}).tolist()      # w̄: 1·age − 1
['no', 'yes']
>>> with tempfile.TemporaryDirectory() as folder:
...     model.save(f"{folder}/mine")
...     Model.load(f"{folder}/mine").predict([[3.0]]).tolist()
['yes']
"""

from walklearn.models.directory import ModelFileError
from walklearn.models.model import Model

__all__ = ["Model", "ModelFileError"]
