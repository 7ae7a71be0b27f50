"""One port for every service: requests in, routed by Ingresses, HTTPRoutes and VirtualServices to ready endpoints.

It also answers for the cluster's DNS: processes of the node are given it as their HTTP proxy, so that a transformer
reaches `http://iris-predictor.default` by the name it was written with.

`proxy` answers every request: a rule of `routes` says where it goes, `endpoints` which server takes it, and
`forwarding` passes it on. `server` keeps the routes current and opens the ports (`listener`).
"""
