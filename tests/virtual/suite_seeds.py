"""The training systems of programs/seeds: their measured cases, and the programs themselves."""
import functools
import os
import shlex

from suite_exec import PROGRAMS, UNLIMITED, first_difference, load_cases

VERSIONS = {'torch': '2.11.0'}
FIGURES = ('parameters', 'trainable_parameters', 'parameters_allocated', 'steps')
SOME = 12  # cases of a system, spread over the file, where not all are wanted
AT_ONCE = 12  # of one start of Python
SECONDS_OF_ONE = 600  # at most

# Folder and what it needs. 000 needs more for most of its cases.
SYSTEMS = {'000-hilbert-ssm': ('torch', 'yaml'),
           '001-video-llm': ('torch', 'transformers', 'peft', 'yaml'),
           '002-gsa': ('torch', 'yaml'),
           '003-naics-embedder': ('torch', 'transformers', 'peft', 'yaml'),
           '004-multimodal-autoencoder': ('torch',)}
# Each GPU has the multiprocessors that the case was measured with.
GPUS = {(75, None): 'Quadro-RTX-6000', (80, None): 'A100-SXM4-80GB', (86, None): 'RTX-3090',
         (89, None): 'L40S', (86, 142): 'L40S'}
QUICK = ('004-multimodal-autoencoder one GPU/--precision bf16 --optimizer adam-fused',)

# The programs themselves: folder, arguments, ranks.
WHOLE = (
    ('000-hilbert-ssm', 'MODEL.model_init_args.ssd=plain MODEL.model_init_args.num_layers=1'
     ' TRAINING.max_epochs=1 DATA.dataset.dataset_init_args.num_samples=4'
     ' DATA.dataset.dataset_init_args.num_vectors=20000', 0),
    ('001-video-llm', '--max-steps 2 training.batch_size=2', 0),
    ('002-gsa', '--config {folder}/pretrain_512m_low_memory.yaml --output_dir /nonexistent'
     ' training.max_steps=2 training.gradient_accumulation_steps=2 data.num_workers=0'
     ' data.num_sequences=64', 2),
    ('003-naics-embedder', '--max-steps 2 data_loader.batch_size=4', 0),
    ('004-multimodal-autoencoder', '--precision bf16 --steps 2', 0),
    ('004-multimodal-autoencoder', '--precision bf16 --sharding fsdp --steps 2', 8),
)


def ranks_of(case):
    return case['world'] if case.get('world', 1) > 1 else 0


def group_of(case):
    """GPU, memory and ranks: cases that share them share a start of Python."""
    gpu = GPUS[case['compute_capability'], case.get('multiprocessors')]
    expandable = case.get('expandable_segments') or 'alloc_conf' in case or 'allocator' in case
    # Expandable segments reserve addresses for the whole GPU.
    unlimited = 1 << 40 if expandable or 'world' in case else UNLIMITED
    memory = case.get('fit', case).get('capacity_bytes', unlimited)
    return gpu, memory, ranks_of(case)


def needs(folder, case):
    names = list(SYSTEMS[folder])
    names += ['mamba_ssm', 'causal_conv1d'] if case.get('ssd') == 'fused' else []
    names += ['bitsandbytes'] if 'adam8bit' in case.get('settings', '') else []
    return names + (['deepspeed'] if 'deepspeed' in case.get('settings', '') else [])


def refused_by_gpus(case):
    """bitsandbytes counts elements in 32 bits: a real GPU refuses its launch, the prototype of the
    virtual GPU took it."""
    words = shlex.split(case['settings']) if isinstance(case.get('settings'), str) else []

    def of(name, default):
        return int(words[words.index(name) + 1]) if name in words else default
    elements = of('--frames', 38) * 160 * 90 * 3 * of('--video-hidden', 4096)
    return 'adam8bit' in words and elements > 0x7fffffff and case['group'] != 'reported'


def why_not(exec_, folder, case):
    if refused_by_gpus(case):
        return 'bitsandbytes counts in 32 bits: no GPU makes this run'
    return exec_.installation.lacks(*needs(folder, case))


def expected_of(case):
    """What case.py should print. A search is not repeated: its result is run, and the next."""
    if 'oom' in case:
        return {'oom': case['oom'].split('. GPU')[0]}
    expected = {key: case[key] for key in FIGURES if key in case}
    if case.get('largest_batch') == 0:
        ended = dict(case['next_batch'])
        ended.pop('batch')
        expected['ended'] = ended
    elif 'ended' in case:
        expected['ended'] = case['ended']
    return expected


def batch_of(case):
    if 'largest_batch' in case:
        return case['largest_batch'] or case['next_batch']['batch']
    return 0


def compare(case, lines, tail):
    found = [line for line in lines if line.get('id') == case['id']]
    if not found:
        return tail
    expected = expected_of(case)
    if 'per_rank' in case:
        for rank, steps in enumerate(case['per_rank']):
            mine = [line for line in found if line['rank'] == rank]
            said = first_difference(mine[0] if mine else {}, {'steps': steps}, f'rank {rank}')
            if said:
                return said
    first = next((line for line in found if line['rank'] == 0), found[0])
    failed = first.get('error', '') or ('' if 'oom' in expected else first.get('oom', ''))
    return failed or first_difference(first, expected)


def ended_before(case, lines):
    """Why a case cannot be compared that was measured with one rank alone; '' if it can."""
    for line in lines if case.get('ranks') == 'alone' else ():
        ended = line.get('ended', {})
        if line['rank'] and ended.get('what') == 'out of memory' \
                and len(line['steps']) < len(case['steps']):
            return f'measured with rank 0 alone: of 8, rank {line["rank"]} is out of memory first'
    return ''


def run_some(exec_, folder, cases, group):
    gpu, memory, ranks = group
    able = []
    for case in cases:
        reason = why_not(exec_, folder, case)
        if reason:
            yield f'seeds {folder} {case["id"]}', '', reason
        else:
            able.append(case)
    if not able:
        return
    more = ['--batch', batch_of(able[0])] if batch_of(able[0]) else []
    limit = SECONDS_OF_ONE * len(able)
    run = exec_.run(['seeds/case.py', folder, *[case['id'] for case in able], *more], gpu=gpu,
                    memory=memory, ranks=ranks, timeout=limit)
    others = {case['id']: ended_before(case, run.lines) for case in able}
    problems = {case['id']: '' if others[case['id']] else compare(case, run.lines, run.tail())
                for case in able}
    edges = [case['id'] for case in able if 'fit' in case]
    if edges:
        run = exec_.run(['seeds/case.py', folder, *edges, '--more', 1], gpu=gpu, memory=memory,
                        timeout=limit)
        said = {line['id']: line.get('oom') for line in run.lines if 'id' in line}
    for case in able:
        if case['id'] in edges and not problems[case['id']]:
            problems[case['id']] = first_difference(said.get(case['id'], run.tail()),
                                                    case['fit']['next_batch_says'], 'next batch')
        yield f'seeds {folder} {case["id"]}', problems[case['id']], others[case['id']]


def run_whole(exec_, folder, arguments, ranks):
    name = f'seeds {folder} train.py {arguments.replace("{folder}/", "")}'
    name += f' x{ranks}' if ranks else ''
    lacks = exec_.installation.lacks(*SYSTEMS[folder])
    if lacks:
        return [(name, '', lacks)]
    place = os.path.join('seeds', folder)
    words = arguments.format(folder=os.path.join(PROGRAMS, place)).split()
    run = exec_.run([os.path.join(place, 'train.py'), *words], memory=UNLIMITED, ranks=ranks)
    return [(name, f'exit code {run.status} of exec\n{run.tail()}' if run.status else '', '')]


def selected(folder, options):
    """The cases that ran: not those that ended with an error, or of which nothing fits."""
    cases = [case for case in load_cases(os.path.join(PROGRAMS, 'seeds', folder, 'cases.jsonl'))
             if 'error' not in case and case.get('fit', {}).get('largest_batch') != 0]
    if not (options.pattern or options.all or options.quick):
        return cases[::max(1, len(cases) // SOME)]
    names = {f'{folder} {case["id"]}': case for case in cases}
    return [case for name, case in names.items() if options.wants(name, name in QUICK)]


def seeds(exec_, options):
    for folder, arguments, ranks in WHOLE:
        if options.wants(f'{folder} train.py', False):
            yield functools.partial(run_whole, exec_, folder, arguments, ranks)
    other = exec_.installation.differs(**VERSIONS)
    if other:
        yield lambda: [('seeds: cases', '', other)]
        return
    for folder in SYSTEMS:
        groups = {}
        for case in selected(folder, options):
            alone = case['id'] if ranks_of(case) or batch_of(case) else ''
            groups.setdefault((group_of(case), alone), []).append(case)
        for (group, _), cases in groups.items():
            for i in range(0, len(cases), AT_ONCE):
                yield functools.partial(run_some, exec_, folder, cases[i:i + AT_ONCE], group)
