#!/usr/bin/env bash
# temporary
o=/tmp/o; mkdir -p $o
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1
for i in 1 2; do timeout 20 python3 scripts/gpu/driver_facts.py > $o/facts$i.json 2> $o/facts$i.err; done
timeout 20 python3 scripts/gpu/driver_costs.py > $o/costs.json 2> $o/costs.err
p=tests/virtual/programs
for k in conv rnn fft solver sparse; do timeout 60 python3 $p/library_work.py $k > $o/lw-$k.txt 2> $o/lw-$k.err & done
wait
i=0
while read -r args; do
  i=$((i+1)); name=$(printf '%02d' $i)
  ( timeout 60 python3 scripts/gpu/measured.py $o/m$name.json $p/$args > $o/m$name.log 2>&1; echo "$args" > $o/m$name.args ) &
  [ $((i % 8)) = 0 ] && wait
done <<L
nanogpt.py --batch-size 8 --grad-accum 2
nanogpt.py --batch-size 8 --grad-accum 2
timm_train.py --model vit_base_patch16_224 --batch-size 16 --average
timm_train.py --model convnext_tiny --batch-size 16 --channels-last
timm_train.py --model resnet50 --batch-size 16 --channels-last
hf_trainer.py --batch-size 4 --grad-accum 2 --checkpointing
counted.py --model bert
lightning_fit.py --batch-size 16 --grad-accum 2
nanogpt.py --batch-size 12
nanogpt.py --model gpt2-medium --batch-size 8
nanogpt.py --model gpt2-medium --batch-size 8
hf_trainer.py --batch-size 8
counted.py --model bert --size base
compile_train.py
layers.py unet3d --batch 16
side_streams.py --batch-size 8
L
wait
tar czf $OUT/probe.tgz -C /tmp o
python3 scripts/gpu-suite --build build-gpu --out $OUT/record.json --seconds 130 --parts memory,tune 2>&1 | tail -60
nvidia-smi --query-gpu=clocks.sm,clocks.mem,clocks.gr,clocks.max.sm,power.draw --format=csv
