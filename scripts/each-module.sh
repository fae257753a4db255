#!/usr/bin/env bash
# Runs a command in every module of this repository, and fails if it failed in one.
#
#   scripts/each-module.sh COMMAND [ARGUMENT ...]
#
# SKIP_MODULES names modules to leave out, by folder: SKIP_MODULES="tools bench".
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
failed=()
while IFS= read -r mod; do
  name=${mod#./}
  [[ " ${SKIP_MODULES:-} " == *" $name "* ]] && continue
  (cd "$root/$mod" && "$@") || failed+=("$name")
done < <(cd "$root" && find . -name '.?*' -prune -o -name testdata -prune -o -name go.mod -exec dirname {} \; | sort)

if ((${#failed[@]})); then
  echo "${1##*/}: failed in these modules: ${failed[*]}" >&2
  exit 1
fi
