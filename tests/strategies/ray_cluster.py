"""A real Ray cluster on this machine, in a process of its own.

`python ray_cluster.py NODES` takes a line on its standard input for each node that is to be killed (`kill`) or added
(`add`), and ends with its standard input.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

AUTHENTICATION = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


class RayCluster:
    """Nodes at 127.0.0.2 and the next: the head has no processors, so that runs are on the others."""

    def __init__(self, nodes: int = 2, environment: dict[str, str] | None = None) -> None:
        self._nodes = nodes
        self._environment = {**os.environ, **AUTHENTICATION, **(environment or {})}
        self.address = ""
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # the names of Ray's sockets must be short
        self._environment["RAY_TMPDIR"] = str(self.folder)

    def __enter__(self) -> RayCluster:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._nodes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment,
        )
        self.address = self._answer().removeprefix("ready ")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()  # which ends its standard input
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill a node and all its processes."""
        self._ask("kill")

    def add(self) -> None:
        """Add a node."""
        self._ask("add")

    def _ask(self, order: str) -> None:
        assert self._process.stdin is not None
        print(order, file=self._process.stdin, flush=True)
        assert self._answer() == "done"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(("ready ", "done")):
                return line.strip()
        raise RuntimeError("the Ray cluster ended")


def main(nodes: int) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    # Ray takes 127.0.0.1 for the name of every address of this machine, and others as they are.
    hosts = iter(f"127.0.0.{number}" for number in range(2, 200))
    common: dict[str, Any] = {"include_dashboard": False, "object_store_memory": 80_000_000}
    cluster.add_node(num_cpus=0, node_ip_address=next(hosts), **common)
    workers = [cluster.add_node(num_cpus=1, node_ip_address=next(hosts), **common) for _ in range(nodes)]
    print("ready", cluster.address, flush=True)
    for order in sys.stdin:
        if order.strip() == "kill":
            cluster.remove_node(workers.pop(0), allow_graceful=False)
        else:
            workers.append(cluster.add_node(num_cpus=1, node_ip_address=next(hosts), **common))
        print("done", flush=True)
    cluster.shutdown()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # modules here are called like others
    main(int(sys.argv[1]))
