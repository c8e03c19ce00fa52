"""A small program with each runtime of CUDA that is promised: headers and libraries of NVIDIA's wheels,
as PyTorch installs them."""
import functools
import glob
import os
import shutil
import subprocess
import tempfile
import zipfile

from suite_exec import HERE

WHEELS = ('nvidia-cuda-runtime-cu11==11.8.89', 'nvidia-cuda-runtime-cu12==12.1.105',
          'nvidia-cuda-runtime-cu12==12.4.127', 'nvidia-cuda-runtime-cu12==12.9.79',
          'nvidia-cuda-runtime==13.0.96')
COMMON_HEADERS = 'nvidia-cuda-crt==13.0.88'  # the older wheels lack some of theirs


def unpack(python, wheel, folder):
    """The wheel's files in a folder of its own; '' where the registry is not reachable."""
    into = os.path.join(folder, wheel)
    command = [python, '-m', 'pip', 'download', '-q', '--no-deps', '--retries', '1', '--timeout',
               '20', '-d', into, wheel]
    if subprocess.run(command, capture_output=True).returncode:
        return ''
    with zipfile.ZipFile(glob.glob(os.path.join(into, '*.whl'))[0]) as file:
        file.extractall(into)
    return into


def found_in(folder, name):
    return next(iter(glob.glob(os.path.join(folder, '**', name), recursive=True)), '')


def build(headers, common, library, program):
    """What the compiler says if it fails, else ''."""
    place = [f'-Wl,-rpath,{os.path.dirname(library)}'] if not library.endswith('.a') else []
    ended = subprocess.run(
        [os.environ.get('CC', 'cc'), '-w', f'-I{headers}', f'-I{common}',
         os.path.join(HERE, 'runtime_program.c'), library, *place, '-ldl', '-lrt', '-lpthread',
         '-lstdc++', '-o', program], capture_output=True, text=True)
    return ended.stderr if ended.returncode else ''


def run_with(exec_, wheel):
    folder = tempfile.mkdtemp(prefix='plimsoll-runtime-')
    try:
        files, common = (unpack(exec_.installation.python, name, folder)
                         for name in (wheel, COMMON_HEADERS))
        if not files or not common:
            yield f'runtime {wheel}', '', 'the registry of Python packages is not reachable'
            return
        headers = os.path.dirname(found_in(files, 'cuda_runtime_api.h'))
        common = os.path.dirname(os.path.dirname(found_in(common, 'host_defines.h')))
        for kind in ('libcudart.so.*', 'libcudart_static.a'):
            library, program = found_in(files, kind), os.path.join(folder, 'program')
            if not library:
                continue
            problem = build(headers, common, library, program)
            if not problem:
                run = exec_.run_command([program], memory=2 << 30)
                problem = '' if run.lines and not run.status else run.tail()
            yield f'runtime {wheel}, {kind}', problem, ''
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def runtimes(exec_, options):
    for wheel in WHEELS:
        if options.wants(f'runtime {wheel}', True):
            yield functools.partial(run_with, exec_, wheel)
