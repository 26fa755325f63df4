"""A program in a container of Docker or Podman: it sees an image, and of this machine only its own workspace."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.agents.cli.sandbox import SandboxedCommand, readable_files, real_paths
from seatrial.errors import SeatrialError

PROGRAMS = ("podman", "docker")
"""The first that is there is used: Podman needs no service that may not be running."""
IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*")
_OF_THE_MACHINE = ("PATH", "USER", "LOGNAME", "SHELL")
"""Variables that mean nothing in an image, unless the suite sets them."""
_OF_THE_CLIENT = re.compile(r"PATH|HOME|TMPDIR|XDG_\w+|DOCKER_\w+|CONTAINERS?_\w+")
"""Variables by which the client finds its service and its images: it keeps ours."""
_NOT_MADE = 125
"""The client's own exit code: the container could not be made."""
_NOT_STARTED = (126, 127)
"""The container was made, and the command in it could not be started, unless the command itself ended so."""
_SAYS = re.compile(r"^(docker: |Error: )", re.MULTILINE)
# Ends with 0 only if the service says that there is no such container any more.
_REMOVE = '"$0" rm --force "$1" >/dev/null 2>&1; left=$("$0" ps --all --quiet --filter "name=$1") && test -z "$left"'


class ContainerSandbox:
    """Containers of an image. The network is that of the machine: agents ask their models over it."""

    has_programs = True

    def __init__(self, image: str, directory: Path, readable: Iterable[str] = ()) -> None:
        """`directory` is the suite's; `readable` is what can be read besides the image."""
        if not IMAGE.fullmatch(image):
            raise SeatrialError("invalid_config", f"{image!r} cannot be the name of an image")
        self._image = image
        self._program = container_program() or PROGRAMS[0]
        self._directory = os.path.realpath(directory)
        self._readable = real_paths(directory, readable)

    def wrap(
        self, argv: list[str], folder: str, writable: Iterable[str], environment: Mapping[str, str]
    ) -> SandboxedCommand:
        name = f"seatrial-{os.urandom(16).hex()}"
        # An image is never downloaded in passing: which one runs, and when it is fetched, is the user's choice.
        options = ["--rm", "--interactive", "--pull=never", f"--name={name}", f"--workdir={folder}", "--network=host"]
        # Without SELinux's labels: what it can see is what is mounted.
        options += ["--cap-drop=ALL", "--security-opt=no-new-privileges", "--security-opt=label=disable"]
        options += [f"--user={os.getuid()}:{os.getgid()}", "--entrypoint="]
        if os.path.basename(self._program) == "podman" and os.getuid() != 0:
            options.append("--userns=keep-id")
        options += [_mount(path, ",readonly") for path in readable_files(self._readable, self._directory, argv)]
        options += [_mount(path) for path in (folder, *writable)]
        client = dict(os.environ)
        for variable, value in environment.items():
            if variable in _OF_THE_MACHINE and value == os.environ.get(variable):
                continue
            if _OF_THE_CLIENT.fullmatch(variable):
                options.append(f"--env={variable}={value}")
            else:
                # Its value is taken from the client's environment: others can see command lines.
                options.append(f"--env={variable}")
                client[variable] = value
        run = [self._program, "run", *options, self._image, *argv]
        return SandboxedCommand(run, client, ["/bin/sh", "-c", _REMOVE, self._program, name])

    def failed(self, code: int, log: str) -> bool:
        return code in (_NOT_MADE, *_NOT_STARTED) and _SAYS.search(log) is not None


def container_program() -> str | None:
    """The path of what makes containers on this machine."""
    return next((path for name in PROGRAMS if (path := shutil.which(name)) is not None), None)


def _mount(path: str, more: str = "") -> str:
    """Unlike with `--volume`, a path that is not there is an error, and not an empty directory."""
    fields = [f"source={path}", f"target={path}"]
    if "," in path or '"' in path:  # the option is a line of CSV
        fields = ['"' + field.replace('"', '""') + '"' for field in fields]
    return f"--mount=type=bind,{','.join(fields)}{more}"
