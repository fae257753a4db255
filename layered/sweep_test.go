package layered

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// A lock file says nothing by being there, so nothing is lost with those that nobody
// holds.
func TestLockFiles_AreBoundedHoweverManyKeysThereWere(t *testing.T) {
	for name, tt := range map[string]struct {
		keys int
		next func()
	}{
		"one process":            {5_000, func() {}},
		"a process for each key": {2_500, func() { opened.Store(0); files.CloseIdle() }},
	} {
		dir := t.TempDir()
		shared, text := filepath.Join(dir, "shared"), filepath.Join(dir, "README")
		must(t, os.WriteFile(text, nil, 0o600))
		lock := func(key int, action func()) {
			_, err := WithLock(t.Context(), 0, func(context.Context, Call[int]) (int, error) {
				action()
				return 0, nil
			}, WithDir(dir), WithKey(strconv.Itoa(key)))
			must(t, err)
		}
		_, err := WithLock(t.Context(), 0, nothing[int], WithFile(shared), WithDir(dir))
		must(t, err)
		most := 0
		lock(-1, func() { // held all the while
			for key := range tt.keys {
				lock(key, func() {})
				tt.next()
				if key%100 == 0 {
					names, err := os.ReadDir(dir)
					must(t, err)
					most = max(most, len(names))
				}
			}
		})
		if most > tooMany+2*sweepEvery {
			t.Errorf("%s: there were %d files", name, most)
		}
		for _, path := range []string{shared, text} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: what is not ours was removed: %v", name, err)
			}
		}
		files.CloseIdle()
	}
}

// Processes that come and go sweep what others use.
func TestLockFiles_AreSweptWhileTheyAreContended(t *testing.T) {
	const processes, holds = 4, 400
	r := role{Scope: processScopes["flock"], Holds: holds, Sweep: true}
	if visits, byMark, byLog := runHammers(t, processes, r); visits != processes*holds || byMark != 0 || byLog != 0 {
		t.Errorf("%d visits, %d and %d overlaps", visits, byMark, byLog)
	}
}
