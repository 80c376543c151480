"""A trained model: predict with it, keep it in a directory, hand it to other tools.

The directory holds `model.json` (what the model is and how it was trained), `weights.npz` (the
last iterate w and the average w̄), `ledger.json` (what was published, at what cost) and
`report.md` (the same for people). Nothing in it is code: no pickle is ever read or written.

>>> import tempfile
>>> model = Model(weights=[2.0, -1.0], average=[1.0, -1.0], kind="classifier", loss="logistic",
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
