# Turns the output of interleaved benchmarks into a table of medians.

BEGIN {
	# The ratios of the table, each a pair of benchmarks of fxlock; "A - B" is A less B.
	n = split( \
		"Lock.Do / Store.Acquire+Release," \
		"Lock.Run / dig.by.hand," \
		"Lock.Run - Lock.Do / dig.by.hand," \
		"Body / dig.by.hand," \
		"Lock.Run+PerRun / dig.by.hand", ratios, ",")
}

/^round / { round = $2; next }
/^pkg: / { pkg = $2; sub(/^github.com\/lockfx\/lockfx\/?/, "", pkg); next }
/^Benchmark/ {
	name = $1
	sub(/-[0-9]+$/, "", name)
	sub(/^Benchmark/, "", name)
	sub(/^Price\//, "", name)
	row = pkg "\t" name
	if (!(row in seen)) { seen[row] = 1; rows[++rowCount] = row }
	for (i = 3; i < NF; i += 2) value[row, $(i + 1), round] = $i
	if (round > last) last = round
}

END {
	if (!rowCount) { print "bench: no benchmark ran"; exit 1 }
	for (r = 1; r <= rowCount; r++) {
		split(rows[r], part, "\t")
		if (part[1] != before) {
			printf "%s%-32s %12s %10s %10s\n", (r == 1 ? "" : "\n"), part[1], "ns/op", "B/op", "allocs/op"
			before = part[1]
		}
		ns = ofRow(rows[r], "ns/op")
		printf "  %-30s %12s %10d %10d\n", part[2], sprintf((ns < 100 ? "%.1f" : "%.0f"), ns), ofRow(rows[r], "B/op"), ofRow(rows[r], "allocs/op")
	}
	printf "\n%-45s %10s %10s\n", "ratios", "time", "allocs"
	for (i = 1; i <= n; i++) ratio(ratios[i])
	printf "\nmedians of %d rounds, and for ratios the median of the ratio in each round\n", last
}

function ratio(text,    side, part, over, under, less) {
	split(text, side, " / ")
	less = split(side[1], part, " - ") > 1 ? "fxlock\t" part[2] : ""
	over = "fxlock\t" part[1]
	under = "fxlock\t" side[2]
	if (!(over in seen && under in seen)) return
	printf "  %-43s %10s %10s\n", (less ? "(" side[1] ")" : side[1]) " / " side[2],
		ofRatio(over, less, under, "ns/op"), ofRatio(over, less, under, "allocs/op")
}

function ofRow(row, unit,    k, r, list) {
	for (r = 1; r <= last; r++)
		if ((row, unit, r) in value) list[++k] = value[row, unit, r]
	return median(list, k)
}

# A subtrahend that is no row is 0. Where the divisor is 0 there is no ratio.
function ofRatio(over, less, under, unit,    k, r, list, d) {
	for (r = 1; r <= last; r++)
		if (d = value[under, unit, r])
			list[++k] = (value[over, unit, r] - value[less, unit, r]) / d
	return k ? sprintf("%.2fx", median(list, k)) : "-"
}

function median(list, k,    i, j, x) {
	for (i = 2; i <= k; i++) {
		x = list[i]
		for (j = i - 1; j > 0 && list[j] + 0 > x + 0; j--) list[j + 1] = list[j]
		list[j + 1] = x
	}
	return k % 2 ? list[(k + 1) / 2] : (list[k / 2] + list[k / 2 + 1]) / 2
}
