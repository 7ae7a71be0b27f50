"""What Envoy asks about requests that it cannot take to an endpoint by itself: whether to wait, where to go, why not.

The protocol is that of Envoy's external processing filter, which endpoint pickers of the Gateway API's inference
extension speak, too. Requests never come here, only questions about them.
"""
