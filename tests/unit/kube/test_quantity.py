import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_grows_as_its_input

from isvc.kube.quantity import Notation, Quantity, QuantityError

# What k8s.io/apimachinery prints for each.
PRINTED = {
    "0": "0",
    "0Gi": "0",
    "-0": "0",
    "1": "1",
    "100m": "100m",
    "1000m": "1",
    "1500m": "1500m",
    "0.1": "100m",
    "0.5Gi": "512Mi",
    "1.5Gi": "1536Mi",
    "1024": "1024",
    "1024Ki": "1Mi",
    "512Mi": "512Mi",
    "1000Ki": "1000Ki",
    "8Ki": "8Ki",
    "1e3": "1e3",
    "10e2": "1e3",
    "1E": "1E",
    "1000000": "1M",
    "1.5G": "1500M",
    "0.0000000001": "1n",
    "0.1Ki": "102400m",
    "1.1Ki": "1126400m",
    "1.100": "1.100",
    "-1500m": "-1500m",
    "+1Ki": "+1Ki",
    "12Ei": "9223372036854775807",
    "100": "100",
    "2.50": "2500m",
}


@pytest.mark.parametrize(("text", "printed"), PRINTED.items())
def test_prints_as_kubernetes_does(text, printed):
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize(
    "text",
    ["9" * 5000, "", "1i", "1.1.1", "1Kib", "abc", "1 Gi", "1e", "--1", "1e99999999", "1e" + "9" * 5000],
)
def test_refuses_what_is_no_quantity(text):
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_arithmetic_keeps_the_notation_of_the_left_side():
    assert str(Quantity.parse("1Gi") + Quantity.parse("1Gi")) == "2Gi"
    assert str(Quantity.parse("1") - Quantity.parse("250m")) == "750m"
    assert str(Quantity.parse("0") + Quantity.parse("1Gi")) == "1Gi"
    assert str(3 * Quantity.parse("100m")) == "300m"
    assert str(-Quantity.parse("2")) == "-2"


def test_numbers_and_scales():
    assert Quantity.parse(2) == Quantity.parse("2000m")
    assert Quantity.parse(0.5).milli() == 500
    assert float(Quantity.parse("250m")) == 0.25
    assert Quantity.parse("1100m").value() == 2
    assert Quantity.parse("-1100m").value() == -2
    assert not Quantity.parse("0m")
    assert min(map(Quantity.parse, ["1Gi", "1G", "100m"])) == Quantity.parse("0.1")
    assert len({Quantity.parse("1"), Quantity.parse("1000m")}) == 1


quantities = st.builds(Quantity, st.integers(-(10**24), 10**24), st.sampled_from(Notation))


@given(quantities)
def test_the_canonical_form_reads_back_as_the_same_amount(quantity):
    again = Quantity.parse(quantity.canonical())
    assert again == quantity
    assert again.canonical() == quantity.canonical()


@given(quantities, quantities)
def test_comparison_agrees_with_subtraction(one, other):
    assert (one < other) == ((one - other).nanos < 0)
    assert one + other - other == one


@pytest.mark.parametrize("zeros", ["", "0."])
def test_what_is_no_quantity_is_refused_in_a_time_that_grows_with_its_length(zeros):
    def refuse(digits: int) -> None:
        with pytest.raises(QuantityError):
            Quantity.parse(zeros + "1" * digits + "x")

    assert_grows_as_its_input(refuse, 1_000)
