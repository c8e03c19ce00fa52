"""PyTorch's side as a process that stays, so that it is imported once (torch_side.py)."""
import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time

import gpu
from record import Late


class Framework:
    """Jobs go to processes of it that stay, as many as there are jobs at a time."""

    def __init__(self, root, script, environment):
        self.script = script or os.path.join(root, 'scripts', 'gpu', 'torch_side.py')
        self.is_stand_in = script is not None
        self.environment = environment
        self.lock, self.idle, self.started = threading.Lock(), [], []

    def lacks(self, machine):
        """Why there is none to ask; None: there is."""
        if self.is_stand_in:
            return None
        lacking = [name for name in ('torch', 'transformers')
                   if importlib.util.find_spec(name) is None]
        if lacking:
            return f'python3 has no {" and no ".join(lacking)}'
        return 'a pretended GPU has no PyTorch' if machine['simulated_gpu'] else None

    def stop(self):
        for side in self.started:
            side.stop()

    def ask(self, job, seconds):
        """The answer to a job. gpu.Failed: there was none; Late: not in time."""
        with self.lock:
            if not self.idle:
                self.idle.append(Side(self.script, self.environment))
                self.started.append(self.idle[-1])
            side = self.idle.pop()
        try:
            return side.ask(job, seconds)
        finally:
            with self.lock:
                self.idle.append(side)


class Side:
    """One process: jobs go to it and answers come back, one JSON object a line each. It is killed, with
    what it started, when a job's time is over; the next job starts another."""

    def __init__(self, script, environment):
        self.script, self.environment, self.process = script, environment, None

    def start(self):
        self.process = subprocess.Popen([sys.executable, '-B', self.script], env=self.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True)

    def stop(self):
        if not self.process:
            return
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.process = None

    def read_line(self, end):
        """A whole line, b'' at the end of its output; Late when the time is over."""
        line = b''
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while not line.endswith(b'\n'):
                if not selector.select(max(0, end - time.monotonic())):
                    self.stop()
                    raise Late()
                some = os.read(self.process.stdout.fileno(), 1 << 16)
                if not some:
                    return b''
                line += some
        return line

    def ask(self, job, seconds):
        end = time.monotonic() + seconds
        if not self.process:
            self.start()
        self.process.stdin.write(json.dumps(job).encode() + b'\n')
        self.process.stdin.flush()
        line = self.read_line(end)
        if not line:
            self.stop()
            raise gpu.Failed(f'{os.path.basename(self.script)} ended without an answer')
        return json.loads(line)
