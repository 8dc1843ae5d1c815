"""Encodings are detected by marks, validity and chardet, in bounded samples."""

from __future__ import annotations

import codecs
import io
import sys

import pytest

from neardup.errors import MissingExtraError
from neardup.io.documents.file_encodings import detect_encoding

TEXTS = {
    "cp1252": "Le café où l'été dernier nous étions allés à la fenêtre était fermé; ça n'a pas plu. ",
    "latin-1": "El niño comió la piña mañana y también después del corazón; ¿cómo está usted? ",
    "cp1250": "Zażółć gęślą jaźń, mówił książę o świcie; również żółwie są piękne. ",
    "iso8859-2": "Příliš žluťoučký kůň úpěl ďábelské ódy a šel domů. ",
    "cp1251": "Съешь же ещё этих мягких французских булок, да выпей чаю. Зимой в горах холодно. ",
    "koi8-r": "Съешь же ещё этих мягких французских булок, да выпей чаю. Зимой в горах холодно. ",
    "cp1253": "Η γρήγορη αλεπού πηδά πάνω από το τεμπέλικο σκυλί. ",
    "shift_jis": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "euc_jp": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "gb18030": "人之初性本善，性相近习相远。苟不教性乃迁，教之道贵以专。",
    "big5": "人之初性本善，性相近習相遠。苟不教性乃遷，教之道貴以專。",
    "euc_kr": "동해 물과 백두산이 마르고 닳도록 하느님이 보우하사 우리나라 만세.",
    "utf-16": "Le café est fermé. ",
    "utf-16-le": "Le café où l'été dernier nous étions allés. ",
    "utf-32": "Le café est fermé. ",
}


def found_in(content):
    return detect_encoding(io.BytesIO(content))


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("times", [1, 20])
def test_the_detected_encoding_decodes_the_text(encoding, times):
    text = TEXTS[encoding] * times
    content = text.encode(encoding)
    assert content.decode(found_in(content)) == text


@pytest.mark.parametrize("text", ["", "plain", "Zażółć gęślą", "\ufeffΗ γρήγορη", "tabs\tand\0NUL"])
def test_valid_utf8_is_never_detected_as_anything_else(text, monkeypatch):
    monkeypatch.setattr("neardup.io.documents.file_encodings._READ_AT_ONCE", 3)
    assert found_in(text.encode()) is None


def test_quotes_after_the_sample_are_decoded_too():
    text = "Le café où l'été dernier nous étions allés. " * 4000 + "“L’œuvre”"
    assert text.encode("cp1252").decode(found_in(text.encode("cp1252"))) == text
    euros = "Le café coûte 3 €, l'œuvre n'a pas plu à Françoise. " * 9
    assert euros.encode("iso8859-15").decode(found_in(euros.encode("iso8859-15"))) == euros


def test_a_mark_wins_over_what_follows():
    assert found_in(codecs.BOM_UTF8 + b"\xff\xff") is None
    assert found_in(codecs.BOM_UTF16_BE + b"\xd8\x00") == "utf-16"


@pytest.mark.parametrize("size", [60, 90, 163, 164, 242, 261])
def test_small_pictures_are_no_text(size):
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x0b\0\0\0\x0b\x08\x06\0\0\0\xa9\xac\x77\x26"
    gif = b"GIF89a\x14\0\x16\0\xc2\0\0\xff\xff\xff\xcc\xff\xff\x99\x99\x99\x33\x33\x33\0\0\0"
    for head in (png, gif):
        content = (head + b"\0\x01\x02\x03IDAT\0\x08\xd7c\xf8\xff" * 20)[:size]
        assert found_in(content) not in ("utf-16", "utf-16-le", "utf-16-be")


def test_binary_content_stays_utf8_and_is_rejected():
    assert found_in(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\0" + bytes(range(256)) * 9) is None


def test_only_a_sample_around_the_first_odd_byte_is_examined(monkeypatch):
    sizes = []

    def detect(sample, **_):
        sizes.append(len(sample))
        assert b"caf\xe9" in sample
        return {"encoding": "cp1252"}

    import chardet

    monkeypatch.setattr(chardet, "detect", detect)
    content = b"plain words. " * 300_000 + b"caf\xe9" + b" and so on" * 300_000
    assert found_in(content) == "cp1252"
    assert sizes[0] <= 64 << 10


def test_without_chardet_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "chardet", None)
    assert found_in(b"plain") is None
    with pytest.raises(MissingExtraError, match=r"pip install 'neardup\[encodings\]'"):
        found_in(b"caf\xe9 au lait")
