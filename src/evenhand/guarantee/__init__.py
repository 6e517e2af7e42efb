"""Who is protected from what: the privacy unit, the neighbour relation, ε and δ, and the error tree."""

from evenhand.guarantee.amounts import (
    Amount,
    divide,
    exact_difference,
    exact_product,
    exact_sum,
    exact_text,
    fixed_context,
    parse_delta,
    parse_epsilon,
    parse_fraction,
    plain,
    portion,
    split,
)
from evenhand.guarantee.errors import (
    BudgetExceeded,
    DataError,
    EngineError,
    EvenhandError,
    LedgerError,
    MessageError,
    UsageError,
    suggest,
    told,
)
from evenhand.guarantee.promise import Guarantee, Purchase, Reach
from evenhand.guarantee.relation import Relation

__all__ = [
    "Amount",
    "BudgetExceeded",
    "DataError",
    "EngineError",
    "EvenhandError",
    "Guarantee",
    "LedgerError",
    "MessageError",
    "Purchase",
    "Reach",
    "Relation",
    "UsageError",
    "divide",
    "exact_difference",
    "exact_product",
    "exact_sum",
    "exact_text",
    "fixed_context",
    "parse_delta",
    "parse_epsilon",
    "parse_fraction",
    "plain",
    "portion",
    "split",
    "suggest",
    "told",
]
