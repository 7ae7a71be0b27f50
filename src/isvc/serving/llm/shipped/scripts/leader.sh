# The address of the group's first pod, as a number: it may be bound to without asking DNS.
for _ in $(seq "${DP_ADDRESS_RESOLVE_ATTEMPTS:-30}"); do
  DP_ADDRESS=$(getent hosts "$LWS_LEADER_ADDRESS" | cut -d' ' -f1)
  [ -n "$DP_ADDRESS" ] && break
  sleep 1
done
DP_ADDRESS=${DP_ADDRESS:-$LWS_LEADER_ADDRESS}
echo "leader: $DP_ADDRESS"
