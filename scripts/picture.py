"""The picture at the top of the README: `python scripts/picture.py` runs the clerk's suite and photographs its report.

It needs Chromium. What is photographed, and how large, is here alone; the README only names the file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "report.png"
WIDTH, HEIGHT = 1280, 860
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("the picture needs Chromium: apt-get install chromium", file=sys.stderr)
        return 3
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        command = [sys.executable, "-c", "import sys; from seatrial.cli import main; sys.exit(main())"]
        options = ["--trials", "3", "--quiet", "--store", str(Path(folder, "runs.db")), "--html", str(page)]
        ran = subprocess.run(  # noqa: S603 - our own program
            [*command, "run", "examples/clerk.suite.yaml", *options],
            cwd=ROOT,
            env={**os.environ, "CLERK_VERSION": "2.4.0"},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if ran.returncode != 1:
            print(f"the suite was expected to fail with 1, and ended with {ran.returncode}", file=sys.stderr)
            return 3
        shot = [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={PICTURE}"]
        subprocess.run(  # noqa: S603 - found above
            [chromium, *QUIET, *shot, page.as_uri()], check=True, timeout=120, stderr=subprocess.DEVNULL
        )
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
