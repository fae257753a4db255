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
	for fault, want := range faults {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			broken := brokenBy(t, fault, func(p storetest.Promise) bool { return !racy(p.Name) })
			for name, err := range broken {
				if !slices.Contains(want, name) {
					t.Errorf("also breaks %s: %v", name, err)
				}
			}
			for _, name := range want {
				if broken[name] == nil && !racy(name) {
					t.Errorf("does not break %s", name)
				}
			}
		})
	}
}

func brokenBy(t *testing.T, fault string, tried func(storetest.Promise) bool) map[string]error {
	broken := map[string]error{}
	for i, p := range storetest.Promises() {
		if !tried(p) {
			continue
		}
		if err := p.Broken(t.Context(), harness(t, fault)); err != nil {
			if broken[p.Name] = err; i == 0 {
				break // the others are not tried
			}
		}
	}
	return broken
}

// With -update it writes the file anew. What races have found before stays.
func TestUpdate(t *testing.T) {
	if !*update {
		return
	}
	seen := map[string][]string{}
	for fault, before := range faults {
		names := slices.Collect(maps.Keys(brokenBy(t, fault, func(storetest.Promise) bool { return true })))
		names = append(names, slices.DeleteFunc(before, func(name string) bool { return !racy(name) })...)
		slices.Sort(names)
		seen[fault] = slices.Compact(names)
	}
	if err := os.WriteFile("testdata/faults.txt", []byte(formatFaults(seen)), 0o644); err != nil { //nolint:gosec // a source
		t.Fatal(err)
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
