"""ssl.principal.mapping.rules; what is expected here is what Apache Kafka's SslPrincipalMapper said."""

from __future__ import annotations

import pytest

from kshim.configs.principal_rules import mapped, parse_rules


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", "CN=duke", "CN=duke"),
        ("", "CN=duke", None),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L", "CN=Duke,OU=Services,C=US", "duke"),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L", "CN=duke", None),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L", "", None),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L", "CN=a\\,b,OU=X", None),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L,DEFAULT", "CN=Duke,OU=Services,C=US", "duke"),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L,DEFAULT", "CN=duke", "CN=duke"),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L,DEFAULT", "", ""),
        ("RULE:^CN=(.*?),OU=Services.*$/$1/L,DEFAULT", "CN=a\\,b,OU=X", "CN=a\\,b,OU=X"),
        (
            "RULE:^cn=(.*?),ou=(.*?)$/$1@$2/, RULE:^CN=(.*?)$/$1/U , DEFAULT",
            "CN=Duke,OU=Services,C=US",
            "DUKE,OU=SERVICES,C=US",
        ),
        ("RULE:^cn=(.*?),ou=(.*?)$/$1@$2/, RULE:^CN=(.*?)$/$1/U , DEFAULT", "CN=duke", "DUKE"),
        ("RULE:^cn=(.*?),ou=(.*?)$/$1@$2/, RULE:^CN=(.*?)$/$1/U , DEFAULT", "", ""),
        (
            "RULE:^cn=(.*?),ou=(.*?)$/$1@$2/, RULE:^CN=(.*?)$/$1/U , DEFAULT",
            "CN=a\\,b,OU=X",
            "A\\,B,OU=X",
        ),
        ("RULE:^CN=(.*?)(?:,.*)?$/$1@$4/", "CN=Duke,OU=Services,C=US", "Duke@$4"),
        ("RULE:^CN=(.*?)(?:,.*)?$/$1@$4/", "CN=duke", "duke@$4"),
        ("RULE:^CN=(.*?)(?:,.*)?$/$1@$4/", "", None),
        ("RULE:^CN=(.*?)(?:,.*)?$/$1@$4/", "CN=a\\,b,OU=X", "a\\@$4"),
        ("RULE:^CN=(.*?)(?:,.*)?$/$12/", "CN=Duke,OU=Services,C=US", "Duke2"),
        ("RULE:^CN=(.*?)(?:,.*)?$/$12/", "CN=duke", "duke2"),
        ("RULE:^CN=(.*?)(?:,.*)?$/$12/", "", None),
        ("RULE:^CN=(.*?)(?:,.*)?$/$12/", "CN=a\\,b,OU=X", "a\\2"),
        ("RULE:.*/x/", "CN=Duke,OU=Services,C=US", "xx"),
        ("RULE:.*/x/", "CN=duke", "xx"),
        ("RULE:.*/x/", "", "x"),
        ("RULE:.*/x/", "CN=a\\,b,OU=X", "xx"),
        ("RULE:^CN=(?<name>[^,]*).*$/${name}!/", "CN=Duke,OU=Services,C=US", "Duke!"),
        ("RULE:^CN=(?<name>[^,]*).*$/${name}!/", "CN=duke", "duke!"),
        ("RULE:^CN=(?<name>[^,]*).*$/${name}!/", "", None),
        ("RULE:^CN=(?<name>[^,]*).*$/${name}!/", "CN=a\\,b,OU=X", "a\\!"),
        ("RULE:^CN=(.*)$/a\\/b\\$1/", "CN=Duke,OU=Services,C=US", "a/b$1"),
        ("RULE:^CN=(.*)$/a\\/b\\$1/", "CN=duke", "a/b$1"),
        ("RULE:^CN=(.*)$/a\\/b\\$1/", "", None),
        ("RULE:^CN=(.*)$/a\\/b\\$1/", "CN=a\\,b,OU=X", "a/b$1"),
        ("RULE:^CN=([^,]*),?.*$/$1/L,", "CN=Duke,OU=Services,C=US", "duke"),
        ("RULE:^CN=([^,]*),?.*$/$1/L,", "CN=duke", "duke"),
        ("RULE:^CN=([^,]*),?.*$/$1/L,", "", None),
        ("RULE:^CN=([^,]*),?.*$/$1/L,", "CN=a\\,b,OU=X", "a\\"),
        ("  DEFAULT  ,  ", "CN=Duke,OU=Services,C=US", "CN=Duke,OU=Services,C=US"),
        ("  DEFAULT  ,  ", "CN=duke", "CN=duke"),
        ("  DEFAULT  ,  ", "", ""),
        ("  DEFAULT  ,  ", "CN=a\\,b,OU=X", "CN=a\\,b,OU=X"),
        ("RULE:CN=(a\\\\,b).*/$1/", "CN=Duke,OU=Services,C=US", None),
        ("RULE:CN=(a\\\\,b).*/$1/", "CN=duke", None),
        ("RULE:CN=(a\\\\,b).*/$1/", "", None),
        ("RULE:CN=(a\\\\,b).*/$1/", "CN=a\\,b,OU=X", "a\\,b"),
        ("RULE:(.*)/[$0]/", "CN=Duke,OU=Services,C=US", "[CN=Duke,OU=Services,C=US][]"),
        ("RULE:(.*)/[$0]/", "CN=duke", "[CN=duke][]"),
        ("RULE:(.*)/[$0]/", "", "[]"),
        ("RULE:(.*)/[$0]/", "CN=a\\,b,OU=X", "[CN=a\\,b,OU=X][]"),
    ],
)
def test_rules(rules: str, name: str, principal: str | None) -> None:
    assert mapped(parse_rules(rules), name) == principal


@pytest.mark.parametrize(
    "rules",
    [
        "RULE:^CN=(.*?)/$1/LU",
        "RULE:^CN=(.*?)/$1",
        "DEFAULTX",
        "foo",
        "DEFAULT DEFAULT",
        "RULE:^CN=(.*)$/$1/l",
    ],
)
def test_what_is_no_rule(rules: str) -> None:
    with pytest.raises(ValueError, match="expected RULE:pattern/replacement/"):
        parse_rules(rules)


@pytest.mark.parametrize("rules", ["RULE:[/x/", "RULE:CN=(.*/$1/L"])
def test_what_is_no_regular_expression(rules: str) -> None:
    with pytest.raises(ValueError, match="expected a regular expression, but "):
        parse_rules(rules)
