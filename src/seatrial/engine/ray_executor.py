"""The executor `ray`: workers are actors of a Ray cluster, one for each processor.

Without an address, a Ray of its own is started on this machine for as long as the experiment lasts: it listens on the
loopback interface only, has a key that nobody else knows, no dashboard, and reports nothing to anyone.
"""

from __future__ import annotations

import asyncio
import fcntl
import io
import logging
import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, ClassVar

from seatrial._support.environment import STORE_VARIABLE
from seatrial._support.threads import Threads
from seatrial.engine.executor import Assignment, Executor, Workers
from seatrial.engine.host import WorkerHost
from seatrial.engine.remote import WorkerLink, WorkerLostError, job_of, remote_workers
from seatrial.errors import SeatrialError
from seatrial.suites import Secrets

LOOPBACK = "127.0.0.1"
FOLDER = "seatrial-ray-"
"""What the names of the folders begin with that have the files of a Ray of our own."""
MAX_WORKERS = 256
"""Workers on a cluster, where nobody says how many."""
OBJECT_STORE_BYTES = 100_000_000
"""What passes through it is small, and gone at once; Ray's own choice is a third of the memory."""
MAX_LINE = 65_536
"""Of what agents print: a longer line is left out."""


class RayExecutor(Executor):
    """Runs trials on a Ray cluster."""

    needs_shared_store: ClassVar[bool] = True

    address: str | None = None
    """Of a cluster that is there: `host:port`, or `auto`. Without one, a Ray is started on this machine."""

    @asynccontextmanager
    async def open(self, work: Assignment) -> AsyncIterator[Workers]:
        job_of(work)  # whether it can be at all, before anything is started
        async with AsyncExitStack() as stack:
            threads = Threads()
            stack.callback(threads.close)
            most = sum(work.suite.agents[name].concurrency or work.suite.concurrency for name in work.agents)
            if self.address is None:
                count = min(self.workers or _processors(), most)
                cluster: _Cluster = _OwnCluster(count, work.store.address(with_password=True))
            else:
                cluster = _Cluster(self.address)
            # Ray blocks while it starts, and takes signals for itself where it is started in the main thread.
            starting = asyncio.ensure_future(threads.call(cluster.start))
            stack.push_async_callback(threads.call, cluster.stop)
            try:
                ray = await asyncio.shield(starting)
            except asyncio.CancelledError:
                await asyncio.wait({starting})  # what is half started cannot be stopped
                raise
            _take_back_signals()
            if self.address is not None:
                cpus = int(ray.cluster_resources().get("CPU", 1))
                count = min(self.workers or min(max(cpus, 1), MAX_WORKERS), most)
            yield await stack.enter_async_context(remote_workers(work, _RayPool(ray), count))


class _Cluster:
    """A cluster that is there already."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._ray: Any = None

    def start(self) -> Any:
        """Connect, and give the module. Raises `SeatrialError`."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_DISABLE_FAILURE_SIGNAL_HANDLER", "1")
        ray = _imported()
        logging.getLogger("ray").setLevel(logging.ERROR)
        # It prints what happens to its processes, and has no setting for that. A lost worker is said by us.
        ray._private.worker.print_to_stdstream = lambda *_, **__: None
        if ray.is_initialized():
            raise SeatrialError(
                "executor_failed", "this process uses Ray already", hint="run the experiment in another"
            )
        try:
            ray.init(address=self._address, log_to_driver=False, configure_logging=False, **self._options())
        except Exception as error:
            where = "be started" if self._address == _HERE else f"be reached at {self._address!r}"
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise SeatrialError("executor_failed", f"Ray could not {where}: {lines[0][:300]}") from error
        self._ray = ray
        return ray

    def stop(self) -> None:
        """Disconnect, if it was connected."""
        if self._ray is not None:
            self._ray.shutdown()

    def _options(self) -> dict[str, Any]:
        return {}


_HERE = "local"
"""Ray's word for a cluster that it is to start; without it, it would take one that an environment variable names."""


class _OwnCluster(_Cluster):
    """A Ray of our own on this machine, with its files in a directory that nobody else may read."""

    def __init__(self, cpus: int, store: str | None) -> None:
        super().__init__(_HERE)
        self._cpus = cpus
        self._store = store
        self._folder: Path | None = None
        self._lock: IO[bytes] | None = None
        """Held for as long as the folder is used."""
        self._before: dict[str, str | None] = {}

    def start(self) -> Any:
        if "ray" in sys.modules:
            # What it is told now, it would not hear: where to listen, and whom to answer.
            message = "Ray was imported before the experiment began, and can be started only with other settings"
            raise SeatrialError("executor_failed", message, hint="run the experiment in a process of its own")
        _remove_leftovers()
        self._folder = Path(tempfile.mkdtemp(prefix=FOLDER))
        self._lock = _locked(self._folder)
        token = self._folder / "token"
        token.touch(mode=0o600)
        token.write_text(token_hex(32))
        self._set(
            RAY_USAGE_STATS_ENABLED="0",
            # Ray's switch for machines whose firewall asks about every program that listens: it makes the address of
            # this machine 127.0.0.1, and nothing listens elsewhere.
            RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
            RAY_AUTH_MODE="token",
            RAY_AUTH_TOKEN=None,
            RAY_AUTH_TOKEN_PATH=str(token),
        )
        store_before = os.environ.get(STORE_VARIABLE)
        if self._store is not None:
            os.environ[STORE_VARIABLE] = self._store  # workers inherit it, and no message has to have the password
        try:
            ray = super().start()
        finally:
            os.environ.pop(STORE_VARIABLE, None)
            if store_before is not None:
                os.environ[STORE_VARIABLE] = store_before
        address = ray.util.get_node_ip_address()
        if address != LOOPBACK:
            raise SeatrialError("executor_failed", f"Ray listens on {address}, not only on this machine")
        return ray

    def stop(self) -> None:
        super().stop()
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()

    def _set(self, **variables: str | None) -> None:
        for name, value in variables.items():
            self._before[name] = os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    def _options(self) -> dict[str, Any]:
        return {
            "num_cpus": self._cpus,
            "num_gpus": 0,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            # Ray lets everybody write to it; nobody else gets into the folder that it is in.
            "_temp_dir": f"{self._folder}/r",
        }


def _locked(folder: Path) -> IO[bytes]:
    """Mark a folder as used by this process, however it ends: the lock ends with it."""
    lock = (folder / "new").open("wb")  # the programs that are started do not inherit it
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(folder / "new", folder / "lock")  # there is no moment with a lock that is free
    return lock


def _remove_leftovers() -> None:
    """Remove what commands left behind that were killed: folders of ours, made by this user, whose process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with suppress(OSError):  # in use, or not ours to remove
            about = folder.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
                with (folder / "lock").open("r+b") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)


def _take_back_signals() -> None:
    """Have SIGTERM handled as before: Ray takes it for a crash of the process, and ends it three seconds later."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


def check_installed() -> None:
    """Raise `SeatrialError` when there is no Ray. It is not imported: it reads its settings when it is."""
    if find_spec("ray") is None:
        raise SeatrialError("usage", "the executor `ray` needs Ray, which is not installed", hint=_INSTALL)


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise SeatrialError("usage", f"Ray cannot be imported: {error}", hint=_INSTALL) from None
    return ray


_INSTALL = "in the folder of Seatrial: pip install '.[ray]'"


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _RayPool:
    """Starts workers as actors."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        # An actor is never started again by Ray: another worker takes over what it had.
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        self._actors = ray.remote(RayWorker).options(**options)

    async def start(self, job: bytes) -> WorkerLink:
        return _RayLink(self._ray, self._actors.remote(job))


class _RayLink:
    """The way to an actor."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor

    async def send(self, orders: bytes) -> None:
        await self._asked(self._actor.obey, orders)

    async def receive(self) -> bytes:
        reports: bytes = await self._asked(self._actor.reports)
        return reports

    async def end(self) -> None:
        try:
            self._ray.kill(self._actor)
        except Exception as error:  # whatever it is: it is not there any more
            raise WorkerLostError(type(error).__name__) from error

    async def _asked(self, method: Any, *arguments: bytes) -> Any:
        try:
            return await method.remote(*arguments)
        except self._ray.exceptions.RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise WorkerLostError(f"{type(error).__name__}: {(lines or [''])[0][:300]}") from None


class RayWorker:
    """The actor: passes orders in and reports out."""

    def __init__(self, job: bytes) -> None:
        self._job = job
        self._host: WorkerHost | None = None

    async def obey(self, orders: bytes) -> None:
        """Take orders."""
        self._opened().obey(orders)

    async def reports(self) -> bytes:
        """Wait for reports."""
        return await self._opened().reports()

    def _opened(self) -> WorkerHost:
        # Here, because an actor is made before its event loop runs.
        if self._host is None:
            self._host = WorkerHost(self._job, redacted=_redact_output)
        return self._host


def _redact_output(secrets: Secrets) -> None:
    """Keep secrets out of what this process prints, which Ray writes to its logs.

    What is written to the descriptors themselves, by programs that agents start or by code in C, is lost.
    """
    with open(os.devnull, "wb") as nowhere:
        for number, name in ((1, "stdout"), (2, "stderr")):
            log = os.fdopen(os.dup(number), "w", buffering=1, encoding="utf-8", errors="backslashreplace")
            os.dup2(nowhere.fileno(), number)
            setattr(sys, name, _RedactedOutput(log, secrets))


class _RedactedOutput(io.TextIOBase):
    """Passes whole lines on, without secrets."""

    def __init__(self, to: Any, secrets: Secrets) -> None:
        self._to = to
        self._secrets = secrets
        self._line = ""
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            lines, newline, self._line = (self._line + text).rpartition("\n")
            if len(self._line) > MAX_LINE:
                self._line = f"(a line of more than {MAX_LINE:,} characters was left out)"
            if newline:
                self._to.write(self._secrets.redact(lines) + newline)
        return len(text)

    def flush(self) -> None:
        self._to.flush()
