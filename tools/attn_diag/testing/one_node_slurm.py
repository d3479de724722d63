"""A Slurm cluster of this machine alone, with its state in a folder: for tests, as root."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

SBIN = os.pathsep.join(("/usr/sbin", "/usr/local/sbin"))


def find(name):
    return shutil.which(name) or shutil.which(name, path=SBIN)


def available():
    return all(find(name) for name in ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


CONFIG = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={control}
SlurmdPort={daemon}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class OneNode:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.processes = []

    def __enter__(self):
        self.folder.mkdir(mode=0o755, parents=True)
        (self.folder / "state").mkdir()
        (self.folder / "spool").mkdir()
        key = self.folder / "munge.key"
        subprocess.run([find("mungekey"), "-c", "-k", key], check=True)
        config = self.folder / "slurm.conf"
        config.write_text(CONFIG.format(host=socket.gethostname().split(".")[0], folder=self.folder,
                                        control=free_port(), daemon=free_port(), cpus=os.cpu_count()))
        self.environment = {**os.environ, "SLURM_CONF": str(config)}
        try:
            self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                       f"--pid-file={self.folder}/munge.pid", f"--seed-file={self.folder}/munge.seed",
                       f"--log-file={self.folder}/munge.log")
            self.wait_until(lambda: (self.folder / "munge.socket").exists(), "munged")
            self.start("slurmctld", "-D")
            self.start("slurmd", "-D")
            self.wait_until(lambda: "idle" in self.call("sinfo", "-h", "-o", "%T").stdout, "slurmd")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name, *args):
        with open(self.folder / f"{name}.out", "wb") as log:
            self.processes.append(subprocess.Popen([find(name), *map(str, args)], env=self.environment, stdout=log,
                                                   stderr=subprocess.STDOUT))

    def call(self, name, *args, cwd=None):
        return subprocess.run([find(name), *map(str, args)], env=self.environment, cwd=cwd, capture_output=True,
                              text=True, timeout=60)

    def wait_until(self, done, what, seconds=60):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                logs = "".join(f"--- {p.name}\n{p.read_text(errors='replace')[-2000:]}" for p in
                               sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log")))
                raise RuntimeError(f"{what} did not come up within {seconds} s\n{logs}")
            time.sleep(0.1)

    def run_job(self, file, cwd, seconds=120, *args):
        """Submits a job and waits until it is gone from the queue; what sbatch said."""
        submitted = self.call("sbatch", "--parsable", *args, file, cwd=cwd)
        if submitted.returncode != 0:
            raise RuntimeError(submitted.stderr)
        job = submitted.stdout.strip().split(";")[0]
        self.wait_until(lambda: self.call("squeue", "-h", "-j", job).stdout.strip() == "", f"job {job}", seconds)
        return job
