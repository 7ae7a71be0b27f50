"""The embedded API server: Kubernetes' HTTP interface, admission, RBAC, custom resources and storage in one process."""
