"""Questions made from the server's own description: any that its schema allows, with names of columns that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]

_ENDS = (0, 1, -1, 0.5, 6, 1e-9, 1e9, 2**31, 1e308, -1e308)
_SHORT = 3  # items of a list: long ones are the load test's


class Generator:
    """Values of schemas.

    Args:
        schemas: by name, as in components/schemas.
        columns: of the table; a text that names a column is mostly one of them.
    """

    def __init__(self, schemas: Mapping[str, Schema], columns: Sequence[str]) -> None:
        self._schemas, self._columns = schemas, list(columns)

    def of(self, schema: Schema) -> st.SearchStrategy[Any]:
        """Any value that a schema allows; its default often, so that one odd parameter stands among usual ones."""
        made = self._of(schema)
        usual = [*schema.get("examples", ())] + ([schema["default"]] if "default" in schema else [])
        return st.one_of(st.sampled_from(usual), st.sampled_from(usual), made) if usual else made

    def _of(self, schema: Schema) -> st.SearchStrategy[Any]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return st.deferred(lambda: self.of(self._schemas[name]))
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return st.one_of([self.of(one) for one in schema[several]])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        kind: str = schema["type"]
        return getattr(self, f"_{kind}")(schema)

    def _object(self, schema: Schema) -> st.SearchStrategy[Any]:
        parts = {name: self.of(one) for name, one in schema.get("properties", {}).items()}
        needed = schema.get("required", [])
        fixed = st.fixed_dictionaries(
            {name: parts[name] for name in needed}, optional={name: parts[name] for name in parts if name not in needed}
        )
        more = schema.get("additionalProperties")
        if not isinstance(more, Mapping):
            return fixed
        least = schema.get("minProperties", len(needed)) - len(needed)
        names = st.one_of(st.sampled_from([*self._columns, "n"]), st.text(max_size=8))
        others = st.dictionaries(names, self.of(more), min_size=least, max_size=max(least, _SHORT))
        return st.builds(lambda one, two: {**two, **one}, fixed, others)

    def _array(self, schema: Schema) -> st.SearchStrategy[Any]:
        least = schema.get("minItems", 0)
        return st.lists(self.of(schema["items"]), min_size=least, max_size=schema.get("maxItems") if least else _SHORT)

    def _string(self, schema: Schema) -> st.SearchStrategy[Any]:
        if "pattern" in schema:
            return st.from_regex(schema["pattern"], fullmatch=True)
        if schema.get("x-names") == "column":
            return st.one_of(st.sampled_from(self._columns), st.sampled_from(self._columns), st.text(max_size=4))
        return st.text(max_size=8)

    def _number(self, schema: Schema) -> st.SearchStrategy[Any]:
        least, most = schema.get("minimum"), schema.get("maximum", schema.get("exclusiveMaximum"))
        usual = [one for one in _ENDS if (least is None or one >= least) and (most is None or one <= most)]
        finite = st.floats(
            allow_nan=False,
            allow_infinity=False,
            min_value=least,
            max_value=most,
            exclude_max="exclusiveMaximum" in schema,
        )
        return st.one_of(st.sampled_from(usual), finite)

    def _integer(self, schema: Schema) -> st.SearchStrategy[Any]:
        return st.one_of(st.integers(-1, 12), st.integers())

    def _boolean(self, schema: Schema) -> st.SearchStrategy[Any]:
        return st.booleans()

    def _null(self, schema: Schema) -> st.SearchStrategy[Any]:
        return st.none()
