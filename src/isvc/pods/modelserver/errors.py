"""What the model server answers when it says no; words and codes are those of KServe's servers.

ServingError
├── InvalidInput      400
├── ModelNotFound     404
├── InferenceError    500  the model raised
├── Unsupported       501
├── ModelNotReady     503
└── PredictorError    whatever the predictor behind a transformer answered
ModelFileError        a model could not be loaded: the program ends
"""

from __future__ import annotations


class ServingError(Exception):
    status = 500


class InvalidInput(ServingError):
    status = 400


class ModelNotFound(ServingError):
    status = 404

    def __init__(self, name: str) -> None:
        super().__init__(f"Model with name {name} does not exist.")


class InferenceError(ServingError):
    pass


class Unsupported(ServingError):
    status = 501


class ModelNotReady(ServingError):
    status = 503

    def __init__(self, name: str) -> None:
        super().__init__(f"Model with name {name} is not ready.")


class PredictorError(ServingError):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ModelFileError(Exception):
    """No model file, more than one, or one that does not load."""
