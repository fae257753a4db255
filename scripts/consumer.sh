#!/usr/bin/env bash
# Fails if whoever uses fxlock alone gets the client of a server into their module: an
# application outside of this repository is made, and looked at.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
clients='github.com/redis/|go.etcd.io/|github.com/jackc/'

app=$(mktemp -d)
trap 'rm -rf "$app"' EXIT
cd "$app"
export GOWORK=off GOFLAGS="${GOFLAGS:-} -mod=mod"

cat >main.go <<'EOF'
package main

import (
	"go.uber.org/fx"

	"github.com/lockfx/lockfx/fxlock"
)

func main() {
	fx.New(fxlock.Module("nightly"), fx.Invoke(func(*fxlock.Lock) {})).Run()
}
EOF

# has_client reports whether the module requires, or can reach, a client.
has_client() { { cat go.mod && go list -m all; } | grep -E "$clients"; }

go mod init example.com/consumer 2>/dev/null
go mod edit -require github.com/lockfx/lockfx@v0.1.0 -replace "github.com/lockfx/lockfx=$root"
go mod tidy 2>/dev/null
go build -o /dev/null .
if has_client; then
  echo "consumer: the clients above reach an application that uses fxlock alone" >&2
  exit 1
fi

# The same look finds a client where there is one.
sed -i.bak 's|"github.com/lockfx/lockfx/fxlock"|_ "github.com/lockfx/lockfx/redisstore"\n\t&|' main.go
go mod edit -require github.com/lockfx/lockfx/redisstore@v0.1.0 -replace "github.com/lockfx/lockfx/redisstore=$root/redisstore"
go mod tidy 2>/dev/null
if ! has_client >/dev/null; then
  echo "consumer: a client that was planted was not found" >&2
  exit 1
fi
echo "consumer: ok"
