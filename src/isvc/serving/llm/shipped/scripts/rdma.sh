# Find the network cards that speak RoCE, and tell the libraries that move tensors between nodes.
if [ "$KSERVE_INFER_ROCE" = "true" ]; then
  protocol=${KSERVE_INFER_IB_GID_INDEX_GREP:-RoCE v2}
  cards=() ports=()
  declare -A votes
  for card in /sys/class/infiniband/mlx5_*; do
    port=$card/ports/1
    grep -qs ACTIVE "$port/state" || continue
    grep -qs "$protocol" "$port"/gid_attrs/types/* || continue
    cards+=("${card##*/}")
    ports+=("${card##*/}:1")
    for kind in "$port"/gid_attrs/types/*; do
      index=${kind##*/}
      if grep -qs "$protocol" "$kind" && grep -qs ffff: "$port/gids/$index"; then
        votes[$index]=$((${votes[$index]:-0} + 1))
        break
      fi
    done
  done
  if [ "${#cards[@]}" -gt 0 ]; then
    export NCCL_IB_HCA=${NCCL_IB_HCA:-$(IFS=,; echo "${cards[*]}")}
    export NVSHMEM_HCA_LIST=${NVSHMEM_HCA_LIST:-$(IFS=,; echo "${ports[*]}")}
    export UCX_NET_DEVICES=${UCX_NET_DEVICES:-$(IFS=,; echo "${ports[*]}")}
    # The index that most cards have; among equals 3, which virtual functions use.
    best=
    for index in 3 "${!votes[@]}"; do
      [ "${votes[$index]:-0}" -gt "${votes[${best:-none}]:-0}" ] && best=$index
    done
    export NCCL_IB_GID_INDEX=${NCCL_IB_GID_INDEX:-$best}
    export NVSHMEM_IB_GID_INDEX=${NVSHMEM_IB_GID_INDEX:-$NCCL_IB_GID_INDEX}
    export UCX_IB_GID_INDEX=${UCX_IB_GID_INDEX:-$NCCL_IB_GID_INDEX}
  fi
  echo "RoCE: cards=${cards[*]:-none} index=${NCCL_IB_GID_INDEX:-none}"
fi
