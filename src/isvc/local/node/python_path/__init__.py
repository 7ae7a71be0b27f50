"""A folder for the PYTHONPATH of pods, whose `sitecustomize` Python imports at its start."""

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
