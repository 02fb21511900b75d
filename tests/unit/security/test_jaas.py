"""JAAS texts as Java's tokenizer reads them."""

import pytest

from ottla.security.jaas import JaasError, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ('username="alice" password="a secret"', {"username": "alice", "password": "a secret"}),
        ("username='alice' password='it\"s'", {"username": "alice", "password": 'it"s'}),
        (r'password="a\"b\\c\n\101"', {"password": 'a"b\\c\nA'}),
        ("username=alice password=a1.b-c_d$", {"username": "alice", "password": "a1.b-c_d$"}),
        ("username=käthe", {"username": "käthe"}),
        ("a = b c\t=\nd", {"a": "b", "c": "d"}),
        ("a=b // the rest; of the line\n c=d", {"a": "b", "c": "d"}),
        ("a=b /* not ; this */ c=d", {"a": "b", "c": "d"}),
        ('user_alice="1" user_bob="2"', {"user_alice": "1", "user_bob": "2"}),
        ('password=""', {"password": ""}),
        ("", {}),
    ],
)
def test_options_are_read_as_kafka_reads_them(options: str, read: dict[str, str]) -> None:
    entry = parse_jaas(f"{MODULE} required {options};")

    assert (entry.module, entry.options) == (MODULE, read)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "login module is missing"),
        (MODULE, "control flag is missing"),
        (f"{MODULE} always a=b;", "no control flag"),
        (f"{MODULE} required a=b", "semicolon"),
        (f"{MODULE} required password=12345;", "Value not specified for key 'password'.*quotes"),
        (f"{MODULE} required password=1abc;", "Value not specified"),
        (f"{MODULE} required password=-5;", "Value not specified"),
        (f"{MODULE} required password=a@b;", "semicolon"),
        (f"{MODULE} required password;", "Value not specified for key 'password'"),
        (f"{MODULE} required password=a/b;", "semicolon"),
        (f'{MODULE} required password="open;', "Value not specified"),
        (f"{MODULE} required a=b; {MODULE} required;", "only one login module"),
    ],
)
def test_what_kafka_cannot_read_is_refused_with_its_column_and_without_its_values(
    text: str, why: str
) -> None:
    with pytest.raises(JaasError, match=why) as refused:
        parse_jaas(text)

    assert "12345" not in str(refused.value)
    assert "1abc" not in str(refused.value)


def test_users_are_the_options_that_say_so() -> None:
    entry = parse_jaas(f'{MODULE} required username="x" user_alice="1" user_bob="2";')

    assert entry.users == {"alice": "1", "bob": "2"}
    assert "1" not in repr(entry)
