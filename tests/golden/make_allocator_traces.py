"""Traces of PyTorch's own caching allocator under settings that the recorded training runs do not have.

    OUT/run VENV/bin/python make_allocator_traces.py FOLDER             the named ones (tests/golden/traces/extra)
    OUT/run VENV/bin/python make_allocator_traces.py FOLDER --random N  N of random settings, to look for differences

Needs the oracle (PyTorch on a virtual GPU); the tests only read what it wrote. A trace is a random walk of tensors made and
dropped, of record_stream and empty_cache, in a process of its own; the format is described in tests/support/allocator_trace.h.
"""
import json, os, random, subprocess, sys

MIB = 1 << 20
#   name                  PYTORCH_CUDA_ALLOC_CONF                                                  MiB    streams, largest tensor in MiB
NAMED = {
    "streams":           ("",                                                                      1 << 26, 3, 200),
    "record-stream":     ("",                                                                      900,     2, 100),
    "roundup":           ("roundup_power2_divisions:[1:8,4:2,16:1,32:4,>:8]",                      1 << 26, 1, 300),
    "fraction-gc":       ("garbage_collection_threshold:0.6,per_process_memory_fraction:0.5",      4000,    2, 200),
    "max-split-oom":     ("max_split_size_mb:40,max_non_split_rounding_mb:30",                     1500,    1, 200),
    "expandable-oom":    ("expandable_segments:True",                                              900,     2, 150),
    "large-segment":     ("large_segment_size_mb:36,max_split_size_mb:64,roundup_power2_divisions:4", 1200, 2, 120),
}

def random_settings(rng):
    conf = []
    if rng.random() < 0.4: conf.append("expandable_segments:True")
    if rng.random() < 0.3: conf.append(f"large_segment_size_mb:{rng.choice([11, 16, 20, 21, 36, 100])}")
    if rng.random() < 0.4: conf.append(f"max_split_size_mb:{rng.choice([100, 101, 128, 150])}")
    if rng.random() < 0.2: conf.append(f"max_non_split_rounding_mb:{rng.choice([100, 128])}")
    if rng.random() < 0.3: conf.append(f"roundup_power2_divisions:{rng.choice(['2', '4', '8', '[1:4,8:2,>:16]', '[16:4,64:8]'])}")
    if rng.random() < 0.5: conf.append(f"per_process_memory_fraction:{rng.choice([0.3, 0.5, 0.77, 0.9])}")
    if rng.random() < 0.5: conf.append(f"garbage_collection_threshold:{rng.choice([0.3, 0.6, 0.8])}")
    rng.shuffle(conf)
    return ",".join(conf), rng.choice([1 << 26, 700, 1500, 4000]), rng.choice([1, 1, 2, 3]), rng.choice([30, 120, 300])

def size(rng, known, largest):
    """Bytes of the next tensor: often one of before, else of any magnitude, often beside a round number."""
    if known and rng.random() < 0.5: return rng.choice(known)
    n = int(2 ** rng.uniform(0, (largest * MIB).bit_length() - 1))
    if rng.random() < 0.3:
        unit = rng.choice([512, MIB, 2 * MIB, 10 * MIB])
        n = max(1, n // unit * unit + rng.choice([-512, -1, 0, 1, 512]))
    return n

class Recorder:
    """Writes the walk as lines: what was asked for, with what the allocator did put before it."""
    def __init__(self, torch, streams):
        self.torch, self.actions, self.lines, self.seen = torch, [], [], 0
        order = sorted(s.cuda_stream for s in streams)
        self.number = {pointer: i for i, pointer in enumerate(order)}
        torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=1 << 30)
    def did(self, line, traced): self.actions.append((line, traced))
    def flush(self):
        """Puts the events since the last flush and the actions that caused them into order."""
        trace = self.torch.cuda.memory._snapshot()["device_traces"][0]
        memory = dict(segment_alloc="S", segment_free="s", segment_map="M", segment_unmap="m")
        for e in trace[self.seen:]:
            if e["action"] in memory: self.lines.append(f'{memory[e["action"]]} {e["size"]}')
            elif e["action"] in ("alloc", "oom", "free_requested"):
                while self.actions:
                    line, traced = self.actions.pop(0)
                    if traced: break
                    self.insert(line)
                self.lines.append(line)
        self.seen = len(trace)
        for line, traced in self.actions: assert not traced; self.lines.append(line)
        self.actions = []
    def insert(self, line):
        """An action without an event stands before the memory events of the one that follows."""
        i = len(self.lines)
        while i and self.lines[i - 1][0] in "SsMm" and self.lines[i - 1][:4] != "step": i -= 1
        self.lines.insert(i, line)
    def step(self, n):
        self.flush()
        s = self.torch.cuda.memory_stats()
        g = lambda name: [s[f"{name}_bytes.all.{what}"] for what in ("current", "peak")]
        (a, ap), (r, rp), (q, qp) = g("allocated"), g("reserved"), g("requested")
        self.lines += [f'q {q} {qp} {s["num_alloc_retries"]} {s["num_ooms"]}', f"step {n} {a} {r} {ap} {rp}"]
        self.torch.cuda.reset_peak_memory_stats()

def walk(seed, streams, largest, capacity, events):
    import torch
    rng = random.Random(seed)
    torch.cuda.init()
    streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(streams - 1)]
    rec, live, known, n = Recorder(torch, streams), {}, [], 0
    target, total = min(capacity, 2500 * MIB), 0
    for i in range(events):
        if i % (events // 5) == events // 5 - 1: rec.step(5 * i // events + 1)
        r = rng.random()
        if live and (r < 0.45 or total > 1.2 * target):
            k = rng.choice(list(live))
            if rng.random() < 0.2 and len(streams) > 1:
                s = rng.choice(streams); live[k][0].record_stream(s); rec.did(f"r {k} {rec.number[s.cuda_stream]}", False)
            total -= live[k][1]; del live[k]; rec.did(f"f {k}", True)
        elif r > 0.994:
            rec.flush(); torch.cuda.empty_cache(); rec.flush(); rec.lines.append("e")
        else:
            b, s = size(rng, known, largest), rng.choice(streams)
            known = (known + [b])[-12:]
            where = f" {rec.number[s.cuda_stream]}" if len(streams) > 1 else ""
            try:
                with torch.cuda.stream(s): t = torch.empty(b, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError: rec.did(f"o {b}{where}", True); continue
            n += 1; live[n] = (t, b); total += b; del t
            rec.did(f"a {n} {b}{where}", True)
    rec.step(6)
    return rec.lines

def make(path, seed, settings, events=2400):
    """One trace, by a process that has its settings from the start."""
    conf, mib, streams, largest = settings
    env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, VGPU_MEM=str(mib * MIB))
    job = json.dumps([seed, streams, largest, mib * MIB, events])
    out = subprocess.run([sys.executable, __file__, "--walk", job], env=env, check=True, capture_output=True, text=True).stdout
    with open(path, "w") as f: f.write((f"# conf {conf}\n" if conf else "") + f"# capacity {mib * MIB}\n" + out)

if __name__ == "__main__":
    if sys.argv[1] == "--walk": print("\n".join(walk(*json.loads(sys.argv[2]))))
    elif "--random" in sys.argv:
        for seed in range(int(sys.argv[sys.argv.index("--random") + 1])):
            make(f"{sys.argv[1]}/random-{seed}.trace", seed, random_settings(random.Random(seed)), 4000)
    else:
        for seed, (name, settings) in enumerate(NAMED.items()): make(f"{sys.argv[1]}/{name}.trace", seed, settings)
