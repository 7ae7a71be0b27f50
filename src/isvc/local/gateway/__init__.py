"""One port for every service: Envoy, routed by Ingresses, HTTPRoutes and VirtualServices to ready endpoints.

It also answers for the cluster's DNS: processes of the node are given it as their HTTP proxy, so that a transformer
reaches `http://iris-predictor.default` by the name it was written with.

`routes` has what routes say, `endpoints` what they lead to, and `envoy` what Envoy makes of both; `publisher` tells it,
through `xds`. What Envoy cannot know it asks the `processor`: why nothing answers, when to wait, whom to pick.
"""

import os

# Without gRPC's own preparations for a fork: the node forks often, and only to start other programs.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
