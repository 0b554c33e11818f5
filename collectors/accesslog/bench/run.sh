#!/bin/sh
# Prints what reading an access log costs, beside what others take for less.
#
# Works on 2,000,000 lines (324 MB) from the generator in ../shared/bench/gen,
# and holds the figures against the generator's truth first. Debian's mtail and
# goaccess are unpacked below the cache, not installed. Settings: SIDECAR_CACHE,
# LINES_N, ROUNDS, SLOW (rounds of the slow ones; 0 leaves them out).
set -eu
cd "$(dirname "$0")/../../.."
cache=${SIDECAR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sidecar-lab}/accesslog-bench
n=${LINES_N:-2000000} rounds=${ROUNDS:-5} slow=${SLOW:-2}
[ -d ../shared/bench/gen ] || { echo "no ../shared/bench/gen: nothing to read"; exit 0; }
mkdir -p "$cache/deb" "$cache/w"
go build -o "$cache/reader" ./collectors/accesslog/bench/reader
go build -o "$cache/compare" ./collectors/accesslog/bench/compare
go build -o "$cache/sidecar" ./cmd/sidecar
(cd ../shared/bench/gen && go build -o "$cache/gen" .)
F=$cache/access-$n.log C=$cache/access-$n-clean.log T=$cache/access-$n.json
[ -s "$T" ] || "$cache/gen" access -pattern loadtest -n "$n" -seed 1 -o "$F" -truth "$T"
# Debian's mtail stops counting at a byte that is no UTF-8: it gets a file without.
[ -s "$C" ] || LC_ALL=C grep -av "$(printf '\377')" "$F" > "$C"

fetch() { # unpack a Debian package, once
	[ -e "$cache/deb/.$1" ] && return 0
	(cd "$cache/deb" && apt-get download "$1" >/dev/null 2>&1 && dpkg -x "$1"_*.deb . && rm -f "$1"_*.deb && : > ".$1") || {
		echo "can't be had here: $1" >&2
		return 1
	}
}
spec=$cache/w/spec
size=$(stat -c %s "$F") clean=$(stat -c %s "$C")
t() { printf '%s\t%s\t%s\n' "$@" >> "$spec"; }
: > "$spec"
P='%h %l %u %t "%r" %s %b %D %F %I'
t 'sidecar replay --metrics' "$size" "$cache/sidecar replay --metrics --kind accesslog --duration-unit us --pattern '$P' $F >$cache/w/m.page"
printf 'accesslog:\n  routes:\n    fold: true\n' > "$cache/w/routes.yml"
t 'the same, routes folded' "$size" "$cache/sidecar replay --metrics --kind accesslog --duration-unit us --pattern '$P' --config.file=$cache/w/routes.yml $F >/dev/null"
t 'sidecar replay --json (report)' "$size" "$cache/sidecar replay --json --kind accesslog --duration-unit us --pattern '$P' $F >$cache/w/r.json"
t 'the room alone' "$size" "$cache/reader -mode metrics $F >/dev/null"
t 'the room alone, routes folded' "$size" "$cache/reader -mode routes $F >/dev/null"
t 'cat' "$size" "cat $F >/dev/null"
t 'wc -l' "$size" "wc -l $F >/dev/null"
t 'nxadm/tail + the same observer' "$size" "$cache/reader -mode nxtail-metrics $F >/dev/null"
if [ "$slow" -gt 0 ]; then
	M=../shared/bench/peers/access.mtail
	if fetch mtail && [ -e "$M" ]; then
		t 'mtail (Debian)!' "$clean" "$cache/deb/usr/bin/mtail --one_shot --one_shot_format=prometheus --progs $M --logs $C --log_dir $cache/w >$cache/w/mtail.page 2>/dev/null"
	fi
	if fetch goaccess && { command -v goaccess >/dev/null || { fetch libmaxminddb0 && fetch libncursesw6 && fetch libtinfo6; }; }; then
		t 'goaccess to JSON (Debian)!' "$size" "LD_LIBRARY_PATH=$cache/deb/usr/lib/x86_64-linux-gnu:$cache/deb/lib/x86_64-linux-gnu $cache/deb/usr/bin/goaccess $F --no-global-config --no-progress --log-format='%h %^ %e [%d:%t %^] \"%r\" %s %b %D %^ %^' --date-format=%d/%b/%Y --time-format=%T -o $cache/w/ga.json </dev/null >/dev/null 2>&1"
	fi
fi
"$cache/reader" -mode report "$F" 2>/dev/null > "$cache/w/truth.out"
go run ./collectors/accesslog/bench/truth "$T" "$cache/w/truth.out"
exec nice -n "${NICE:-0}" "$cache/compare" -rounds "$rounds" -slow "$slow" -base 'sidecar replay --metrics' < "$spec"
