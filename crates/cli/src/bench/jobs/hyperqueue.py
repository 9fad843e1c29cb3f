"""Empty commands through HyperQueue: a server and two workers of this machine, then one job of many tasks.

Arguments: command, tasks, cores of each worker. Prints the seconds for all tasks. Its client looks once a second whether
they are done, so that few tasks seem slower than they are.
"""

import sys
import tempfile
import time

from hyperqueue import Job
from hyperqueue.cluster import LocalCluster, WorkerConfig


def run(client, folder, command, tasks):
    job = Job(default_workdir=folder)
    for _ in range(tasks):
        job.program([command], stdout=None, stderr=None)
    began = time.monotonic()
    client.wait_for_jobs([client.submit(job)])
    return time.monotonic() - began


def main():
    command, tasks, cores = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory() as folder, LocalCluster(folder) as cluster:
        for _ in range(2):
            cluster.start_worker(WorkerConfig(cores=cores))
        client = cluster.client()
        # The first tasks wait for the workers.
        run(client, folder, command, 4 * cores)
        print("seconds", run(client, folder, command, tasks), flush=True)


main()
