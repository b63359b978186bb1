#!/bin/sh
# The main job: make a workload, run it under three policies, compare them, draw one. Writes ./demo-out.
set -eu
out=demo-out
rm -rf "$out"
mkdir "$out"

say() { printf '\n$ %s\n' "$*"; "$@"; }

say batkube workload generate lublin --jobs 300 --machines 32 --seed 7 -o "$out/lublin.json"
say batkube workload convert "$out/lublin.json" -o "$out/workload.json" --shift --trim 3h --walltime-from-runtime 1.5
say batkube workload show "$out/workload.json"
for policy in fcfs easy conservative; do
    say batkube run --workload "$out/workload.json" --platform 32x1 --scheduler "policy:$policy" --out "$out/$policy"
done
say batkube compare "$out/fcfs" "$out/easy" "$out/conservative"
say batkube gantt "$out/easy" -o "$out/easy.svg" --title "EASY backfilling"
say batkube gantt "$out/easy" -o "$out/easy.png" --title "EASY backfilling"
printf '\nLook at %s/easy.svg, and at the CSV files in %s/easy.\n' "$out" "$out"
