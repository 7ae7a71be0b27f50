"""The embedded API server: Kubernetes' HTTP interface, admission, RBAC, custom resources and storage in one process.

A request comes by `http`; `access` says whether it may, and `router` finds which of the `verbs` answers. What is
written passes the strategy of its kind (`resources`; the kinds are in `builtin` and `crd`) and `admission` into the
`store`.
"""
