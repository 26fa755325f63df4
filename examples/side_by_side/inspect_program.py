from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import Generate, TaskState, solver


@solver
def mine():
    async def answer(state: TaskState, generate: Generate) -> TaskState:
        state.output.completion = "Your order is on its way."
        return state

    return answer


sample = Sample(id="where-is-it", input="Where is order A-1009?", target="on its way")
eval(Task(dataset=[sample], solver=mine(), scorer=includes()), model="mockllm/model", epochs=3)
