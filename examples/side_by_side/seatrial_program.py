import seatrial as st


def answer(instruction: str) -> str:
    return "Your order is on its way."


case = st.Case("where-is-it", "Where is order A-1009?", graders=[st.contains("on its way")])
print(st.run(st.Suite(agents={"mine": answer}, cases=[case]), trials=3))
