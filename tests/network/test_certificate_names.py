"""Names of certificates; what is expected here is what Java's X500Principal.getName() said."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.network.certificate_names import NoCertificate, subject

NAMES = [
    (
        "3010310e300c06035504030c05616c696365",
        "CN=alice",
    ),
    (
        "307e310b30090603550406130244453110300e06035504080c07426176617269613111300f06035504070c084d"
        "c3bc6e6368656e311f301d060355040a0c16412c20224222202b20433b203c443e2023455c463d473119301706"
        "0355040b0c10206c65616420616e6420747261696c20310e300c06035504030c052368617368",
        'CN=\\#hash,OU=\\ lead and trail\\ ,O=A\\, \\"B\\" '
        "\\+ C\\; \\<D\\> \\#E\\\\F\\=G,L=München,ST=Bavaria,C=DE",
    ),
    (
        "305831133011060a0992268993f22c64011916036f726731173015060a0992268993f22c64011916076578616d"
        "706c6531123010060a0992268993f22c6401010c0275313114301206092a864886f70d01090116056140622e63",
        "1.2.840.113549.1.9.1=#16056140622e63,UID=u1,DC=example,DC=org",
    ),
    (
        "302d312b3009060355040b0c026f75300c06035504030c056d756c7469301006092a864886f70d0109011603784079",
        "OU=ou+CN=multi+1.2.840.113549.1.9.1=#1603784079",
    ),
    (
        "3055310c300a06035504051303313233310b3009060355040c0c024472310a3008060355042a0c0147310a3008"
        "06035504040c01533112301006035504090c0931204d61696e205374310c300a06035504110c03393939",
        "2.5.4.17=#0c03393939,STREET=1 Main St,"
        "2.5.4.4=#0c0153,2.5.4.42=#0c0147,2.5.4.12=#0c024472,2.5.4.5=#1303313233",
    ),
    (
        "300d310b300906035504030c022020",
        "CN=\\ \\ ",
    ),
    (
        "30133111300f06035504030c086120206220202063",
        "CN=a  b   c",
    ),
    (
        "30153113301106035504031e0a0062006d0070002000fc",
        "CN=\\00b\\00m\\00p\\00 \\00�",
    ),
    (
        "301d310c300a06035504031403743631310d300b060355040a16046e756d31",
        "O=num1,CN=t61",
    ),
    (
        "3021311f301d06035504030c1674616209686572650a6e6c006e756cc3a920f09f9880",
        "CN=tab\there\nnl\\00nulé 😀",
    ),
    (
        "30373126302406035504030c1d2320696e73696465202320616e6420272061706f73202f20736c617368310d30"
        "0b060355040a0c0420237820",
        "O=\\ \\#x\\ ,CN=\\# inside \\# and ' apos / slash",
    ),
    (
        "3000",
        "",
    ),
    (
        "3020311e300806035504030c0142301206035504030c0b5550504552206c6f776572",
        "CN=B+CN=UPPER lower",
    ),
    (
        "3035310a3008060355042e130171310c300a060355042c0c03494949310a300806035504410c0170310d300b06"
        "042a0304050c036f776e",
        "1.2.3.4.5=#0c036f776e,2.5.4.65=#0c0170,2.5.4.44=#0c03494949,2.5.4.46=#130171",
    ),
    (
        "30133111300f06035504030c083d65713d20613d62",
        "CN=\\=eq\\= a\\=b",
    ),
]


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2)
    return bytes([tag]) + length + content


def certificate(name: bytes, *, versioned: bool = True) -> bytes:
    """The part of a certificate that is read, around the DER form of a name."""
    version = [der(0xA0, der(2, b"\2"))] if versioned else []
    sequence = der(0x30, b"")
    body = b"".join([*version, der(2, b"\1"), sequence, sequence, sequence, name, sequence])
    return der(0x30, der(0x30, body) + sequence + der(3, b""))


@pytest.mark.parametrize(("name", "printed"), NAMES)
@pytest.mark.parametrize("versioned", [True, False])
def test_names(name: str, printed: str, versioned: bool) -> None:
    assert subject(certificate(bytes.fromhex(name), versioned=versioned)) == printed


@given(st.integers(min_value=0, max_value=200), st.binary(max_size=8))
def test_other_bytes_are_no_certificate(cut: int, others: bytes) -> None:
    whole = certificate(bytes.fromhex(NAMES[1][0]))
    for data in (others, whole[:cut] + others):
        with suppress(NoCertificate):
            assert isinstance(subject(data), str)
