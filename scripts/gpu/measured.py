"""Runs a program of PyTorch's or JAX's and says what it allocated:

    python3 measured.py [--seconds] FILE PROGRAM [ARGUMENT]...

FILE gets one JSON object. With PyTorch: the peaks of the caching allocator, every block that was asked
for or given back with its bytes and the line of Python that did (`events`), and the milliseconds of
each optimizer's step. With JAX: the peak of its allocator. `process_bytes` is what the driver says that this
process holds, None where it does not say. With --seconds no events: writing them down takes the host longer than
PyTorch itself.
"""
import json
import os
import runpy
import sys

MOST_EVENTS = 400000


def process_bytes():
    try:
        import pynvml
        pynvml.nvmlInit()
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByIndex(0))
        return next((p.usedGpuMemory for p in running if p.pid == os.getpid()), None)
    except Exception:  # no NVML, or one that does not know processes
        return None


def place(frames):
    """The innermost line of Python, as FILE:LINE function."""
    frame = next((f for f in frames if f['filename'].endswith('.py')), None)
    if not frame:
        return ''
    folder, name = os.path.split(frame['filename'])
    return f'{os.path.basename(folder)}/{name}:{frame["line"]} {frame["name"]}'


class Torch:
    def __init__(self, with_events):
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook
        self.torch, self.marks = torch, []
        if with_events:
            torch.cuda.memory._record_memory_history(context='alloc', stacks='python',
                                                     max_entries=MOST_EVENTS)
        register_optimizer_step_post_hook(self.mark)

    def mark(self, *_):
        if not self.torch.cuda.is_current_stream_capturing():
            event = self.torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)

    def found(self):
        self.torch.cuda.synchronize()
        stats = self.torch.cuda.memory_stats()
        traces = self.torch.cuda.memory._snapshot()['device_traces'][0]
        return {'peak_allocated': stats['allocated_bytes.all.peak'],
                'peak_reserved': stats['reserved_bytes.all.peak'],
                'peak_requested': stats['requested_bytes.all.peak'],
                'reserved': stats['reserved_bytes.all.current'],
                'retries': stats['num_alloc_retries'],
                'step_milliseconds': [a.elapsed_time(b) for a, b in zip(self.marks, self.marks[1:])],
                'segments': [[t['action'], t['size'], t['addr'], t.get('stream')] for t in traces
                             if t['action'].startswith('segment')],
                'events': [[t['action'], t['size'], place(t.get('frames', ()))] for t in traces]}


class Jax:
    def found(self):
        import jax
        stats = jax.devices()[0].memory_stats()
        return {'peak_allocated': stats.get('peak_bytes_in_use'), 'peak_reserved': stats.get('peak_pool_bytes'),
                'reserved': stats.get('pool_bytes'), 'step_milliseconds': [], 'events': []}


def main():
    given = sys.argv[1:]
    with_events = given[0] != '--seconds'
    path, program, *arguments = given if with_events else given[1:]
    framework = Jax() if 'jax' in os.path.basename(program) else Torch(with_events)
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name='__main__')
    found = framework.found()
    found['process_bytes'] = process_bytes()
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(found, file)


main()
