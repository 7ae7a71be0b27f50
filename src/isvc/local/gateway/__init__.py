"""One port for every service: HTTP/1.1 in, routed by Ingress and HTTPRoute objects to ready endpoints.

It also answers for the cluster's DNS: processes of the node are given it as their HTTP proxy, so that a transformer
reaches `http://iris-predictor.default` by the name it was written with.
"""
