#!/usr/bin/env bash
# The speed of the application log's reader beside its peers: whole processes that
# take turns on one generated storm (17.2 million lines at 2 GB). Prints user and
# system CPU, peak memory and the ratios, and whether each bar of the project holds.
#
#   collectors/applog/bench/run.sh            2 GB, 3 rounds, mtail on the first 100 MB
#   SIZE=200000000 ROUNDS=1 .../run.sh        a quick look
#   LIVE=10 .../run.sh                        also 10 s of 300 MB/s, written to memory
#   READER="sidecar replay --json" …          the same with another command
#
# The file, the reader and Debian's mtail go to $SIDECAR_CACHE, never into the
# checkout. Ratios are to be trusted, seconds are this machine's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${SIDECAR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sidecar-lab}/bench-applog
size=${SIZE:-2000000000} rounds=${ROUNDS:-3} part=${PART:-100000000}
mkdir -p "$cache"

# The generator and the file.
gen=$root/../shared/bench/gen
[ -d "$gen" ] || { echo "no generator at $gen"; exit 1; }
(cd "$gen" && go build -o "$cache/gen" .)
file=$cache/storm-$size.log
[ -s "$file" ] || "$cache/gen" storm -bytes "$size" -seed 1 -o "$file" -truth "$cache/storm-$size.json"
head -c "$part" "$file" | sed '$d' > "$cache/part.log" # whole lines
(cd "$root" && go build -o "$cache/replay" ./collectors/applog/bench/replay && go build -o "$cache/sidecar" ./cmd/sidecar)
reader=${READER:-$cache/sidecar replay --metrics --kind applog}

# Debian's mtail, unpacked beside the file.
mtail=$(command -v mtail || true)
if [ -z "$mtail" ]; then
  mtail=$cache/mtail/usr/bin/mtail
  if [ ! -x "$mtail" ]; then
    if (cd "$cache" && apt-get download mtail >/dev/null 2>&1); then
      dpkg -x "$cache"/mtail_*.deb "$cache/mtail"
      rm -f "$cache"/mtail_*.deb
    else
      echo "mtail can't be had here: its line is left out"
      mtail=
    fi
  fi
fi
cat > "$cache/storm.mtail" <<'M'
counter executor_rejected_total

/Executor rejected socket/ {
  executor_rejected_total++
}
M

# run NAME COMMAND…: one turn; appends "user sys peakKB" to NAME's list.
export TIMEFORMAT='%U %S'
run() {
  local name=$1; shift
  local t
  t=$( { time "$@" >"$cache/$name.out" 2>"$cache/$name.err"; } 2>&1 )
  echo "$t" >> "$cache/$name.times"
}
rm -f "$cache"/*.times
for _ in $(seq "$rounds"); do
  run cat sh -c 'cat "$1" >/dev/null' - "$file"
  run grep env LC_ALL=C grep -a -c 'Executor rejected socket' "$file" # its output is a file: to /dev/null it would stop early
  # shellcheck disable=SC2086
  run reader $reader "$file"
  run lines "$cache/replay" -lines -json "$file"
done
# The same counting as JSON, for the truth, and the reader's memory.
run exact "$cache/replay" -json "$file"
# shellcheck disable=SC2086
peak=$(python3 -c 'import resource,subprocess,sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' $reader "$file")
[ -z "$mtail" ] || run mtail "$mtail" --one_shot --one_shot_format=prometheus --progs "$cache/storm.mtail" --logs "$cache/part.log" --log_dir "$cache"

bytes=$(stat -c %s "$file")
partbytes=$(stat -c %s "$cache/part.log")
# Medians, per GB.
median() { sort -g | awk '{a[NR]=$1} END {print a[int((NR+1)/2)]}'; }
user() { cut -d' ' -f1 "$cache/$1.times" | median; }
total() { awk '{print $1+$2}' "$cache/$1.times" | median; }
row() { awk -v n="$1" -v u="$2" -v t="$3" -v b="$4" -v base="$5" 'BEGIN {printf "%-34s %8.3f %8.3f %10.2f\n", n, u/b*1e9, t/b*1e9, (t/b)/base}'; }
base=$(awk -v t="$(total reader)" -v b="$bytes" 'BEGIN {print t/b}')
echo
printf '%-34s %8s %8s %10s\n' "$((bytes/1000000)) MB, CPU s/GB, median of $rounds" user total "to reader"
row "sidecar replay --metrics" "$(user reader)" "$(total reader)" "$bytes" "$base"
row "the room alone, line by line" "$(user lines)" "$(total lines)" "$bytes" "$base"
row "grep -a -c, one substring" "$(user grep)" "$(total grep)" "$bytes" "$base"
row "cat" "$(user cat)" "$(total cat)" "$bytes" "$base"
[ -z "$mtail" ] || row "mtail, one substring, $((partbytes/1000000)) MB" "$(user mtail)" "$(total mtail)" "$partbytes" "$base"
echo
bar() { awk -v n="$1" -v v="$2" -v m="$3" 'BEGIN {printf "%-58s %8.3f  at most %-8s %s\n", n, v, m, (v<=m ? "holds" : "DOES NOT HOLD"); exit !(v<=m)}' || bad=1; }
bad=0
per() { awk -v a="$1" -v b="$2" 'BEGIN {print a/b}'; }
bar "user CPU, s/GB" "$(per "$(user reader)" "$(per "$bytes" 1e9)")" 0.35
bar "CPU to grep's" "$(per "$(total reader)" "$(total grep)")" 1
[ -z "$mtail" ] || bar "CPU to mtail's, by the byte" "$(per "$(per "$(total reader)" "$bytes")" "$(per "$(total mtail)" "$partbytes")")" 0.04
[ -z "$peak" ] || bar "peak memory, MB" "$(per "$peak" 1000)" 40

# Exact, against the generator's truth and grep.
python3 - "$cache/storm-$size.json" "$cache/exact.out" "$(cat "$cache/grep.out")" <<'P' || bad=1
import json, sys
t, r, grep = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), int(sys.argv[3])
ok = True
for name, want, got in [
    ("bytes", t["bytes"], r["bytes"]), ("lines", t["lines"], r["lines"]), ("records", t["records"], r["records"]),
    ("raw lines", t["raw_lines"], r["raw_lines"]), ("levels", t["by_level"], r["by_level"]), ("loggers", t["by_logger"], r.get("loggers")),
    ("exceptions as thrown", t["by_top_exception"], r.get("thrown")), ("rejections", t["rejected_records"], r["events"]["executor_rejected"]),
    ("grep less decoys", grep - t["decoy_lines"], r["events"]["executor_rejected"])]:
    if want != got:
        ok = False
        print(name, "counted", got, "of", want)
print("every figure is exact" if ok else "WRONG")
sys.exit(not ok)
P

if [ -n "${LIVE:-}" ]; then
  # 300 MB/s for LIVE seconds must fit: 3 GB at 10.
  live=/dev/shm/applog-live-$$.log
  trap 'rm -f "$live"' EXIT
  : > "$live"
  "$cache/gen" replay -src "$file" -dst "$live" -mbps 300 -dur "${LIVE}s" -mem 200000000 > "$cache/writer.out" 2>&1 &
  writer=$!
  "$cache/replay" -live "$live" -for "$((LIVE + 1))s" > "$cache/live.out" 2> "$cache/live.err"
  wait "$writer"
  cat "$cache/live.err"
  got=$(sed -n 's/.*live: \([0-9]*\) bytes.*/\1/p' "$cache/live.err")
  [ "$got" = "$(stat -c %s "$live")" ] || { echo "live: $got of $(stat -c %s "$live") bytes"; bad=1; }
  bar "live at 300 MB/s, cores" "$(sed -n 's/.*: \([0-9.]*\) cores.*/\1/p' "$cache/live.err")" 0.2
fi
exit "$bad"
