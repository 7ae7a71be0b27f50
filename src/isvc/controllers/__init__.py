"""The controllers of our kinds, one folder each: observe, plan, apply, fold."""
