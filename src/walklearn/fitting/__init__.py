"""From settings and rows to a trained model: what estimators, `train` and `advise` share."""
