"""The configuration of the whole control plane: the `inferenceservice-config` ConfigMap.

`sections`   one struct for each key of the ConfigMap, with its defaults
`configmap`  the ConfigMap parsed into one `Config`
`current`    the configuration in force: the newest one that could be parsed
"""

from isvc.serving.config.configmap import CONFIG_MAP, Config, ConfigError

__all__ = ["CONFIG_MAP", "Config", "ConfigError"]
