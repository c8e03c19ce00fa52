"""A whole Slurm in one folder: munged (for root), slurmctld, and a slurmd for each node, without systemd. GPUs are
character devices of our own. Nothing outside of the folder is written, but for the cgroups of a constrained node."""
import ctypes
import glob
import os
import shutil
import signal
import socket
import subprocess
import time

# Types of gres, and what plimsoll sees there (names of the catalogue), by node.
NODES = {"a0": (["h100", "t4"], ["H100-SXM5-80GB", "T4"]),
         "b0": (["a100"], ["A100-SXM4-80GB"]),
         "c0": (["t4"], ["T4"])}
PROGRAMS = ["slurmctld", "slurmd", "srun", "sbatch", "sinfo", "scontrol"]
NVIDIA = 195  # major number of NVIDIA's devices
START_SECONDS = 40
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def end_with_parent():
    """In a fresh child: no daemon outlives a suite that is killed."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def missing():
    """Why there can be no cluster here, or None."""
    path = "/usr/sbin:/sbin:" + os.environ["PATH"]
    wanted = PROGRAMS + (["munged"] if os.geteuid() == 0 else [])
    for program in wanted:
        if not shutil.which(program, path=path):
            return f"{program} is not installed (scripts/setup test)"
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    def __init__(self, folder, nodes=tuple(NODES), prolog=None, epilog=None, constrain=False):
        self.folder, self.nodes, self.constrain = folder, nodes, constrain
        self.processes = []
        self.is_root = os.geteuid() == 0
        for name in ("etc", "run", "log", "state", "gpus"):
            os.makedirs(os.path.join(folder, name))
        self.environment = dict(os.environ, SLURM_CONF=self.path("etc/slurm.conf"),
                                PATH="/usr/sbin:/sbin:" + os.environ["PATH"])
        self.write_configuration(prolog, epilog)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_configuration(self, prolog, epilog):
        host, user = socket.gethostname().split(".")[0], subprocess.check_output(["id", "-un"], text=True).strip()
        lines = ["ClusterName=plimsoll", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmUser={user}", f"SlurmdUser={user}",
                 f"SlurmctldPort={free_port()}", f"StateSaveLocation={self.path('state')}",
                 f"SlurmdSpoolDir={self.path('spool')}/%n", f"SlurmctldPidFile={self.path('run')}/slurmctld.pid",
                 f"SlurmdPidFile={self.path('run')}/slurmd.%n.pid", f"SlurmctldLogFile={self.path('log')}/slurmctld.log",
                 f"SlurmdLogFile={self.path('log')}/slurmd.%n.log", "JobAcctGatherType=jobacct_gather/none",
                 f"ProctrackType=proctrack/{'cgroup' if self.constrain else 'linuxproc'}",
                 f"TaskPlugin=task/{'cgroup' if self.constrain else 'none'}",
                 "AccountingStorageType=accounting_storage/none", "SelectType=select/cons_tres",
                 "SelectTypeParameters=CR_Core", "SwitchType=switch/none", "MpiDefault=none", "ReturnToService=2",
                 "MailProg=/bin/true", "SlurmdParameters=config_overrides", "KillWait=5", "GresTypes=gpu",
                 "SchedulerParameters=bf_interval=1,sched_interval=1"]
        lines += (["AuthType=auth/munge", f"AuthInfo=socket={self.path('run')}/munge.socket"] if self.is_root
                  else ["AuthType=auth/none", "CredType=cred/none"])
        lines += [f"Prolog={prolog}"] if prolog else []
        lines += [f"Epilog={epilog}"] if epilog else []
        gres = ["AutoDetect=off"] if self.constrain else []
        number = 0
        for node in self.nodes:
            types = NODES[node][0]
            lines.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=4 "
                         f"RealMemory=1000 Gres={','.join(f'gpu:{t}:1' for t in types)}")
            for kind in types:
                gres.append(f"NodeName={node} Name=gpu Type={kind} File={self.make_gpu(number)}")
                number += 1
        lines.append(f"PartitionName=gpu Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP")
        self.write("etc/slurm.conf", lines)
        self.write("etc/gres.conf", gres)
        if self.constrain:
            self.write("etc/cgroup.conf", ["CgroupPlugin=cgroup/v1", "CgroupMountpoint=/sys/fs/cgroup",
                                           "ConstrainDevices=yes"])

    def make_gpu(self, number):
        path = self.path(f"gpus/nvidia{number}")
        if self.is_root:
            os.mknod(path, 0o20666, os.makedev(NVIDIA, number))
            os.chmod(path, 0o666)
        else:
            os.symlink("/dev/" + ["null", "zero", "full", "random", "urandom"][number], path)
        return path

    def write(self, name, lines):
        with open(self.path(name), "w") as file:
            file.write("\n".join(lines) + "\n")

    def spawn(self, name, *arguments):
        with open(self.path(f"log/{name}.out"), "w") as log:
            self.processes.append(subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env=self.environment, preexec_fn=end_with_parent))

    def start(self):
        if self.is_root:
            with open(self.path("etc/munge.key"), "wb", opener=lambda p, f: os.open(p, f, 0o600)) as key:
                key.write(os.urandom(128))
            run = self.path("run")
            self.spawn("munged", "munged", "--force", "-F", f"--socket={run}/munge.socket", f"--pid-file={run}/munged.pid",
                       f"--key-file={self.path('etc')}/munge.key", f"--seed-file={run}/munge.seed",
                       f"--log-file={self.path('log')}/munged.log", "--num-threads=1")
            self.wait(lambda: os.path.exists(f"{run}/munge.socket"), "munged")
        self.spawn("slurmctld", "slurmctld", "-D")
        for node in self.nodes:
            os.makedirs(self.path(f"spool/{node}"))
            self.spawn(f"slurmd.{node}", "slurmd", "-D", "-N", node)
        self.wait(lambda: self.states() == ["idle"] * len(self.nodes), "the nodes")

    def wait(self, is_so, what, seconds=START_SECONDS):
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise RuntimeError(f"{what}: not ready after {seconds} s\n{self.logs()}")
            time.sleep(0.05)

    def states(self):
        return self.run("sinfo", "-h", "-N", "-o", "%T").stdout.split()

    def run(self, *arguments, timeout=90, **variables):
        """A command of Slurm's; variables of None are taken away."""
        environment = {k: v for k, v in dict(self.environment, **variables).items() if v is not None}
        return subprocess.run(arguments, env=environment, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, cwd="/")

    def logs(self):
        text = ""
        for path in sorted(glob.glob(self.path("log/*"))):
            with open(path, errors="replace") as file:
                text += "".join(f"{os.path.basename(path)}: {line}" for line in file.readlines()[-6:])
        return text

    def stop(self):
        try:
            self.run("scancel", "-p", "gpu", timeout=10)
            self.wait(lambda: not self.run("squeue", "-h").stdout.strip(), "the end of jobs", 10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            pass
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
        for node in self.nodes if self.constrain else ():
            for top in glob.glob(f"/sys/fs/cgroup/*/slurm_{node}"):
                for path, _, _ in os.walk(top, topdown=False):
                    try:
                        os.rmdir(path)
                    except OSError:
                        pass
