package lockfx_test

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	liteDILock = "docs/migrating-from-lite-di-lock.md"
	loqkit     = "docs/migrating-from-loqkit.md"
)

// migrations has, for each page, what its tables need a row for. A row may name several.
var migrations = map[string][]string{
	liteDILock: strings.Fields(`
		Lock container store key ttlMs heartbeatMs now timers tokenName holderName onLost
		acquire() release() run(fn) tick() dispose() state held fencingToken
		store.acquire store.renew store.release MemoryStore bindLock NotAcquired AggregateError VERSION
		STATES.IDLE STATES.ACQUIRING STATES.HELD STATES.RELEASING STATES.RELEASED STATES.LOST
		REASONS.NONE REASONS.RELEASED REASONS.HEARTBEAT_FAILED REASONS.STORE_ERROR REASONS.FENCE_REGRESSED
		REASONS.DISPOSED REASONS.TIMER_UNARMABLE
		lock:fence lock:holder did-you-mean whitelist non-reentrant RAII funnel zero-GC torture`),
	loqkit: {
		// the call
		"`withLock(context, action, options)`", "`context`", "`action`", "a predicate function in the place of options",
		"`{ value, context }`", "`result.value`", "`result.context`",
		// options and defaults
		"`key`", "`key` left out", "`namespace`", "`predicate`", "`onCheckFailed`",
		"`timeout` left out", "`timeout: ms`", "`timeout: { ms, error: true }`", "`timeout: { ms, error: false }`", "`timeout: 0`",
		"`scope`", "`scope.memory`", "`scope.worker`", "`scope.flock`", "`scope.poll`", "| `true`", "| `false`", "| `\"auto\"`",
		"`lockDirectory`", "`LOQKIT_LOCK_DIR`", "the default directory, local to the host",
		// states
		"`ctx.state`", "`\"predicate-before\"`", "`\"predicate-after\"`", "`\"executed\"`", "`\"timeout\"`",
		// metadata and errors
		"`ctx.lock`", "`ctx.lock.waitedMs`", "`ctx.lock.scope`", "outcome `true`", "outcome `false`", "outcome `\"skipped\"`",
		"`ctx.lock.backends`", "`LockTimeoutError`", "`LockUnavailableError`",
		// layers
		"`async-mutex`", "worker lock manager", "`fs-ext`", "`proper-lockfile`",
		// promises of the lock
		"one at a time", "Different keys run concurrently", "released in reverse", "once before waiting, and again after",
		"only when both checks pass", "after any acquired layers were released", "never sleeps", "non-throwing timeout",
		"can change from true to skipped", "only when unavailable or failing without contention", "Contention waits on flock",
		"skipped after flock succeeded", "contention fails immediately", "All four `false`", "network mount", "Containers",
		// memoization
		"`memoize(factory)`, synchronous", "`memoize(async factory)`, thenable", "native promise", "Computes once",
		"share in-flight work", "are not cached", "no TTL",
		// the package
		"ESM and CommonJS", "typed", "release",
	},
}

// Whoever comes from another library finds each of its names and promises in a table,
// next to a Go name that exists or the word none.
func TestTheMigrationTablesAreComplete(t *testing.T) {
	packages, docs := typedPackages(t), documents(t)
	for doc, wanted := range migrations {
		for _, fault := range faultsOfTables(packages, docs[doc], wanted) {
			t.Errorf("%s: %s", doc, fault)
		}
	}
	pages := slices.DeleteFunc(slices.Collect(maps.Keys(docs)), func(doc string) bool {
		return !strings.Contains(doc, "migrating-from")
	})
	if len(pages) != len(migrations) {
		t.Errorf("the pages are %q, and %d are checked", pages, len(migrations))
	}
}

func TestAFaultOfAMigrationTableIsFound(t *testing.T) {
	packages := typedPackages(t)
	const head = "| theirs | Go | differs |\n|---|---|---|\n"
	for row, want := range map[string]string{
		"| `key` | `layered.WithKey` | |\n":         "",
		"| `key` | none | no such thing |\n":        "",
		"| `key` | `layered.WithLuck` | |\n":        "no Go name",
		"| `key` | a key | |\n":                     "no Go name",
		"| `key` | `layered.WithKey` |\n":           "2 cells",
		"| `keys` | `layered.WithKey` | `key` |\n":  "no row for `key`",
		"Text says that `key` is `layered.WithKey`": "no row for `key`",
	} {
		got := strings.Join(faultsOfTables(packages, head+row, []string{"`key`"}), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%q: faults %q, want %q", row, got, want)
		}
	}
}

// faultsOfTables returns what is wrong with the tables in text, whose first cells must
// contain what is wanted.
func faultsOfTables(packages map[string]*types.Package, text string, wanted []string) (faults []string) {
	known := func(name string) bool { return exists(packages, name) }
	var theirs string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 {
			faults = append(faults, fmt.Sprintf("%d cells, want 3: %s", len(cells), line))
			continue
		}
		ours := strings.TrimSpace(cells[1])
		if ours == "Go" { // the head of a table
			continue
		}
		theirs += cells[0] + "\n"
		if ours != "none" && !slices.ContainsFunc(goNames(ours), known) {
			faults = append(faults, "no Go name, and not the word none: "+line)
		}
	}
	for _, name := range wanted {
		if !strings.Contains(theirs, name) {
			faults = append(faults, "no row for "+name)
		}
	}
	return faults
}
