#!/usr/bin/env bash
# A scheduler in bash, curl and jq: every five seconds it binds each pending pod to a random node without unfinished
# pods.
#
#     batkube run … --scheduler preload:examples/programs/bash_scheduler.sh
#
# It uses the API of `kubectl proxy`, or of $BATKUBE_PROXY, and does not depend on Batkube.
set -euo pipefail
api=${BATKUBE_PROXY:-http://127.0.0.1:8001}/api/v1
RANDOM=${BATKUBE_SEED:-$$} # the default seed of bash, its process id, is different in each run

bind() { # POD NODE
    curl --silent --fail --output /dev/null --header 'Content-Type: application/json' "$api/namespaces/default/pods/$1/binding" --data "{
        \"apiVersion\": \"v1\", \"kind\": \"Binding\", \"metadata\": {\"name\": \"$1\"},
        \"target\": {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"name\": \"$2\"}}"
    echo "$(date --utc +%FT%TZ) $1 on $2"
}

while true; do
    pods=$(curl --silent --fail "$api/namespaces/default/pods")
    taken=$(jq '[.items[] | select(.status.phase | IN("Succeeded", "Failed") | not) | .spec.nodeName // empty]' <<<"$pods")
    mapfile -t free < <(curl --silent --fail "$api/nodes" | jq -r --argjson taken "$taken" '.items[].metadata.name | select(IN($taken[]) | not)')
    for pod in $(jq -r '.items[] | select(.spec.nodeName == null) | .metadata.name' <<<"$pods"); do
        ((${#free[@]})) || break
        place=$((RANDOM % ${#free[@]}))
        bind "$pod" "${free[place]}"
        unset "free[place]"
        free=("${free[@]}")
    done
    sleep 5
done
