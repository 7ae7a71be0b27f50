"""The kinds of the Gateway API: which Gateways are ours, which routes they take, and the statuses that say so."""
