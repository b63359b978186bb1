"""The expression language CEL: parsing and evaluation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import SourceError, Unsupported
from batkube.api.cel.values import CelError
from batkube.api.custom.schemas.cel_types import DYN

INT64 = st.integers(-(2**63), 2**63 - 1)


def evaluated(text: str, value: Any = None) -> Any:  # noqa: ANN401
    return CelProgram(text, {"self": DYN, "oldSelf": DYN})({"self": value})


@pytest.mark.parametrize(
    "text",
    [
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "dyn(1) == 1.0 && 1 < 1.5 && dyn(2u) == 2",
        "'a' + 'b' == \"ab\" && r'\\d' == '\\\\d' && b'a' == bytes('a')",
        "[1, 2] + [3] == [1, 2, 3] && 2 in [1, 2] && 'a' in {'a': 1}",
        "true || 1 / 0 == 1",
        "!(false && 1 / 0 == 1)",
        "1 > 2 ? false : true",
        "[1, 2, 3].all(x, x > 0) && [1, 2].exists(x, x == 2) && [1, 2, 2].exists_one(x, x == 1)",
        "[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6]",
        "{'a': 1}.all(k, k == 'a') && [5, 6].all(i, v, v == 5 + i)",
        "[1 / 1, 0].exists(x, 4 / x == 4)",
        "size('äö') == 2 && size([1]) == 1 && 'abc'.size() == 3",
        "'abc'.startsWith('a') && 'abc'.endsWith('c') && 'abc'.contains('b') && 'abc'.matches('^a.c$')",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && ' x '.trim() == 'x'",
        "'abc'.substring(1) == 'bc' && 'abc'.indexOf('c') == 2 && 'AbC'.lowerAscii() == 'abc'",
        "'%s is %d'.format(['x', 5]) == 'x is 5' && 'abab'.replace('a', 'c') == 'cbcb'",
        "int('5') == 5 && string(5) == '5' && double('1.5') == 1.5 && bool('true') && type(5) == int",
        "duration('1h30m') > duration('80m') && duration('90s').getMinutes() == 1",
        "timestamp('2024-03-01T00:00:00Z') - timestamp('2024-02-28T00:00:00Z') == duration('48h')",
        "timestamp('2024-03-01T05:00:00Z').getHours() == 5 && timestamp('2024-03-03T00:00:00Z').getDayOfWeek() == 0",
        "[3, 1].sum() == 4 && [1, 2].isSorted() && [3, 1].max() == 3 && ['a', 'b'].indexOf('b') == 1",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2, 2], [2, 1]) && sets.intersects([1], [1, 5])",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('500m')).asInteger() == 1",
        "isIP('::1') && !isIP('x') && cidr('10.0.0.0/8').containsIP('10.1.2.3') && ip('127.0.0.1').isLoopback()",
        "url('https://a.b:8080/c?d=e').getPort() == '8080' && isURL('/x') && 'aab'.findAll('a') == ['a', 'a']",
        "optional.of(1).orValue(2) == 1 && optional.none().orValue(2) == 2 && {'a': 1}.?b.orValue(3) == 3",
        "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('_').hasValue()",
    ],
)
def test_expressions_evaluate_as_specified(text: str) -> None:
    assert evaluated(text) is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("self.a == 1", "no such key: a"),
        ("[1][5] == 1", "index out of bounds: 5"),
        ("self < 1", "no such overload"),
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
    ],
)
def test_a_failing_evaluation_raises_an_error(text: str, problem: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluated(text, {})

    assert str(caught.value) == problem


@given(INT64, INT64, st.sampled_from("+-*"))
def test_integers_have_64_bits(left: int, right: int, operator: str) -> None:
    expected = {"+": left + right, "-": left - right, "*": left * right}[operator]

    if -(2**63) <= expected < 2**63:
        assert evaluated(f"self.a {operator} self.b", {"a": left, "b": right}) == expected
    else:
        with pytest.raises(CelError, match="integer overflow"):
            evaluated(f"self.a {operator} self.b", {"a": left, "b": right})


@given(INT64, INT64)
def test_quotient_and_remainder_make_up_the_number(left: int, right: int) -> None:
    assume(right != 0 and not (left == -(2**63) and right == -1))

    assert evaluated("self.a / self.b * self.b + self.a % self.b == self.a", {"a": left, "b": right}) is True


@given(st.text(max_size=40))
def test_any_text_either_parses_or_is_rejected(text: str) -> None:
    try:
        program = CelProgram(text, {"self": DYN})
    except (SourceError, Unsupported):
        return
    assert program.identifiers <= {"self"}
