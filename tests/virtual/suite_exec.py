"""Running programs under `plimsoll exec`, and what an installation of Python has."""
import json
import os
import re
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, 'programs')
UNLIMITED = 1 << 46  # bytes: so much that PyTorch never gives a block back
TO_ITS_END = 1000000  # repetitions: no trial ends before its program does

PACKAGES = ('torch', 'torchvision', 'transformers', 'peft', 'accelerate', 'bitsandbytes', 'timm',
            'lightning', 'deepspeed', 'scipy', 'mamba_ssm', 'causal_conv1d', 'stable_baselines3', 'ultralytics', 'jax',
            'yaml')

ASK = '''
import importlib.metadata, importlib.util, json
names = importlib.metadata.packages_distributions()
print(json.dumps({n: importlib.metadata.version(names[n][0]) if n in names else ""
                  for n in %r if importlib.util.find_spec(n)}))
'''


class Installation:
    """A Python and the versions of its packages."""

    def __init__(self, python):
        self.python = python
        self.cache = os.path.join(os.path.dirname(os.path.dirname(python)), 'pycache')
        try:
            answer = subprocess.run([python, '-c', ASK % (PACKAGES,)], capture_output=True, text=True)
        except OSError as error:
            raise SystemExit(f'suite: {error}')
        if answer.returncode:
            raise SystemExit(f'suite: {python} does not run: {answer.stderr.strip()[-300:]}')
        self.versions = json.loads(answer.stdout)

    def lacks(self, *names):
        """Why a program that needs these ('torch', 'torch>=2.6') cannot run; '' if it can."""
        missing = [name for name in names if not self.has(*name.split('>='))]
        return f'{", ".join(missing)} not installed' if missing else ''

    def has(self, name, at_least='0'):
        def numbers(version):
            return [int(part) for part in re.findall(r'\d+', version)[:2]]
        return name in self.versions and numbers(self.versions[name]) >= numbers(at_least)

    def differs(self, **wanted):
        """How the installation differs from these versions; '' if it does not."""
        other = [f'{name} {self.versions.get(name, "none")}, expected {version}'
                 for name, version in wanted.items()
                 if self.versions.get(name, '').split('+')[0] != version]
        return '; '.join(other)


class Run:
    """What came of one call of exec."""

    def __init__(self, status, report, log, said):
        self.status, self.report, self.log, self.said = status, report, log, said
        self.lines = []
        for line in log.splitlines():
            try:
                found = json.loads(line) if line.startswith('{') else None
            except ValueError:
                found = None
            if isinstance(found, dict):
                self.lines.append(found)
        self.notes = [why for why in report.get('why', []) if why.startswith('Virtual GPU: ')]

    def tail(self, count=12):
        return '\n'.join(self.log.splitlines()[-count:]) or self.said[-1500:]


class Exec:
    """Calls of `plimsoll exec` with one installation of Python."""

    def __init__(self, plimsoll, installation):
        self.plimsoll, self.installation = plimsoll, installation
        self.notes = {}  # what the virtual GPU could not do: the programs that saw it

    def run(self, arguments, gpu='A100-SXM4-80GB', memory=None, more=(), ranks=0, timeout=600, placement='ascending'):
        """`arguments`: the program of Python, relative to programs/, and its own. With `ranks`,
        torchrun starts so many, on a GPU each. The others: see run_command."""
        launcher = ['-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={ranks}']
        program = [self.installation.python, *(launcher if ranks else []),
                   os.path.join(PROGRAMS, arguments[0]), *map(str, arguments[1:])]
        run = self.run_command(program, gpu, memory, more, ranks, timeout, placement)
        for note in run.notes:
            self.notes.setdefault(note, set()).add(arguments[0])
        return run

    def run_command(self, program, gpu='A100-SXM4-80GB', memory=None, more=(), ranks=0,
                    timeout=600, placement='ascending'):
        """`program`: words. `memory`: bytes of the GPU. `more`: options of exec. `timeout`: seconds
        of a trial. `placement`: figures that no real GPU gave are of a virtual one whose addresses ascend."""
        device = f'sim:{gpu},placement={placement}' + (f',memory={memory}' if memory else '')
        folder = tempfile.mkdtemp(prefix='plimsoll-suite-')
        command = [self.plimsoll, 'exec', '--device', device, '--margin', '0', '--overhead', '0',
                   '--gpus', str(ranks or 1), '--timeout', f'{timeout}s',
                   '--repetitions', str(TO_ITS_END), '--logs', folder, '--json', '--quiet', *more]
        # What is compiled allocates more the first time than from a cache. Python's own is beside the installation.
        settings = {'OMP_NUM_THREADS': '1', 'PYTHONDONTWRITEBYTECODE': '', 'PYTHONPYCACHEPREFIX': self.installation.cache,
                    'TORCHINDUCTOR_CACHE_DIR': os.path.join(folder, 'inductor'),
                    'TRITON_CACHE_DIR': os.path.join(folder, 'triton'),
                    # JAX takes no more than it needs, and no kernels by how fast they seem.
                    'XLA_PYTHON_CLIENT_PREALLOCATE': 'false',
                    'XLA_FLAGS': '--xla_gpu_autotune_level=0'}
        for name, value in settings.items():
            command += ['--env', f'{name}={value}']
        try:
            ended = subprocess.run(command + ['--'] + program, capture_output=True, text=True,
                                   cwd=PROGRAMS, stdin=subprocess.DEVNULL)
            try:
                report = json.loads(ended.stdout)
            except ValueError:
                report = {}
            log = self.log_of(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Run(ended.returncode, report, log, ended.stdout + ended.stderr)

    @staticmethod
    def log_of(folder):
        """The output of the first trial. Where it did not fit, another has measured what is needed."""
        path = os.path.join(folder, 'trial-1.log')
        if not os.path.exists(path):
            return ''
        with open(path, errors='replace') as file:
            return file.read()


def load_cases(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def first_difference(found, expected, name=''):
    """The first figure in which two results differ, in words; '' if none. Keys that are not
    expected are not looked at."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected:
            said = first_difference(found.get(key), expected[key], f'{name} {key}'.strip())
            if said:
                return said
        return ''
    if isinstance(expected, list) and isinstance(found, list):
        for i, value in enumerate(expected):
            said = first_difference(found[i] if i < len(found) else None, value, f'{name} {i + 1}')
            if said:
                return said
        if len(found) > len(expected):
            return f'{name}: {len(found)} of them, expected {len(expected)}'
        return ''
    if found == expected:
        return ''
    both = isinstance(found, int) and isinstance(expected, int)
    gap = f' ({found - expected:+d})' if both else ''
    return f'{name}: {found}, expected {expected}{gap}'
