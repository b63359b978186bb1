#!/bin/sh
# Install a wheel into a clean virtualenv outside the repository and run it. Usage: try_wheel.sh PYTHON WHEEL
set -eu

python=$1
wheel=$(realpath "$2")
constraints=$(realpath "$(dirname "$0")/../constraints.txt")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH

"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip --quiet --disable-pip-version-check install -c "$constraints" "$wheel"

cd "$folder"
PATH="$folder/venv/bin:$PATH"
batkube --version
batkube doctor || test $? -eq 1 # 1: an optional program, such as Go, is missing
batkube workload generate lublin --jobs 50 --machines 16 --seed 1 -o workload.json
batkube run --workload workload.json --platform 16x1 --scheduler policy:easy --out out --quiet
batkube gantt out -o out.svg
test -s out/jobs.csv -a -s out.svg
echo "the wheel works: $(basename "$wheel")"
