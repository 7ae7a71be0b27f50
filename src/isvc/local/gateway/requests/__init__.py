"""Requests and answers in the form that the whole gateway knows, whatever protocol they came by."""
