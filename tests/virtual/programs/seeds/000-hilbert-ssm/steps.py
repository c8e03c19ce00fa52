"""Optimizer steps of train.py's model as its cases were measured, for `plimsoll record`: inputs are made once.

    python steps.py --batch 2 --length 225000 --precision bf16-mixed --d-model 192 --accumulation 2

--d-model says the hidden size and what was measured with it: d_state and the number of layers.
"""
import argparse

from triton.runtime.autotuner import Autotuner

import measure

PRECISIONS = {'fp32': '32-true', 'bf16-mixed': 'bf16-mixed', 'fp16-mixed': '16-mixed'}
SIZES = {256: (128, 6), 192: (96, 6), 160: (64, 4)}
SHARED = {'bidirectional': 'bidirectional', 'all': True, 'none': None}

bench, tune = Autotuner._bench, Autotuner.run


def bench_two(self, *args, config, **meta):
    """Of configurations that run two are timed: all take the same memory, and a virtual GPU's time does not choose."""
    if len(self.timed) == 2:
        return [float('inf')] * 3
    seconds = bench(self, *args, config=config, **meta)
    self.timed += [config] * (min(seconds) < float('inf'))
    return seconds


def tune_anew(self, *args, **meta):
    self.timed = []
    return tune(self, *args, **meta)


Autotuner._bench, Autotuner.run = bench_two, tune_anew


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--length', type=int, default=300_000)
    parser.add_argument('--precision', default='fp32', choices=PRECISIONS)
    parser.add_argument('--d-model', type=int, default=256, choices=SIZES)
    parser.add_argument('--share', default='bidirectional', choices=SHARED)
    parser.add_argument('--checkpoint', default='yes', choices=('yes', 'no'))
    parser.add_argument('--ssd', default='fused', choices=('fused', 'plain'))
    parser.add_argument('--accumulation', type=int, default=2)
    parser.add_argument('--steps', type=int, default=30)
    o = parser.parse_args()
    d_state, layers = SIZES[o.d_model]
    case = dict(precision=PRECISIONS[o.precision], use_checkpoint=o.checkpoint == 'yes', hidden_dim=o.d_model, d_state=d_state,
                num_layers=layers, share_weights=SHARED[o.share], pooling_scales=[1, 2, 4], ssd=o.ssd,
                num_vectors=o.length, train_ratio_of_vectors=1.0, length=o.length, accumulation=o.accumulation)
    print(measure.figures(case, o.batch, o.steps)['steps'][-1])


if __name__ == '__main__':
    main()
