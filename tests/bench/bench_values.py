"""What following values costs under `plimsoll exec`: a program on the virtual GPU beside the same on one that does
nothing about what kernels write (blind), by turns. One line of JSON a program: the medians of the ratios of the
trials' processor time, and of that of a training step.

    bench_values.py PLIMSOLL VIRTUAL_GPU BLIND_GPU
    PLIM_TORCH_PYTHON: a Python with PyTorch and transformers
"""
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

PAIRS, STEPS = 5, 40
MOST = 1.15
# The loss is read in every step, as a Trainer does that logs each; processor time, which others on this machine
# disturb less than a clock.
# With a mask that hides nothing a program that knows it does less; one that is padded makes both do the same.
PROGRAM = """
import statistics, sys, time, torch, transformers
kind, *options = sys.argv[1].split()
sizes = dict(vocab_size=50257)
config, model = {
    'gpt2': (transformers.GPT2Config, transformers.GPT2LMHeadModel),
    'bert': (transformers.BertConfig, transformers.BertForMaskedLM)}[kind]
model = model(config(**sizes)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), fused='foreach' not in options, foreach='foreach' in options)
tokens = torch.arange(8 * 512).remainder(30000).view(8, 512)
mask = torch.ones_like(tokens)
if 'padded' in options:
    mask[:, 300:] = 0
seconds = []
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    with torch.autocast('cuda', torch.bfloat16):
        loss = model(input_ids=tokens.cuda(), attention_mask=mask.cuda(), labels=tokens.cuda()).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    seconds.append(time.process_time() - start)
print(statistics.median(seconds))
"""


def install(folder, plimsoll, library):
    """plimsoll with this library where it looks for it."""
    for name, source in (('autotune/plimsoll', plimsoll), ('devices/virtual/libcuda.so.1', library)):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path))
        shutil.copy(source, path)
    os.symlink('libcuda.so.1', os.path.join(folder, 'devices/virtual/libnvidia-ml.so.1'))
    return os.path.join(folder, 'autotune/plimsoll')


def measure(plimsoll, python, model):
    """Seconds of a trial and of a step."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as logs:
        subprocess.run([plimsoll, 'exec', '--device', 'sim:A100-SXM4-80GB', '--repetitions', '1000000', '--no-store',
                        '--quiet', '--logs', logs, '--env', 'OMP_NUM_THREADS=1', '--',
                        python, '-c', PROGRAM, model, str(STEPS)], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(logs, 'trial-1.log')) as file:
            step = float(file.read().split()[-1])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, step


def main():
    plimsoll, virtual, blind = sys.argv[1:]
    python = os.environ.get('PLIM_TORCH_PYTHON')
    if not python:
        print('PLIM_TORCH_PYTHON is not set')
        return
    with tempfile.TemporaryDirectory() as folder:
        plimsolls = [install(os.path.join(folder, name), plimsoll, library)
                     for name, library in (('followed', virtual), ('blind', blind))]
        for model in ('gpt2', 'gpt2 foreach', 'bert', 'bert padded'):
            pairs = [[measure(each, python, model) for each in plimsolls] for _ in range(PAIRS)]
            trial, step = [statistics.median(a[i] / b[i] for a, b in pairs) for i in range(2)]
            print(json.dumps({'name': f'following values, {model}', 'trial ratio': round(trial, 3),
                              'step ratio': round(step, 3), 'wanted': MOST,
                              'step seconds': [statistics.median(each[1] for each in side) for side in zip(*pairs)]}),
                  flush=True)


main()
