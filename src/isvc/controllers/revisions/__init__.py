"""Keeps earlier specs of services in ControllerRevisions, so that `isvc undo` can bring one back."""
