"""An experiment on a Ray cluster whose nodes are killed again and again."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from strategies.databases import database
from strategies.harbour import Harbour, a_cluster, rows_of

from seatrial.store import open_store


def test_nothing_is_lost_and_nothing_is_there_twice(tmp_path: Path, postgres_server: str, soaking: bool) -> None:
    kills, quick = (8, 4000) if soaking else (1, 60)
    chance = random.Random(7)
    with database(postgres_server) as url:
        harbour = Harbour(tmp_path, url)
        harbour.environment["PAUSE_S"] = "0.1" if soaking else "0"
        # Those that are slow are under way at the first kill, and end after it.
        harbour.suite(*(f"slow-{n}" for n in range(6)), *(f"c-{n}" for n in range(quick)), concurrency=8)
        with a_cluster(harbour) as cluster:
            process = harbour.start("--executor", "ray", "--ray-address", cluster.address)
            harbour.wait_begun(6, process)
            for number in range(kills):
                assert process.poll() is None, "it was over before the last kill: the test showed too little"
                # At first all of them: on a busy machine one node may have all that has begun.
                nodes = 2 if number == 0 else 1
                for _ in range(nodes):
                    cluster.kill()
                if number == 0:
                    harbour.wait_dead()
                harbour.go()
                for _ in range(nodes):
                    cluster.add()
                time.sleep(chance.uniform(0.1, 2) if soaking else 0)
            _, err = process.communicate(timeout=600)
            assert process.returncode == 0, err
            assert "a worker was lost" in err
        with open_store(url) as store:
            rows = rows_of(store)
            assert len(rows) == len(set(rows)) == quick + 6
            assert {row[3] for row in rows} == {"passed"}
            assert store.resolve_experiment("latest").status == "finished"
        asked = harbour.asked()
        assert len(asked) == quick + 6
        assert sum(asked.values()) > quick + 6, "no run was with a node that was killed: the test showed nothing"
        shutil.rmtree(harbour.environment["TMPDIR"])
