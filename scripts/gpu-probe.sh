#!/usr/bin/env bash
# temporary
python3 scripts/gpu-suite --build build-gpu --out $OUT/record.json --seconds 200 --parts kernels,bytes,operations,caps,workers 2>&1 | tee $OUT/log
