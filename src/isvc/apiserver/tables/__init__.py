"""Tables for `kubectl get`: the usual columns of built-in kinds, a CRD's own, name and age for the rest."""
