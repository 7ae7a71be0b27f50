"""TrainedModels: models that are added to a running multi-model server, listed in a ConfigMap that it reads."""
