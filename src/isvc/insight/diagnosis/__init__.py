"""Why a service is not ready, or not as it should be: observed objects in, findings out.

`gather` reads from a cluster, with `snapshot`, `plans` and `dry_runs`. Everything else is pure: each cause is one small
function from evidence to findings, and `diagnose` tries them in the order in which one cause hides another. It asks the
plan of the controllers what should exist, and children, pods and events why it does not; the words of the status come
last.
"""
