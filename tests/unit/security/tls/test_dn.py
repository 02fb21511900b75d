"""Names in certificates, as Java writes them."""

from __future__ import annotations

import pytest

from ottla.launch.secure.certificates import Authority
from ottla.security.tls.dn import subject_of
from ottla.security.tls.stores import der_of

EMAIL = "1.2.840.113549.1.9.1"
DC = "0.9.2342.19200300.100.1.25"


def subject(*attributes: tuple[str, str], common_name: str = "alice") -> str:
    issued = Authority().issue(common_name, more=attributes)
    return subject_of(der_of(issued.certificate.encode())[0])


def test_the_last_name_stands_first_without_blanks_between() -> None:
    assert subject(("O", "Acme"), ("OU", "dev team")) == "CN=alice,OU=dev team,O=Acme"


def test_signs_that_mean_something_are_escaped() -> None:
    assert subject(("O", 'a,b+c"d\\e<f>g;h=i#')) == r"CN=alice,O=a\,b\+c\"d\\e\<f\>g\;h\=i\#"


def test_blanks_at_the_ends_are_escaped_and_those_within_are_not() -> None:
    assert subject(common_name=" a b  ") == r"CN=\ a b\ \ "


def test_text_beyond_ascii_stays() -> None:
    assert subject(common_name="Jürgen Müller") == "CN=Jürgen Müller"


def test_a_type_without_a_keyword_is_shown_as_its_bytes() -> None:
    seen = subject((EMAIL, "a@b.c"))

    assert seen.startswith(f"CN=alice,{EMAIL}=#")
    assert bytes.fromhex(seen.rpartition("#")[2]).endswith(b"a@b.c")


@pytest.mark.parametrize(
    ("identifier", "keyword"),
    [("2.5.4.6", "C"), ("2.5.4.7", "L"), ("2.5.4.8", "ST"), ("2.5.4.9", "STREET"), (DC, "DC")],
)
def test_nine_types_have_keywords(identifier: str, keyword: str) -> None:
    assert subject((identifier, "DE")) == f"CN=alice,{keyword}=DE"
