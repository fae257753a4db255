package storetest_test

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockfx/lockfx/storetest"
)

var update = flag.Bool("update", false, "write down which promises each fault breaks, to be looked through")

// faultsText is known bugs of lock stores, each with the promises that it breaks.
//
//go:embed testdata/faults.txt
var faultsText string

var faults = parseFaults(faultsText)

func parseFaults(text string) map[string][]string {
	byName := map[string][]string{}
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(block, "\n\t")
		byName[lines[0]] = lines[1:]
	}
	return byName
}

func formatFaults(byName map[string][]string) string {
	var b strings.Builder
	for _, fault := range slices.Sorted(maps.Keys(byName)) {
		fmt.Fprintf(&b, "%s\n\t%s\n\n", fault, strings.Join(byName[fault], "\n\t"))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestEachFaultBreaksExactlyItsPromises(t *testing.T) {
	seen := map[string][]string{}
	for fault, want := range faults {
		t.Run(fault, func(t *testing.T) {
			broken := storetest.Check(t.Context(), harness(t, fault))
			seen[fault] = slices.Sorted(maps.Keys(broken))
			for _, name := range seen[fault] {
				if !slices.Contains(want, name) && !racy(name) {
					t.Errorf("also breaks %s: %v", name, broken[name])
				}
			}
			for _, name := range want {
				if broken[name] == nil && !racy(name) {
					t.Errorf("does not break %s", name)
				}
			}
		})
	}
	if *update {
		for fault, names := range seen {
			lucky := slices.DeleteFunc(slices.Clone(faults[fault]), func(name string) bool { return !racy(name) })
			names = append(names, lucky...)
			slices.Sort(names)
			seen[fault] = slices.Compact(names)
		}
		if err := os.WriteFile("testdata/faults.txt", []byte(formatFaults(seen)), 0o644); err != nil { //nolint:gosec // a source
			t.Fatal(err)
		}
	}
}

func TestEveryCaseCanFail(t *testing.T) {
	failed := map[string]bool{}
	for _, names := range faults {
		for _, name := range names {
			failed[name] = true
		}
	}
	for _, p := range storetest.Promises() {
		if !failed[p.Name] {
			t.Errorf("no planted fault breaks %s (%s)", p.Name, p.Text)
		}
	}
}
