"""The orders of the shop, and what each of its customers wants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ITEMS = (
    "tea pot",
    "desk lamp",
    "rain jacket",
    "chess set",
    "bread knife",
    "wool blanket",
    "travel mug",
    "picture frame",
)
TOWNS = ("Utrecht", "Bergen", "Porto", "Graz", "Lyon", "Galway", "Turku", "Bilbao")
REASONS = ("damaged", "late", "wrong item", "too small", "not as described", "arrived twice")
STATES = ("on its way", "delivered", "being packed", "held at customs")


@dataclass(frozen=True)
class Order:
    """An order, with what its customer wants: `refund`, `address` or `status`."""

    number: str
    item: str
    price: float
    wish: str
    detail: str
    """Why the customer wants a refund, the town to send the order to, or the state that the order is in."""

    @property
    def partial(self) -> bool:
        """Whether only a tenth is to be refunded: what is damaged can still be used."""
        return self.wish == "refund" and self.detail == "damaged"

    @property
    def due(self) -> float:
        """How much is to be refunded."""
        return round(self.price / 10, 2) if self.partial else self.price

    @property
    def case_id(self) -> str:
        """A name for the case."""
        return f"{self.wish}-{self.item}-{self.detail}".replace(" ", "-").lower()

    @property
    def instruction(self) -> str:
        """What the customer writes."""
        match self.wish:
            case "refund" if self.partial:
                return f"My {self.item} ({self.number}) came damaged. I can use it: please refund a tenth of the price."
            case "refund":
                return f"I want my money back for order {self.number}, the {self.item}: {self.detail}."
            case "address":
                return f"I am moving. Please send order {self.number}, the {self.item}, to {self.detail} instead."
            case _:
                return f"Where is my {self.item}? The order is {self.number}."


def orders() -> Iterator[Order]:
    """Every order: some customers of each kind, the same every time."""
    number = 1001
    for wish, details, items in (
        ("refund", REASONS, ITEMS[:6]),
        ("address", TOWNS[:4], ITEMS[:3]),
        ("status", STATES, ITEMS[:6]),
    ):
        for position, item in enumerate(items):
            for offset, detail in enumerate(details):
                number += 7
                price = (
                    238.0 if (position, offset) == (0, 0) else round(15 + number * 13 % 290 + 0.05 * (number % 20), 2)
                )
                yield Order(f"A-{number}", item, price, wish, detail)


def find(text: str) -> Order:
    """The order that a message names."""
    return next(order for order in orders() if order.number in text)


def record(order: Order) -> dict[str, Any]:
    """An order as the tools of the shop show it."""
    state = order.detail if order.wish == "status" else "on its way" if order.wish == "address" else "delivered"
    return {"order": order.number, "item": order.item, "price": order.price, "currency": "EUR", "status": state}
