#!/bin/sh
# Compares the processor time of this room with that of GCViewer's summary, and
# of wc -l as the limit, over the same long logs in one run.
#
#   collectors/gclog/bench/compare.sh [LOG...]    short logs to make long ones of;
#                                                 without any, some of ../shared
#
# MB sets the size (100), GCVIEWER_CP a class path with GCViewer and what it
# needs; without it and without Maven, GCViewer is left out. Everything stays in
# a folder under TMPDIR and is removed.
set -eu
MB=${MB:-100}
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -eq 0 ]; then
	corpus=$here/../../../../shared/corpus/gclog
	[ -d "$corpus" ] || { echo "no ../shared/corpus/gclog: name the logs"; exit 0; }
	set -- "$corpus/own/jdk17-g1-default-decorations.log" "$corpus/own/jdk25-zgc-generational-stalls.log" "$corpus/own/jdk25-g1-gcdebug.log" \
		"$corpus/jdk8-g1-details-dates-metadata.log" "$corpus/jdk6-cms-details-concurrent-mode-failure.log" "$corpus/jdk8-parallel-details.log"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
(cd "$here" && go build -o "$work/bench" .)

if [ -z "${GCVIEWER_CP:-}" ] && command -v mvn >/dev/null; then
	if mvn -q dependency:get -Dartifact=com.github.chewiebug:gcviewer:1.36 >"$work/mvn" 2>&1; then
		GCVIEWER_CP=$(find "$HOME/.m2/repository/com/github/chewiebug/gcviewer" -name 'gcviewer-1.36.jar')
	fi
fi

# user prints the user seconds of a command.
user() {
	{ TIMEFORMAT=%U; bash -c 'TIMEFORMAT=%U; time "$@" >"$0" 2>&1' "$work/out" "$@"; } 2>&1 | tail -n 1
}

printf '%-44s %6s %9s %9s %9s %9s %9s\n' log MB 'observe' 'report' 'gcviewer' 'wc -l' 'ratio'
printf '%-44s %6s %9s %9s %9s %9s %9s\n' '' '' 's/GB' 's/GB' 's/GB' 's/GB' 'gcv/obs'
for log in "$@"; do
	"$work/bench" make "$log" "$MB" >"$work/long.log"
	bytes=$(wc -c <"$work/long.log")
	o=$(user "$work/bench" observe "$work/long.log")
	r=$(user "$work/bench" report "$work/long.log")
	w=$(user wc -l "$work/long.log")
	g=
	if [ -n "${GCVIEWER_CP:-}" ]; then
		g=$(user java -Xmx3g -Djava.awt.headless=true -cp "$GCVIEWER_CP" com.tagtraum.perf.gcviewer.GCViewer "$work/long.log" "$work/summary.csv")
		[ -s "$work/summary.csv" ] || g=
	fi
	awk -v n="$(basename "$log")" -v b="$bytes" -v o="$o" -v r="$r" -v w="$w" -v g="$g" 'BEGIN {
		gb = b / 1e9
		printf "%-44s %6.0f %9.2f %9.2f %9s %9.2f %9s\n", n, b / 1e6, o / gb, r / gb, g == "" ? "-" : sprintf("%.2f", g / gb), w / gb, g == "" || o == 0 ? "-" : sprintf("%.0f", g / o)
	}'
done
