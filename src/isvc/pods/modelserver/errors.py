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

from typing import ClassVar


class ServingError(Exception):
    code: ClassVar[int] = 500

    @property
    def status(self) -> int:
        return self.code


class InvalidInput(ServingError):
    code = 400


class ModelNotFound(ServingError):
    code = 404

    def __init__(self, name: str) -> None:
        super().__init__(f"Model with name {name} does not exist.")


class InferenceError(ServingError):
    code = 500


class Unsupported(ServingError):
    code = 501


class ModelNotReady(ServingError):
    code = 503

    def __init__(self, name: str) -> None:
        super().__init__(f"Model with name {name} is not ready.")


class PredictorError(ServingError):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self._status = status

    @property
    def status(self) -> int:
        return self._status


class ModelFileError(Exception):
    """No model file, more than one, or one that does not load."""
