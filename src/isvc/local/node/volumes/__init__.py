"""A pod's volumes: folders of this machine with what ConfigMaps, Secrets, tokens and images put into them."""
