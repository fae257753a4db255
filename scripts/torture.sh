#!/usr/bin/env bash
# Runs the heavy gates: the tests named TestGate... behind the build tag torture.
#
#   scripts/torture.sh            every gate
#   scripts/torture.sh Retention  the gates whose name begins with TestGateRetention
#
# A gate says what it measured by t.Log("GATE name: detail"). The last lines give
# one verdict for each. A gate that failed, was skipped or measured nothing fails
# the run, and so does a run without gates. Packages take turns, since some gates
# measure time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

status=0
for module in . integration; do
  [[ -f $module/go.mod ]] || continue
  (cd "$module" && go test -p=1 -count=1 -timeout=60m -tags=torture -run="^TestGate${1:-}" -v ./...) 2>&1 |
    tee -a "$log" || status=1
done

echo
awk -f scripts/gates.awk "$log" || status=1
exit "$status"
