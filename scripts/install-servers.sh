#!/usr/bin/env bash
# Installs what the tests start: the servers of the module integration, and the
# programs that package layered shares locks with. By apt-get where that is allowed;
# otherwise it says what to install. Quick when nothing is missing.
set -euo pipefail

# program:package of Debian. PostgreSQL keeps its programs out of PATH.
wanted=(
  redis-server:redis-server redis-cli:redis-tools postgres:postgresql pgbouncer:pgbouncer
  node:nodejs npm:npm flock:util-linux
)

has() {
  command -v "$1" >/dev/null || [[ -x /usr/sbin/$1 ]] || compgen -G "/usr/lib/postgresql/*/bin/$1" >/dev/null
}

missing=()
for pair in "${wanted[@]}"; do has "${pair%%:*}" || missing+=("${pair##*:}"); done
((${#missing[@]})) || exit 0

advise() {
  echo "install-servers: $1: the tests need ${missing[*]}" >&2
  echo "install-servers: on Debian or Ubuntu: sudo apt-get install ${missing[*]}" >&2
  exit 1
}

command -v apt-get >/dev/null || advise "there is no apt-get here"
as_root=()
if ((EUID != 0)); then
  sudo -n true 2>/dev/null || advise "this user may not run apt-get"
  as_root=(sudo -n)
fi

# The tests start servers of their own: the packages must not start theirs.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq || advise "apt-get update went wrong"
"${as_root[@]}" apt-get install -qq --no-install-recommends "${missing[@]}" >/dev/null || advise "apt-get install went wrong"
for pair in "${wanted[@]}"; do has "${pair%%:*}" || advise "${pair%%:*} is still missing"; done
