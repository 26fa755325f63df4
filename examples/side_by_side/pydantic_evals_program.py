from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Contains


def answer(instruction: str) -> str:
    return "Your order is on its way."


case = Case(name="where-is-it", inputs="Where is order A-1009?", evaluators=(Contains("on its way"),))
Dataset(name="shop", cases=[case]).evaluate_sync(answer, repeat=3).print()
