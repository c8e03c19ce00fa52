"""The programs of the build folder, and the machine that they run on."""
import datetime
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time


def default_build(root):
    builds = sorted(glob.glob(os.path.join(root, 'build*', 'autotune', 'plimsoll')))
    preferred = os.path.join(root, 'build-dev')
    if os.path.isdir(preferred) or not builds:
        return preferred
    return os.path.dirname(os.path.dirname(builds[0]))


class Failed(Exception):
    """A program ended in a way that it should not."""


def run(command, seconds, env=None, stdin=None):
    """(exit code, stdout, stderr) of a command that is killed with all its children after that."""
    process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE if stdin else None,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        out, err = process.communicate(stdin, timeout=seconds)
        return process.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return 'killed', out, err


def json_lines(text):
    """The lines that are whole: a program that was killed may leave half a one."""
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


class Programs:
    def __init__(self, root, build, device):
        self.root, self.build, self.device = root, os.path.abspath(build), device
        self.plimsoll = os.path.join(self.build, 'autotune', 'plimsoll')
        self.on_gpu = os.path.join(self.build, 'tests', 'gpu', 'on_gpu')
        if not os.path.exists(self.plimsoll):
            sys.exit(f'gpu-suite: {self.plimsoll}: not there, build it or name another --build')
        self.env = dict(os.environ, PLIMSOLL_STORE='off')  # every tune measures
        self.env.setdefault('VIRTUAL_ENV', sys.prefix)  # where PyTorch keeps NVIDIA's libraries
        libraries = os.path.join(self.build, 'lib')  # of a packed build
        if os.path.isdir(libraries):
            paths = [libraries, self.env.get('LD_LIBRARY_PATH', '')]
            self.env['LD_LIBRARY_PATH'] = ':'.join(path for path in paths if path)

    def gpu(self, verb, limit, device=None, under=(), **options):
        """Lines of `on_gpu VERB DEVICE --OPTION VALUE...` and its exit code, 'killed' after
        `limit` seconds. `under`: a command that runs it."""
        command = [*under, self.on_gpu, verb, device or self.device]
        for name, value in options.items():
            command += [f'--{name}', str(value)]
        code, out, err = run(command, limit, self.env)
        if code == 2:
            raise Failed(err.strip())
        return json_lines(out), code

    def devices(self):
        code, out, _ = run([self.plimsoll, 'devices', '--json'], 60, self.env)
        return json.loads(out) if code == 0 else {'machine': {'gpus': []}, 'devices': []}

    def twin(self, own):
        """The simulated GPU that is most like this one."""
        found = [device for device in self.devices()['devices']
                 if device['simulated'] and device['compute_capability'] == own['compute_capability']]
        if not found:
            raise Failed(f'no simulated GPU of compute capability {own["compute_capability"]}')
        return min(found, key=lambda device: (abs(device['multiprocessors'] - own['multiprocessors']),
                                              abs(device['total_bytes'] - own['total_bytes'])))['uri']

    def alike(self):
        """How many GPUs CUDA shows here that are of the first one's name."""
        gpus = self.devices()['machine']['gpus']
        return sum(gpu['name'] == gpus[0]['name'] for gpu in gpus)

    def tune(self, subject, options, seconds, device=None):
        """(report, exit code, wall seconds, stderr) of a tune."""
        command = [self.plimsoll, 'tune', subject, '--device', device or self.device,
                   '--json'] + list(options)
        begin = time.monotonic()
        code, out, err = run(command, seconds, self.env)
        wall = time.monotonic() - begin
        try:
            return json.loads(out), code, wall, err.strip()
        except ValueError:
            return None, code, wall, err.strip()

    def pack(self, folder):
        """Copies what is needed to run here and what a bare machine lacks."""
        libraries = (os.path.join(self.build, 'devices', *name) for name in (
            ('virtual', 'libcuda.so.1'), ('observe', 'libplimsoll-observe.so')))
        for program in (self.plimsoll, self.on_gpu, *libraries):
            to = os.path.join(folder, os.path.relpath(program, self.build))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(program, to)
        os.makedirs(os.path.join(folder, 'lib'), exist_ok=True)
        for line in subprocess.run(['ldd', self.plimsoll, self.on_gpu], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.splitlines():
            words = line.split()
            if '=>' in words and any(name in words[0] for name in ('jansson', 'yaml', 'libz.')):
                shutil.copy2(words[2], os.path.join(folder, 'lib', words[0]))
        total = sum(os.path.getsize(os.path.join(place, name))
                    for place, _, names in os.walk(folder) for name in names)
        print(f'{folder}: {total / 2**20:.1f} MiB')
        return 0


def output_of(*command):
    try:
        return subprocess.run(command, text=True, timeout=60, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def describe(programs):
    """GPU, driver, libraries, clocks; `simulated_gpu` where all that is pretended."""
    lines, _ = programs.gpu('info', 120)
    pretended = 'PLIM_DOUBLE_STATE' in os.environ
    query = 'name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,' \
            'power.limit,temperature.gpu,memory.total,memory.used'
    clocks = None if pretended else output_of('nvidia-smi', f'--query-gpu={query}',
                                              '--format=csv,noheader')
    return {'simulated_gpu': pretended, 'gpu': lines[0],
            'date': datetime.datetime.now().isoformat(timespec='seconds'),
            'commit': output_of('git', '-C', programs.root, 'rev-parse', 'HEAD'),
            'plimsoll': output_of(programs.plimsoll, '--version'),
            'nvidia_smi': dict(zip(query.split(','), clocks.split(', '))) if clocks else None}
