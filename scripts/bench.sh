#!/usr/bin/env bash
# Runs the benchmarks of the root module and prints their medians as a table, with
# the ratios that matter.
#
#   scripts/bench.sh          every benchmark
#   scripts/bench.sh Price    those whose name matches
#
# ROUNDS is how often each runs, BENCHTIME how long. The rounds go through all of
# them in turn, so that a busy moment of the machine hits no single one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

pkgs=()
while IFS=' ' read -r path src; do
  grep -qs '^func Benchmark' "$src"/*_test.go || continue
  go test -c -o "$dir/${#pkgs[@]}.test" "$path"
  pkgs+=("$src")
done < <(go list -f '{{.ImportPath}} {{.Dir}}' ./...)

for ((round = 1; round <= ${ROUNDS:-15}; round++)); do
  for i in "${!pkgs[@]}"; do
    echo "round $round"
    (cd "${pkgs[i]}" && "$dir/$i.test" -test.run='^$' -test.bench="${1:-.}" \
      -test.benchtime="${BENCHTIME:-50ms}" -test.benchmem)
  done
done >"$dir/log" || { cat "$dir/log"; exit 1; }

awk -f scripts/bench.awk "$dir/log"
