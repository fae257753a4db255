package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // on stderr
	}{
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"-log", ""}, "must not be empty"},
		{[]string{"-out", ""}, "must not be empty"},
		{[]string{"-serve", "nowhere"}, "must be host:port"},
		{[]string{"-serve", ""}, "must be host:port"},
		{[]string{"-store", ""}, "must be memory or dir:PATH"},
		{[]string{"-store", "dir:"}, "must be memory or dir:PATH"},
		{[]string{"-store", "memory:x"}, "must be memory or dir:PATH"},
		{[]string{"-store", "/var/lib/locks"}, "must be memory or dir:PATH"},
		{[]string{"-pace", "-1s"}, "must be a duration from 0 to 1m0s"},
		{[]string{"-pace", "61s"}, "must be a duration from 0 to 1m0s"},
		{[]string{"-pace", "soon"}, "must be a duration from 0 to 1m0s"},
		{[]string{"-lead", "-serve", "127.0.0.1:0"}, "-lead and -serve exclude each other"},
		{[]string{"-v", "access.log"}, `unexpected argument "access.log"`},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), tt.args, &stdout, &stderr); code != exitUsage {
			t.Errorf("%q: exit code %d", tt.args, code)
		}
		if text := stderr.String(); !strings.Contains(text, tt.want) || !strings.Contains(text, "Usage of fxapp") {
			t.Errorf("%q: stderr %q", tt.args, text)
		}
		if stdout.Len() > 0 {
			t.Errorf("%q: stdout %q", tt.args, &stdout)
		}
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, flag := range []string{"-log FILE", "-out DIR", "-serve ADDR", "-store STORE", "-pace TIME", "-lead", "-eof", "-v"} {
		if !strings.Contains(stderr.String(), flag) {
			t.Errorf("%s is missing in %s", flag, &stderr)
		}
	}
}

// What can't be read or written is one line, before any replica starts.
func TestFaultsOfFiles(t *testing.T) {
	file := writeFile(t, "a file")
	corrupt := t.TempDir()
	writeTo(t, filepath.Join(corrupt, "report.txt"), "whose token nobody knows")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-log", filepath.Join(t.TempDir(), "absent.log")}, "absent.log"},
		{[]string{"-log", t.TempDir()}, "must be a regular file"},
		{[]string{"-out", file}, file},
		{[]string{"-out", corrupt}, "report.txt"},
		{[]string{"-store", "dir:" + file}, "open file store"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), tt.args, &stdout, &stderr); code != exitFault {
			t.Errorf("%q: exit code %d", tt.args, code)
		}
		line := stderr.String()
		if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "fxapp: ") || !strings.Contains(line, tt.want) {
			t.Errorf("%q: stderr %q", tt.args, line)
		}
		if stdout.Len() > 0 {
			t.Errorf("%q: stdout %q", tt.args, &stdout)
		}
	}
}
