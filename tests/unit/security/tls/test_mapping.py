"""``ssl.principal.mapping.rules``: expected names are those of Kafka 3.9's ``SslPrincipalMapper``."""

from __future__ import annotations

import pytest

from ottla.security.tls.mapping import BadRules, PrincipalMapping

SUBJECT = "CN=Alice,OU=dev team,O=Acme\\, Inc,C=DE"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (None, SUBJECT),
        ("DEFAULT", SUBJECT),
        ("", None),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", "Alice@dev team"),
        ("RULE:^CN=(.*?),.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),.*$/$1/U", "ALICE"),
        ("RULE:^CN=nobody$/x/,RULE:^CN=(.*?),.*$/$1/L,DEFAULT", "alice"),
        ("RULE:^CN=nobody$/x/, DEFAULT", SUBJECT),
        ("RULE:^CN=nobody$/x/", None),
        ("RULE:CN=Alice/x/", None),
        ("RULE:^CN=(.*?),.*$/$1@$2/", "Alice@$2"),
        ("RULE:^CN=(.*?),.*$/$10/", "Alice0"),
        (r"RULE:^CN=(.*?),.*$/a\/$1/", "a/Alice"),
        (r"RULE:^CN=(.*?),.*$/\$1/", "$1"),
        ("RULE:.*/x/", "xx"),
        ("RULE:^(?<who>CN=.*?),.*$/$1/", "CN=Alice"),
        ("RULE:^CN=(.*?),OU=.*$|(none)/$1$2/", "Alice"),
    ],
)
def test_the_first_rule_that_fits_makes_the_name(rules: str | None, name: str | None) -> None:
    assert PrincipalMapping(rules).name_of(SUBJECT) == name


@pytest.mark.parametrize(
    "rules",
    ["rule:^CN=(.*)$/$1/", "RULE:^CN=(.*$/$1/", "RULE:^CN=.*$/$1/", "default", "RULE:^CN=(.*)$/$x/"],
)
def test_rules_that_cannot_be_read_are_refused(rules: str) -> None:
    with pytest.raises(BadRules):
        PrincipalMapping(rules)
