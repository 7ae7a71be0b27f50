"""Knative Serving as far as KServe uses it: Services, Configurations, Revisions and Routes, scaled by their requests.

Service → Configuration → Revision → Deployment, and Service → Route → HTTPRoutes of the gateway, which does the work of
Knative's activator and queue-proxy: it counts requests, holds them while there is no pod, and sends a pod no more at a
time than it takes. Names, labels and conditions are those of Knative.
"""
