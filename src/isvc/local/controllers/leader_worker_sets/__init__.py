"""LeaderWorkerSets: groups of pods that start, fail and are replaced together."""
