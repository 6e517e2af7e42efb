"""A plugin for mypy: amounts of ε, δ and ρ are computed with in `guarantee/amounts.py`, or in a context that is made there.

What Python's operators make of two decimals depends on the decimal context of the thread that calls: how many digits, which
rounding, what it raises for. `make check` runs this over the package; `tests/unit/test_amounts_rule.py` shows what it finds.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import ErrorCode
from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Instance, NoneType, TupleType, Type, UnionType, get_proper_type

AMOUNT = ErrorCode("amount", "Arithmetic on amounts in the caller's decimal context", "General")

PACKAGE, ALLOWED = "src/evenhand/", "guarantee/amounts.py"

FREE = {
    *("__new__", "__init__", "__hash__", "__bool__", "__int__", "__float__", "__eq__", "__ne__", "from_float"),
    *("adjusted", "as_integer_ratio", "as_tuple", "canonical", "conjugate", "copy_abs", "copy_negate", "copy_sign"),
    *(
        "is_canonical",
        "is_finite",
        "is_infinite",
        "is_nan",
        "is_qnan",
        "is_signed",
        "is_snan",
        "is_zero",
        "same_quantum",
    ),
}
"""What looks at no context."""
COMPARED = {"__lt__", "__le__", "__gt__", "__ge__"}
"""What looks at one beside a float: a program may have forbidden that."""
COMPUTING = {f"builtins.{name}" for name in ("abs", "divmod", "format", "pow", "repr", "round", "str", "sum")}
"""Functions that use the operators, or write a number as the context says."""
DECIMAL = ("decimal.Decimal", "_decimal.Decimal")


class AmountsRule(Plugin):
    """Reports operators, methods and functions on decimals that look at the caller's context."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        owner, _, name = fullname.rpartition(".")
        if owner not in DECIMAL or name in FREE:
            return None

        def check(given: MethodContext) -> Type:
            types = [kind for kinds in given.arg_types for kind in kinds]
            in_context = any(
                name == "context" and kinds for name, kinds in zip(given.callee_arg_names, given.arg_types, strict=True)
            )
            if not in_context and (name not in COMPARED or any(_is(kind, ("builtins.float",)) for kind in types)):
                _report(given, f"Decimal.{name}")
            return given.default_return_type

        return check

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        wrong = ("builtins.float",) if fullname in DECIMAL else DECIMAL if fullname in COMPUTING else None
        if wrong is None:
            return None

        def check(given: FunctionContext) -> Type:
            if any(_is(kind, wrong) for kinds in given.arg_types for kind in kinds):
                _report(given, fullname.rpartition(".")[2])
            return given.default_return_type

        return check


def _is(given: Type, names: tuple[str, ...]) -> bool:
    """Whether a type is one of these, perhaps None, or holds them: a list of decimals is what `sum` is given."""
    kind = get_proper_type(given)
    if isinstance(kind, UnionType):
        return all(isinstance(get_proper_type(one), NoneType) or _is(one, names) for one in kind.items)
    if isinstance(kind, TupleType):
        return any(_is(one, names) for one in kind.items)
    return isinstance(kind, Instance) and (kind.type.fullname in names or any(_is(one, names) for one in kind.args))


def _report(given: MethodContext | FunctionContext, what: str) -> None:
    path = given.api.path.replace("\\", "/")
    if PACKAGE in path and not path.endswith(ALLOWED):
        given.api.fail(
            f"{what} on an amount looks at the caller's decimal context; use evenhand.guarantee.amounts",
            given.context,
            code=AMOUNT,
        )


def plugin(version: str) -> type[Plugin]:
    """What mypy loads."""
    return AmountsRule
