"""For mypy: the facts that each reason's words write are the arguments that make the reason.

``Words("hostfile.empty", "no node in {path}")`` takes ``path`` by name, or the check fails. A fact
has the type of how it is written: ``{nodes:node|nodes}`` counts, ``{hosts:names}`` lists.
"""

from __future__ import annotations

from collections.abc import Callable
from string import Formatter

from mypy.nodes import ARG_NAMED, ARG_STAR2, StrExpr
from mypy.plugin import FunctionContext, Plugin
from mypy.types import Instance, NoneType, Parameters, Type, UnionType

_WORDS = "clustergate.core.reasons.Words"
_LISTS = {
    **dict.fromkeys(("names", "list", "and"), "builtins.str"),
    **dict.fromkeys(("ranks", "launches", "cores"), "builtins.int"),
}
_NUMBERS = ("number", "percent", "whole_percent", "cost", "change")


class TypedReasons(Plugin):
    """Gives each of the words the parameters of its facts."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return _with_facts if fullname == _WORDS else None


def _with_facts(context: FunctionContext) -> Type:
    made = context.default_return_type
    texts = [argument for arguments in context.args for argument in arguments]
    if not isinstance(made, Instance):
        return made
    facts: dict[str, str] = {}
    for text in texts:
        if not isinstance(text, StrExpr):
            context.api.fail("words must be plain strings, so that their facts are known", text)
            return made
        for name, form in _facts_in(text):
            facts[name] = facts.get(name) or form
    kinds = [*[ARG_NAMED] * len(facts), ARG_STAR2]
    types = [*(_type_of(form, context) for form in facts.values()), _type_of("", context)]
    return made.copy_modified(args=[Parameters(types, kinds, [*facts, "more"])])


def _facts_in(text: StrExpr) -> list[tuple[str, str]]:
    return [(name, form or "") for _, name, form, _ in Formatter().parse(text.value) if name]


def _type_of(form: str, context: FunctionContext) -> Type:
    """Return the type of a fact that is written in a form of :mod:`clustergate.core.reasons`."""

    def named(name: str, *of: Type) -> Instance:
        return context.api.named_generic_type(name, list(of))

    if form in _LISTS:
        return named("typing.Sequence", named(_LISTS[form]))
    if "|" in form:
        return named("builtins.int")
    number = named("builtins.float")
    if form in _NUMBERS or form[-1:] in ("f", "g", "e"):
        return number
    if form in ("of", "compared"):
        return UnionType([number, NoneType()])
    words_or_numbers = UnionType([named("builtins.str"), named("builtins.int")])
    others = [named("builtins.str"), named("pathlib.Path"), named("builtins.Exception")]
    return UnionType([number, *others, named("typing.Sequence", words_or_numbers), NoneType()])


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return TypedReasons
