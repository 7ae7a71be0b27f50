"""Resource quantities such as `100m`, `1.5Gi` or `2e3`: parse, compare, calculate, and print as Kubernetes does.

A quantity is a whole number of nano-units, which is all the precision Kubernetes keeps, and the notation it was
written in, which decides how it prints: 1024 written as `1Ki` prints in powers of two, written as `1024` it does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, total_ordering

_MOST_DIGITS = 1000  # Python converts no number of more than 4300
_NANO = 10**9
_MAX_BINARY = (2**63 - 1) * _NANO
# No digit is given back to be read with the suffix: a megabyte of them that ends in a letter would take hours.
_SHAPE = re.compile(r"([+-]?)(\d*+)(?:\.(\d*+))?([eEinumkKMGTP]*[-+]?\d*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: "", **{exponent // 10: suffix for suffix, exponent in _BINARY.items()}}
_LARGEST_EXPONENT = 10_000  # beyond it a number is an attack on memory, not a quantity


class QuantityError(ValueError):
    """The text is no quantity."""


class Notation(Enum):
    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    nanos: int
    notation: Notation = Notation.DECIMAL
    written: str = ""  # kept where Kubernetes would print it back unchanged

    @classmethod
    def parse(cls, text: str | int | float | Quantity) -> Quantity:
        if isinstance(text, Quantity):
            return text
        return _parse(text.strip() if isinstance(text, str) else repr(text))

    def __str__(self) -> str:
        return self.written or self.canonical()

    def canonical(self) -> str:
        """Returns the shortest number without a fraction, with the suffix that takes."""
        if self.nanos == 0:
            return "0"
        whole, rest = divmod(abs(self.nanos), _NANO)
        sign = "-" if self.nanos < 0 else ""
        if self.notation is Notation.BINARY and rest == 0 and whole >= 1024:
            return sign + _in_powers_of_1024(whole)
        if self.notation is Notation.EXPONENT:
            mantissa, exponent = _in_powers_of_1000(abs(self.nanos), _LARGEST_EXPONENT)
            return f"{sign}{mantissa}e{exponent}" if exponent else f"{sign}{mantissa}"
        mantissa, exponent = _in_powers_of_1000(abs(self.nanos), 18)
        return f"{sign}{mantissa}{_DECIMAL_SUFFIX[exponent]}"

    def value(self) -> int:
        """Returns whole units, rounded away from zero."""
        return self._scale(_NANO)

    def milli(self) -> int:
        """Returns thousandths, rounded away from zero."""
        return self._scale(_NANO // 1000)

    def _scale(self, unit: int) -> int:
        amount = -(-abs(self.nanos) // unit)
        return -amount if self.nanos < 0 else amount

    def __float__(self) -> float:
        return self.nanos / _NANO

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __eq__(self, other: object) -> bool:
        return self.nanos == other.nanos if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self._notation_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self._notation_with(other))

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nanos * times, self.notation)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.notation)

    def _notation_with(self, other: Quantity) -> Notation:
        return self.notation if self.nanos else other.notation


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _SHAPE.fullmatch(text)
    if match is None or not text:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, fraction, suffix = match[1], match[2].lstrip("0") or "0", match[3] or "", match[4]
    if len(whole) + len(fraction) > _MOST_DIGITS:
        raise QuantityError(f"quantities have at most {_MOST_DIGITS} digits")
    base, exponent, notation = _interpret(suffix)
    digits = int(whole + fraction)
    if base == 2:
        nanos = _divide_up(digits * 2**exponent * _NANO, 10 ** len(fraction))
        nanos = min(nanos, _MAX_BINARY)
        if 0 < nanos < _NANO:
            notation = Notation.DECIMAL
    else:
        power = exponent - len(fraction) + 9
        nanos = digits * 10**power if power >= 0 else _divide_up(digits, 10**-power)
    kept = text if _prints_back(whole, fraction, exponent, notation) else ""
    return Quantity(-nanos if sign == "-" else nanos, notation, kept)


def _interpret(suffix: str) -> tuple[int, int, Notation]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Notation.DECIMAL
    if suffix in _BINARY:
        return 2, _BINARY[suffix], Notation.BINARY
    if suffix[:1] in ("e", "E") and re.fullmatch(r"[-+]?0*\d{1,5}", suffix[1:]):
        exponent = int(suffix[1:])
        if abs(exponent) <= _LARGEST_EXPONENT:
            return 10, exponent, Notation.EXPONENT
    raise QuantityError("unable to parse quantity's suffix")


def _prints_back(whole: str, fraction: str, exponent: int, notation: Notation) -> bool:
    """Returns whether Kubernetes keeps the text as it was written, which it does with what looks canonical."""
    digits = whole + fraction
    if notation is Notation.BINARY:
        precision = 15 - len(whole) - int(exponent * 3 / 10) - 1
        return not fraction and precision >= 0 and exponent % 10 == 0 and int(digits) % 8 != 0
    scale = exponent - len(fraction)
    return (
        len(digits) <= 18
        and scale >= -9
        and scale % 3 == 0
        and not digits.endswith("000")
        and not digits.startswith("0")
    )


def _divide_up(number: int, by: int) -> int:
    return -(-number // by)


def _in_powers_of_1024(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < 6:
        whole, power = whole // 1024, power + 1
    return f"{whole}{_BINARY_SUFFIX[power]}"


def _in_powers_of_1000(nanos: int, largest: int) -> tuple[int, int]:
    exponent = -9
    while nanos % 1000 == 0 and exponent < largest:
        nanos, exponent = nanos // 1000, exponent + 3
    return nanos, exponent


def is_whole_number(text: str) -> bool:
    """Returns whether it is one of at most nine digits, which people write and a replica count can be."""
    return re.fullmatch("[0-9]{1,9}", text) is not None
