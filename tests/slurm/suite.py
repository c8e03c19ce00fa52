"""env, the store and the hooks under a real Slurm, with GPUs that are not there. Speaks TAP.

    suite.py --plimsoll PROGRAM --keep-answer PROGRAM --trainer PROGRAM --doubles FOLDER [--only WORD]
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster as slurm  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOOKS = os.path.join(ROOT, "scripts", "slurm")
MICRO_BATCHES = {"H100-SXM5-80GB": 16, "A100-SXM4-80GB": 8, "T4": 2}  # kept as if they had been measured
ASK = ["gpt2-124m", "--effective-batch", "64"]
TASKS = 64
MIB = 1 << 20


class Skipped(Exception):
    pass


def write(path, text, mode=0o644):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


class World:
    """The folder with everything that jobs see; every user may read it."""

    def __init__(self, asked, folder):
        self.asked, self.folder = asked, folder
        self.is_root = os.geteuid() == 0
        os.chmod(folder, 0o755)
        self.store = self.make("store")
        self.runtime = self.make("runtime", 0o700)
        self.handover = self.path("handover")
        self.libraries = self.make("libraries")
        for name in ("libcublasLt.so.13", "libcudnn.so.9"):
            write(os.path.join(self.libraries, name), "")
        self.plimsoll = self.make_plimsoll()
        self.site = self.make_hooks("site", PLIMSOLL=self.plimsoll)
        write(self.path("hook.args"), "\n".join(ASK) + "\n")
        self.keep_answers()

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, mode=0o755):
        os.mkdir(self.path(name))
        os.chmod(self.path(name), mode)
        return self.path(name)

    def environment(self, gpus):
        return (f"export LD_LIBRARY_PATH='{self.asked.doubles}' PLIMSOLL_CUDA_PATH='{self.libraries}'\n"
                f"export PLIM_DOUBLE_GPU={gpus}\n")

    def make_plimsoll(self):
        """The program, on the GPUs of its node; where devices are constrained, on those that may be opened."""
        environment = self.environment('"$(IFS=,; echo "${allowed[*]}")"')
        text = "#!/bin/bash\ncase ${SLURMD_NODENAME:-} in\n"
        for node, (_, gpus) in slurm.NODES.items():
            text += f"{node}) gpus=({' '.join(gpus)}) ;;\n"
        text += f"""*) gpus=() ;;
esac
allowed=()
number=0
for gpu in "${{gpus[@]}}"; do
    device={self.path('constrained')}/gpus/nvidia$number
    number=$((number + 1))
    [ -e "$device" ] && [[ $(cat "$device" 2>&1 >/dev/null) == *'not permitted'* ]] && continue
    allowed+=("$gpu")
done
{environment}
[ ${{#allowed[@]}} -gt 0 ] || export PLIM_DOUBLE_NVML=no-gpus
exec '{self.asked.plimsoll}' "$@"
"""
        return write(self.path("plimsoll"), text, 0o755)

    def make_hooks(self, name, **settings):
        """A copy of the hooks, with settings of their own."""
        folder = self.make(name)
        for file in os.listdir(HOOKS):
            shutil.copy(os.path.join(HOOKS, file), folder)
        settings = {"ARGUMENTS": self.path("hook.args"), "STORE": self.store, "HANDOVER": self.handover,
                    "SECONDS_AT_MOST": 40, **settings}  # a second is for machines that do nothing else
        write(os.path.join(folder, "hooks.conf"), "".join(f"{k}={v}\n" for k, v in settings.items()))
        return folder

    def keep_answers(self):
        version = subprocess.check_output([self.asked.plimsoll, "--version"], text=True).split("\n")[0].split(" ")[1]
        for gpu, batch in MICRO_BATCHES.items():
            subprocess.run(["bash", "-c", self.environment(gpu) + '"$@"', "keep", self.asked.keep_answer, version,
                            ASK[0], ASK[2], str(batch)], check=True, env={**os.environ, "PLIMSOLL_STORE": self.store})

    def variables(self, **more):
        return {"PLIMSOLL_STORE": self.store, "PLIMSOLL": self.plimsoll, "XDG_RUNTIME_DIR": self.runtime,
                "LD_LIBRARY_PATH": None, **more}


def values(text):
    """NAME -> value of the lines PLIMSOLL_...=value."""
    return dict(line.split("=", 1) for line in text.splitlines() if line.startswith("PLIMSOLL_") and "=" in line)


def expect(is_so, *told):
    if not is_so:
        raise AssertionError(" ".join(str(t) for t in told))


def expect_task(w, c, wanted, arguments, **variables):
    """One task: its value of PLIMSOLL_MICRO_BATCH, None for none."""
    done = c.run("srun", "-Q", *arguments, "/usr/bin/env", **w.variables(**variables))
    expect(done.returncode == 0, done.returncode, done.stderr)
    batch = values(done.stdout).get("PLIMSOLL_MICRO_BATCH")
    expect(batch == (str(wanted) if wanted else None), batch, done.stdout, done.stderr)
    return done.stdout


def batch_job(w, c, name, body, *options):
    """A batch script to its end: what it printed."""
    script, out = w.path(name + ".sh"), w.path(name + ".out")
    write(script, "#!/bin/bash\nset -euo pipefail\n" + body, 0o755)
    done = c.run("sbatch", "-Q", "--wait", "-o", out, *options, script, **w.variables())
    with open(out) as file:
        text = file.read()
    expect(done.returncode == 0, done.returncode, done.stderr, text)
    return text


# --- the prelude ---------------------------------------------------------------------------------------------------


def values_reach_a_job_that_trains_with_them(w, c):
    text = batch_job(w, c, "trains", f""". '{w.site}/prelude.sh'
plimsoll_env {' '.join(ASK)}
env
'{w.asked.plimsoll}' exec --observe --no-store --quiet --json --device sim:T4 -- \\
    '{w.asked.trainer}' "$PLIMSOLL_MICRO_BATCH" steps="$PLIMSOLL_ACCUMULATION" > '{w.path("trained.json")}'
""", "-w", "c0", "--gres=gpu:t4:1")
    told = values(text)
    expect(told["PLIMSOLL_MICRO_BATCH"] == "2" and told["PLIMSOLL_ACCUMULATION"] == "32", text)
    expect(told["PLIMSOLL_SOURCE"] == "measured" and told["PLIMSOLL_STALE"] == "0", text)
    with open(w.path("trained.json")) as file:
        peak = json.load(file)["choice"]["peak"]["reserved_bytes"]
    expect(peak == (64 + 2 * 32) * MIB, peak)  # trainer.c: 64 MiB once, 32 a sample


def nodes_that_differ_get_the_smallest_batch(w, c):
    text = batch_job(w, c, "differ", f". '{w.site}/prelude.sh'\nplimsoll_env {' '.join(ASK)}\nenv\n",
                     "-N", "2", "-w", "a0,b0", "--gres=gpu:1")
    expect(values(text).get("PLIMSOLL_MICRO_BATCH") == "8", text)
    expect(values(text).get("PLIMSOLL_ACCUMULATION") == "8", text)


def a_prelude_without_a_program_fails_open(w, c):
    text = batch_job(w, c, "none", f". '{w.site}/prelude.sh'\nPLIMSOLL=/nowhere/plimsoll\nplimsoll_env {' '.join(ASK)}\n"
                     "echo went on\nenv\n", "-w", "c0", "--gres=gpu:t4:1")
    expect("went on" in text and "there is no /nowhere/plimsoll" in text, text)
    expect("PLIMSOLL_MICRO_BATCH" not in values(text), text)


# --- TaskProlog ----------------------------------------------------------------------------------------------------


def a_task_prolog_gives_every_task_the_answer(w, c):
    for gres, node, batch in (("h100", "a0", 16), ("t4", "a0", 2), ("a100", "b0", 8)):
        expect_task(w, c, batch, ["-w", node, f"--gres=gpu:{gres}:1", "--task-prolog", w.site + "/task-prolog"],
                    PLIMSOLL_TASK=" ".join(ASK))


def without_environment_and_home_the_sites_question_is_asked(w, c):
    expect_task(w, c, 2, ["-w", "c0", "--gres=gpu:t4:1", "--export=NONE", "--task-prolog", w.site + "/task-prolog"])


def a_store_that_is_not_there_and_a_home_that_is_read_only(w, c):
    out = expect_task(w, c, 16, ["-w", "a0", "--gres=gpu:h100:1", "--task-prolog", w.site + "/task-prolog"],
                      PLIMSOLL_TASK=" ".join(ASK), PLIMSOLL_STORE="/nowhere/store", HOME="/proc")
    expect("SOURCE=measured" in out, out)  # the site's
    empty = w.make_hooks("no_store", PLIMSOLL=w.plimsoll, STORE="/nowhere/store")
    out = expect_task(w, c, 16, ["-w", "a0", "--gres=gpu:h100:1", "--task-prolog", empty + "/task-prolog"],
                      PLIMSOLL_TASK="gpt2-124m --effective-batch 16", PLIMSOLL_STORE=None, HOME="/proc")
    expect("SOURCE=simulated" in out, out)


def a_program_that_is_not_there_or_hangs_costs_no_task(w, c):
    gone = w.make_hooks("gone", PLIMSOLL="/nowhere/plimsoll")
    out = expect_task(w, c, None, ["-w", "c0", "--task-prolog", gone + "/task-prolog"], PLIMSOLL_TASK=" ".join(ASK))
    expect("plimsoll: nothing is set: there is no /nowhere/plimsoll" in out, out)
    hangs = w.make_hooks("hangs", SECONDS_AT_MOST=1, PLIMSOLL=write(w.path("sleeps"), "#!/bin/bash\nsleep 1000\n", 0o755))
    out = expect_task(w, c, None, ["-w", "c0", "--task-prolog", hangs + "/task-prolog"], PLIMSOLL_TASK=" ".join(ASK))
    expect("no answer within 1 s" in out, out)


def a_task_prolog_that_is_not_there_is_slurms_failure(w, c):
    done = c.run("srun", "-Q", "-w", "c0", "--task-prolog=/nowhere/task-prolog", "true", **w.variables())
    expect(done.returncode == 1, done.returncode, done.stderr)
    expect_task(w, c, None, ["-w", "c0"])


# --- many tasks ----------------------------------------------------------------------------------------------------


def lock_holder(folder):
    """The process that holds a lock in this folder, or None."""
    inodes = {str(entry.stat().st_ino) for entry in os.scandir(folder)} if os.path.isdir(folder) else set()
    with open("/proc/locks") as file:
        for line in file:
            words = line.split()
            if words[1] == "FLOCK" and words[5].split(":")[-1] in inodes:
                return int(words[4])
    return None


def kill_holder(w, trials, killed):
    """Once its first trial runs."""
    end = time.monotonic() + 60
    while time.monotonic() < end and not killed:
        pid = lock_holder(os.path.join(w.runtime, "plimsoll")) if os.path.exists(trials) else None
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
                killed.append(pid)
        time.sleep(0.005)


def of_many_tasks_one_measures_and_a_killed_one_is_replaced(w, c):
    trials, killed = w.path("trials"), []
    trial = write(w.path("trial"), f"#!/bin/bash\necho $1 >> '{trials}'\nexec '{w.asked.trainer}' \"$1\" sleep=40\n", 0o755)
    task = (f"--device sim:T4,memory=2GiB --margin 0 --overhead 0 --batch 1:64 --on-miss tune -- {trial} {{batch}}")
    killer = threading.Thread(target=kill_holder, args=(w, trials, killed))
    killer.start()
    done = c.run("srun", "-Q", "-w", "c0", f"-n{TASKS}", "--overcommit", "--task-prolog", w.site + "/task-prolog",
                 "bash", "-c", "echo batch=$PLIMSOLL_MICRO_BATCH", **w.variables(PLIMSOLL_TASK=task, PLIMSOLL_TASK_SECONDS="80"))
    killer.join()
    expect(done.returncode == 0 and killed, done.returncode, killed, done.stderr)
    lines = [line for line in done.stdout.splitlines() if line.startswith("batch=")]
    expect(sorted(lines) == ["batch="] + ["batch=62"] * (TASKS - 1), sorted(lines), done.stdout[:2000])
    with open(trials) as file:
        tried = file.read().split()
    expect(tried.count("62") == 1 and len(tried) <= 2 * len(set(tried)), tried)


# --- the node's hooks ----------------------------------------------------------------------------------------------


def prolog_hands_over_and_epilog_removes(w, c):
    if not w.is_root:
        raise Skipped("Prolog runs as root")
    hook = ["--task-prolog", w.site + "/task-prolog"]
    show = ["srun", "-Q", "-w", "b0", "--gres=gpu:a100:1", *hook, "bash", "-c",
            f"env; stat -c 'owner=%U mode=%a' {w.handover}/job-$SLURM_JOB_ID"]
    done = c.run(*show, **w.variables(PLIMSOLL_STORE="/nowhere"))
    told = values(done.stdout)
    expect(told.get("PLIMSOLL_MICRO_BATCH") == "8", done.stdout, done.stderr)
    expect("owner=root mode=644" in done.stdout, done.stdout)
    c.wait(lambda: not os.listdir(w.handover), "Epilog", 20)
    # Nothing is taken from where others may write, and the job runs.
    os.chmod(w.store, 0o777)
    try:
        done = c.run("srun", "-Q", "-w", "b0", "--gres=gpu:a100:1", "ls", w.handover, **w.variables())
        expect(done.returncode == 0 and not done.stdout.strip(), done.stdout, done.stderr)
    finally:
        os.chmod(w.store, 0o755)
    expect(all(s in ("idle", "completing") for s in c.states()), c.states())


def constrained_devices_are_counted_anew(w, _):
    if not w.is_root or not os.path.isdir("/sys/fs/cgroup/devices") or not os.access("/sys/fs/cgroup/devices", os.W_OK):
        raise Skipped("no devices controller of cgroup v1 that may be written")
    if os.stat("/sys/fs/cgroup/devices").st_dev == os.stat("/sys/fs/cgroup").st_dev:
        raise Skipped("the devices controller of cgroup v1 is not mounted")
    os.mkdir(w.path("constrained"))
    c = slurm.Cluster(w.path("constrained"), nodes=("a0",), constrain=True)
    try:
        try:
            c.start()
        except RuntimeError as e:
            raise Skipped("slurmd does not start with cgroups here: " + str(e).splitlines()[0])
        out = expect_task(w, c, 2, ["--gres=gpu:t4:1", "--task-prolog", w.site + "/task-prolog"],
                          PLIMSOLL_TASK=" ".join(ASK))
        expect("\nCUDA_VISIBLE_DEVICES=0\n" in out and "\nSLURM_STEP_GPUS=1\n" in out, out)
    finally:
        c.stop()
        shutil.rmtree(w.path("constrained"))


# --- types ---------------------------------------------------------------------------------------------------------


def every_type_of_the_cluster_is_tuned_once(w, c):
    folder, names = w.path("types"), write(w.path("names"), "h100 H100-SXM5-80GB\nt4 T4\n")
    done = c.run(w.site + "/tune-each-type", folder, "--", *ASK,
                 **w.variables(PLIMSOLL_PLAN="1", PLIMSOLL_GRES_NAMES=names))
    expect(done.returncode == 0, done.stdout, done.stderr)
    expect([line.split(":")[0] for line in done.stdout.splitlines()] == ["a100", "h100", "t4"], done.stdout)
    c.wait(lambda: not c.run("squeue", "-h").stdout.strip(), "the jobs", 60)
    written = sorted(f for f in os.listdir(folder) if not f.endswith(".log"))
    expect(written == ["h100.env", "h100.yaml", "t4.env", "t4.yaml"], written)
    with open(os.path.join(folder, "t4.env")) as file:
        expect(values(file.read())["PLIMSOLL_GLOBAL_BATCH"] == "64")
    with open(os.path.join(folder, "a100.log")) as file:
        log = file.read()
    expect("a100: nothing is written" in log and "A100-SXM4-40GB" in log, log)


def hosts_by_plain_ssh_get_one_answer(w, _):
    """An ssh that stays here, on the GPUs of the host that it is asked for."""
    os.symlink(w.plimsoll, os.path.join(w.make("bin"), "plimsoll"))
    ssh = write(w.path("ssh"), f"""#!/bin/bash
export SLURMD_NODENAME=$1 PATH='{w.path("bin")}':$PATH PLIMSOLL_STORE='{w.store}'
shift
exec bash -c "$*"
""", 0o755)
    for hosts, batch in (("a0 b0", "2"), ("b0", "8"), ("b0 none", "")):
        done = subprocess.run([os.path.join(ROOT, "scripts/launchers/over-ssh"), hosts, *ASK, "--", "printenv",
                               "PLIMSOLL_MICRO_BATCH"], env={**os.environ, "SSH": ssh}, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        expect(done.stdout.split() == ([batch] * len(hosts.split()) if batch else []), hosts, done.stdout, done.stderr)
        expect(batch or "1 of 2 nodes have an answer" in done.stderr, done.stderr)


CASES = [hosts_by_plain_ssh_get_one_answer, values_reach_a_job_that_trains_with_them,
         nodes_that_differ_get_the_smallest_batch, a_prelude_without_a_program_fails_open,
         a_task_prolog_gives_every_task_the_answer, without_environment_and_home_the_sites_question_is_asked,
         a_store_that_is_not_there_and_a_home_that_is_read_only, a_program_that_is_not_there_or_hangs_costs_no_task,
         a_task_prolog_that_is_not_there_is_slurms_failure, of_many_tasks_one_measures_and_a_killed_one_is_replaced,
         prolog_hands_over_and_epilog_removes, constrained_devices_are_counted_anew,
         every_type_of_the_cluster_is_tuned_once]


def run_cases(w, c, cases):
    failed = 0
    for number, case in enumerate(cases, 1):
        start = time.monotonic()
        try:
            case(w, c)
            print(f"ok {number} - {case.__name__} # {time.monotonic() - start:.1f} s", flush=True)
        except Skipped as reason:
            print(f"ok {number} - {case.__name__} # SKIP {reason}", flush=True)
        except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError, KeyError) as problem:
            failed += 1
            print(f"not ok {number} - {case.__name__}", flush=True)
            print(f"{case.__name__}: {type(problem).__name__}: {problem}", file=sys.stderr)
    if failed:
        print(c.logs(), file=sys.stderr)
    return failed


def main():
    parser = argparse.ArgumentParser()
    for name in ("plimsoll", "keep-answer", "trainer", "doubles"):
        parser.add_argument("--" + name, required=True, type=os.path.abspath)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    cases = [case for case in CASES if asked.only in case.__name__]
    reason = slurm.missing()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return
    for name in [n for n in os.environ if n.startswith(("SLURM", "PLIMSOLL", "PLIM_", "CUDA", "PYTORCH"))] + ["LD_LIBRARY_PATH"]:
        os.environ.pop(name, None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of `finally`
    os.umask(0o022)
    print(f"1..{len(cases)}")
    with tempfile.TemporaryDirectory(prefix="plimsoll-slurm-") as folder:
        w = World(asked, folder)
        os.mkdir(w.path("cluster"))
        hooks = {"prolog": w.site + "/prolog", "epilog": w.site + "/epilog"} if w.is_root else {}
        c = slurm.Cluster(w.path("cluster"), **hooks)
        try:
            c.start()
            failed = run_cases(w, c, cases)
        finally:
            c.stop()
    sys.exit(1 if failed else 0)


main()
