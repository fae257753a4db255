# Turns the output of `go test -v` into one verdict for each gate.
# A test's result comes after its log lines, so a gate is judged when its test is.

function top(name) { sub(/\/.*/, "", name); return name }

/^=== (RUN|CONT|NAME) / { test = top($3); next }

/: GATE [^:]+: / {
	line = $0
	sub(/^.*: GATE /, "", line)
	name = line; sub(/: .*/, "", name)
	detail = line; sub(/^[^:]+: /, "", detail)
	gates[test] = gates[test] name "\t" detail "\n"
	next
}

/^--- (PASS|FAIL|SKIP): / {
	test = $3
	result = $2
	sub(/:$/, "", result)
	judge(test, result)
	delete gates[test]
	next
}

# A test that panicked or ran out of time has no result line of its own.
/^(panic: |FAIL\t)/ { broken = 1 }

function judge(test, result,    n, i, lines, field) {
	if (result == "SKIP") { verdict(test, "FAILED", "it was skipped"); return }
	if (!(test in gates)) {
		verdict(test, "FAILED", result == "PASS" ? "it measured nothing: no GATE line" : "its test failed")
		return
	}
	n = split(gates[test], lines, "\n")
	for (i = 1; i < n; i++) {
		split(lines[i], field, "\t")
		verdict(field[1], result == "PASS" ? "ok" : "FAILED", field[2])
	}
}

function verdict(name, outcome, detail) {
	ran++
	if (outcome != "ok") failed++
	verdicts = verdicts "gate " name ": " outcome " (" detail ")\n"
}

END {
	printf "%s", verdicts
	if (!ran) { print "torture: no gate ran"; exit 1 }
	printf "torture: %d gates, %d failed\n", ran, failed
	if (broken && !failed) print "torture: FAILED: go test did not run to its end, see above"
	exit failed > 0 || broken
}
