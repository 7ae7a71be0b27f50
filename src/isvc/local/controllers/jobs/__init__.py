"""Job → Pods that run to their end, and CronJob → Jobs."""
