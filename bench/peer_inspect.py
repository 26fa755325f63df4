"""inspect_ai as a program: `python -m bench.peer_inspect CASES`. A mock model answers, `includes` scores.

It counts tokens with a vocabulary that tiktoken would download. A local one stands in for it: every byte a token.
"""

from __future__ import annotations

import sys
import tempfile
from functools import cache
from typing import Any

import tiktoken
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes

from bench.trial_agents import ANSWER
from bench.trial_suites import prompt


@cache
def local_encoding(name: str) -> Any:
    ranks = {bytes([byte]): byte for byte in range(256)}
    return tiktoken.Encoding(name, pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={})


def main(count: int) -> None:
    tiktoken.get_encoding = local_encoding
    samples = [Sample(id=number + 1, input=prompt(number), target=ANSWER) for number in range(count)]
    model = get_model("mockllm/model", custom_outputs=(ModelOutput.from_content("mockllm", ANSWER) for _ in samples))
    with tempfile.TemporaryDirectory() as folder:
        log = eval(Task(dataset=samples, scorer=includes()), model=model, display="none", log_dir=folder)[0]
    if log.status != "success" or log.results is None or log.results.completed_samples != count:
        sys.exit(f"the evaluation ended as {log.status}: {log.error}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
