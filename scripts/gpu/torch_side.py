"""PyTorch's side: the training loop of tests/golden on the GPU that is here.

    python3 torch_side.py        a job a line on stdin, a JSON object; its answer on stdout, likewise

  {"do": "figures", "case": ...}          bytes of four steps, and what the process takes beside
  {"do": "largest", "case": ..., "budget_bytes": N, "guess": N}           by bisection
  {"do": "time", "case": ..., "compile": BOOL, "profile": BOOL}   seconds of a step, and of its operations
  {"do": "find", "finder": ..., "case": ..., "seqs": [...], "checkpointing": [...], "budget_bytes": N}

A cap is set_per_process_memory_fraction: it bounds what the caching allocator holds, which is what
plimsoll's budget bounds. (A ballast would also count the context, whose size differs between two
processes and is measured for itself.) Every trial is a process of its own, forked before CUDA is
used: no cached block survives it. Times of finders are of one process, as people run them.
Tokens are those of our own steps (tests/losses/make_losses.py).
"""
import gc
import json
import os
import statistics
import sys
import time
import warnings

BEGAN = time.perf_counter()
warnings.filterwarnings('ignore')
os.environ.setdefault('TRANSFORMERS_VERBOSITY', 'error')
os.environ.setdefault('HF_HUB_OFFLINE', '1')
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'losses'))
import torch  # noqa: E402
import transformers  # noqa: E402
from make_losses import tokens  # noqa: E402

IMPORTED = time.perf_counter() - BEGAN
LOW = {'bf16': torch.bfloat16, 'fp16': torch.float16}


def say(**line):
    print(json.dumps(line), flush=True)


# --- training -------------------------------------------------------------------------------------

def make_config(case):
    if 'hf' in case:
        raw = dict(case['hf'])
    else:
        with open(case['config'], encoding='utf-8') as file:
            raw = json.load(file)
    config = transformers.AutoConfig.for_model(raw.pop('model_type'), **raw)
    if 'hf' in case or case.get('dropout') == 0:
        for name, value in list(vars(config).items()):
            if 'drop' in name and isinstance(value, float):
                setattr(config, name, 0.0)
    config.use_cache = False
    return config


def make_model(case):
    attention = case.get('attention', 'sdpa')
    config = make_config(case)
    # Its module comes in here: what modules make as they are imported is not of the model, and not on the GPU.
    _ = transformers.AutoModelForCausalLM._model_mapping[type(config)]
    torch.set_default_dtype(LOW.get(case.get('weights', case['precision']), torch.float32))
    with torch.device('cuda'):
        model = transformers.AutoModelForCausalLM.from_config(config,
                                                              attn_implementation=attention)
    torch.set_default_dtype(torch.float32)
    if 'lora' in case:
        import peft
        lora = case['lora']
        model = peft.get_peft_model(model, peft.LoraConfig(
            r=lora['r'], lora_alpha=2 * lora['r'], target_modules=lora['target_modules'],
            lora_dropout=lora.get('dropout', 0.0)))
    model.train()
    if case.get('checkpointing') == 'full':
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={'use_reentrant': False})
        if 'lora' in case:
            model.enable_input_require_grads()
    return model


def make_optimizer(name, parameters):
    if name == 'sgd':
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9)
    if name == 'adafactor':
        return torch.optim.Adafactor(parameters, lr=1e-4)
    if name == 'adamw-8bit':
        import bitsandbytes
        return bitsandbytes.optim.AdamW8bit(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4, fused=True if name == 'adamw-fused' else None)


class Training:
    """A model with its optimizer, and steps of any batch."""

    def __init__(self, case, compiled=False):
        torch.manual_seed(0)
        self.case = case
        self.model = make_model(case)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(case['optimizer'], self.parameters)
        self.forward = torch.compile(self.model) if compiled else self.model
        name = case['precision']
        self.mixed = LOW[name[:4]] if name.endswith('-mixed') else None
        self.scaler = torch.amp.GradScaler('cuda') if name == 'fp16-mixed' else None

    def batch(self, batch, seq):
        ids = tokens(self.model.config.vocab_size, batch, seq).cuda()
        return {'input_ids': ids, 'labels': ids}

    def micro_step(self, data):
        with torch.autocast('cuda', dtype=self.mixed or torch.bfloat16, enabled=bool(self.mixed)):
            loss = self.forward(**data).loss
        after = torch.cuda.memory_allocated()
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        return after

    def step(self, data):
        """Bytes allocated after the last forward."""
        for _ in range(self.case.get('accumulation', 1)):
            after = self.micro_step(data)
        if self.case.get('clip'):
            if self.scaler:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad()
        return after


def cap(budget_bytes):
    if budget_bytes:
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction(min(1.0, budget_bytes / total))


def four_steps(case, batch, budget_bytes=None):
    cap(budget_bytes)
    training = Training(case)
    data = training.batch(batch, case['seq'])
    steps = []
    for _ in range(4):
        torch.cuda.reset_peak_memory_stats()
        after = training.step(data)
        stats = torch.cuda.memory_stats()
        steps.append({'after_forward': after,
                      'peak_allocated': stats['allocated_bytes.all.peak'],
                      'peak_reserved': stats['reserved_bytes.all.peak'],
                      'peak_requested': stats['requested_bytes.all.peak'],
                      'end_allocated': stats['allocated_bytes.all.current'],
                      'end_reserved': stats['reserved_bytes.all.current']})
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    taken = total - free - torch.cuda.memory_reserved()
    return {'steps': steps, 'taken_bytes': taken}


def in_a_process(function):
    """Its result, {'oom': ...} or {'error': ...}."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = function()
        except torch.OutOfMemoryError as error:
            result = {'oom': str(error).split('. GPU')[0]}
        except Exception as error:  # a result like others
            result = {'error': f'{type(error).__name__}: {error}'[:500]}
        with os.fdopen(writer, 'w') as file:
            json.dump(result, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {'error': 'the process died'}


# --- jobs -----------------------------------------------------------------------------------------

def figures(job):
    case = job['case']
    return in_a_process(lambda: four_steps(case, case['batch']))


def largest(job):
    """Between a batch that fits and one more that does not; both have been run."""
    trials = {0: True}

    def fits(batch):
        if batch not in trials:
            result = in_a_process(lambda: four_steps(job['case'], batch, job['budget_bytes']))
            if 'error' in result:
                raise RuntimeError(result['error'])
            trials[batch] = 'steps' in result
        return trials[batch]

    guess, stride = max(1, job['guess']), 1
    if fits(guess):
        low, high = guess, guess + 1
        while fits(high):
            low, stride = high, stride * 2
            high = low + stride
    else:
        low, high = guess - 1, guess
        while not fits(low):
            high, stride = low, stride * 2
            low = max(0, high - stride)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    del trials[0]
    return {'largest': low, 'trials': [[batch, ok] for batch, ok in trials.items()]}


OPERATIONS = 60  # of a profile, those that take longest


def profile(training, data):
    """Seconds of the GPU's in a step, by PyTorch's operation."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as seen:
        training.step(data)
        torch.cuda.synchronize()
    rows = [row for row in seen.key_averages(group_by_input_shape=True)
            if row.self_device_time_total > 0 and row.key.startswith('aten::')]
    rows.sort(key=lambda row: -row.self_device_time_total)
    return [{'op': row.key, 'shapes': str(row.input_shapes), 'count': row.count,
             'seconds': row.self_device_time_total * 1e-6} for row in rows[:OPERATIONS]]


def timed_steps(case, compiled, profiled, repeats=20):
    begin = time.perf_counter()
    training = Training(case, compiled)
    data = training.batch(case['batch'], case['seq'])
    for _ in range(5):
        training.step(data)
    torch.cuda.synchronize()
    ready = time.perf_counter() - begin
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        training.step(data)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    result = {'step_seconds': statistics.median(seconds), 'ready_seconds': ready,
              'peak_reserved': torch.cuda.max_memory_reserved()}
    if profiled:
        result['operations'] = profile(training, data)
    return result


def times(job):
    return in_a_process(lambda: timed_steps(job['case'], job.get('compile', False),
                                            job.get('profile', False)))


def tidy():
    gc.collect()
    torch.cuda.empty_cache()


def does_fit(training, batch, seq, steps=3):
    """A trial as finders make it: a few steps; states of the optimizer do not outlive it."""
    try:
        data = training.batch(batch, seq)
        for _ in range(steps):
            training.step(data)
        torch.cuda.synchronize()
        return True
    except torch.OutOfMemoryError:
        return False
    finally:
        data = None
        training.optimizer.zero_grad()
        training.optimizer.state.clear()
        tidy()


def doubling_and_halving(training, seq):
    """Lightning's binsearch: doubles from 2 until it fails, then bisects."""
    low, high, batch, trials = 0, None, 2, 0
    while high is None or high - low > 1:
        trials += 1
        if does_fit(training, batch, seq):
            low = batch
        else:
            high = batch
        batch = low * 2 if high is None else (low + high) // 2
    return low, trials


def shrinking(training, seq, factor, batch=128):
    """accelerate's find_executable_batch_size: from 128 down, by half or, since 1.1, by a tenth."""
    trials = 0
    while batch > 0:
        trials += 1
        if does_fit(training, batch, seq):
            break
        batch = int(batch * factor)
    return batch, trials


FINDERS = {'lightning-binsearch': doubling_and_halving,
           'accelerate-half': lambda training, seq: shrinking(training, seq, 0.5),
           'accelerate-0.9': lambda training, seq: shrinking(training, seq, 0.9)}


def find_everything(finder, job):
    begin = time.perf_counter()
    cap(job.get('budget_bytes'))
    found = []
    for checkpointing in job['checkpointing']:
        for seq in job['seqs']:
            training = Training(dict(job['case'], checkpointing=checkpointing, seq=seq))
            batch, trials = FINDERS[finder](training, seq)
            found.append({'seq': seq, 'checkpointing': checkpointing, 'batch': batch,
                          'trials': trials})
            del training
            tidy()
    return {'found': found, 'wall_seconds': time.perf_counter() - begin}


def find(job):
    return dict(in_a_process(lambda: find_everything(job['finder'], job)), import_seconds=IMPORTED)


JOBS = {'figures': figures, 'largest': largest, 'time': times, 'find': find}

if __name__ == '__main__':
    for LINE in sys.stdin:
        JOB = json.loads(LINE)
        try:
            say(**JOBS[JOB['do']](JOB))
        except RuntimeError as error:
            say(error=str(error))
