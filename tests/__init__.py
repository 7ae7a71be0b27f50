"""All tests. A package of its own, because a dependency (sklearn-pmml-model) installs another one of this name."""
