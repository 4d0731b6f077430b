#!/bin/sh
# Run the Figure 1 program: demo.sh [the weir command]
set -eu
weir=${1:-weir}
cd "$(dirname "$0")"
echo "figure1.weir"
sed 's/^/    /' figure1.weir
echo
echo "weir run figure1.weir    (the first run on a machine compiles the kernels: up to a minute)"
"$weir" run figure1.weir
echo
echo "out/counts.jsonl"
sed 's/^/    /' out/counts.jsonl
