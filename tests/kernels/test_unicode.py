import hashlib
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels.unicode import (
    BLOCK_SHIFT,
    BLOCK_SIZE,
    COMPOSES,
    DIGIT,
    FOLD_MASK,
    INVISIBLE,
    INVISIBLE_CHARACTERS,
    KIND_MASK,
    KIND_SHIFT,
    NFC_ATTENTION,
    NFC_MAYBE,
    NFC_NO,
    REPLACEMENT,
    SEPARATOR,
    SINGLE,
    SPACE,
    UNICODE_VERSION,
    UNKNOWN,
    WORD,
    load_table,
    normalise,
)

NUM_CODE_POINTS = 0x110000


def entry_of(char):
    table = load_table()
    block = int(table.index[ord(char) >> BLOCK_SHIFT])
    return int(table.entries[block * BLOCK_SIZE + ord(char) % BLOCK_SIZE])


def combining_of(char):
    table = load_table()
    block = int(table.combining_index[ord(char) >> BLOCK_SHIFT])
    return int(table.combining[block * BLOCK_SIZE + ord(char) % BLOCK_SIZE])


def fold(text):
    return "".join(
        "\ufffd" if entry_of(char) & UNKNOWN else chr((ord(char) + entry_of(char)) & FOLD_MASK)
        for char in text
    )


def kind_of(char):
    return (entry_of(char) >> KIND_SHIFT) & KIND_MASK


def all_entries():
    table = load_table()
    return table.entries.reshape(-1, BLOCK_SIZE)[table.index].ravel()


def all_combining():
    table = load_table()
    return table.combining.reshape(-1, BLOCK_SIZE)[table.combining_index].ravel()


def all_folded():
    folded = (np.arange(NUM_CODE_POINTS, dtype=np.uint32) + all_entries()) & FOLD_MASK
    return np.where(all_entries() & UNKNOWN, np.uint32(REPLACEMENT), folded)


def all_kinds():
    return (all_entries() >> KIND_SHIFT) & KIND_MASK


def chars_with(flag):
    return [chr(code_point) for code_point in np.flatnonzero(all_entries() & flag)]


def passes_quick_check(text):
    """The check the kernel makes: True means NFC for certain."""
    last_combining = 0
    last_starter_composes = False
    for char in text:
        entry = entry_of(char)
        combining = combining_of(char)
        if entry & NFC_NO or 0 < combining < last_combining:
            return False
        if entry & NFC_MAYBE and last_starter_composes:
            return False
        if combining == 0:
            last_starter_composes = bool(entry & COMPOSES)
        last_combining = combining
    return True


# Folding


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("\x00", "\x7f"),
        ("À", "Þ"),
        ("ß", "ÿ"),
        ("Ā", "į"),
        ("Ĳ", "ň"),
        ("Ŋ", "ž"),
        ("Έ", "Ί"),
        ("Α", "Ρ"),
        ("Σ", "Ϋ"),
        ("Ѐ", "ӿ"),
        ("Ա", "Ֆ"),
        ("Ⰰ", "ⱟ"),
        ("Ａ", "Ｚ"),
        ("𐐀", "𐑏"),
    ],
)
def test_folding_of_a_cased_alphabet_is_lower_case(first, last):
    alphabet = [chr(code_point) for code_point in range(ord(first), ord(last) + 1)]
    assert [fold(char) for char in alphabet] == [char.lower() for char in alphabet]


def test_folding_is_casefold_wherever_that_is_one_character():
    folded = all_folded()
    known = (all_entries() & UNKNOWN) == 0
    differing = [
        f"U+{code_point:04X}"
        for code_point in range(NUM_CODE_POINTS)
        if known[code_point]
        and len(chr(code_point).casefold()) == 1
        and ord(chr(code_point).casefold()) != folded[code_point]
    ]
    assert differing == []


@pytest.mark.parametrize("char", ["ß", "İ", "ŉ", "ﬁ", "ı", "ǰ"])
def test_a_character_that_folds_to_several_or_none_is_unchanged(char):
    assert fold(char) == char


@pytest.mark.parametrize(
    ("char", "folded"),
    [
        ("ẞ", "ß"),
        ("ς", "σ"),
        ("Σ", "σ"),
        ("\u212a", "k"),
        ("\u212b", "å"),
        ("ſ", "s"),
        ("µ", "μ"),
        ("ϐ", "β"),
    ],
)
def test_special_characters_fold_as_specified(char, folded):
    assert fold(char) == folded


def test_folding_twice_is_folding_once():
    folded = all_folded()
    assert np.array_equal(folded[folded], folded)


def test_folding_keeps_kind_and_digit():
    folded = all_folded()
    known = (all_entries() & UNKNOWN) == 0
    assert np.array_equal(all_kinds()[folded], all_kinds())
    assert np.array_equal((all_entries() & DIGIT)[folded][known], (all_entries() & DIGIT)[known])


# Kinds


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("aZéßøŋʼ", id="Latin"),
        pytest.param("αΩς", id="Greek"),
        pytest.param("жЯё", id="Cyrillic"),
        pytest.param("աև", id="Armenian"),
        pytest.param("აჰ", id="Georgian"),
        pytest.param("אשׁ", id="Hebrew"),
        pytest.param("عربيَّ", id="Arabic"),
        pytest.param("हिन्दी", id="Devanagari"),
        pytest.param("বাংলা", id="Bengali"),
        pytest.param("தமிழ்", id="Tamil"),
        pytest.param("తెలుగు", id="Telugu"),
        pytest.param("සිංහල", id="Sinhala"),
        pytest.param("བོད", id="Tibetan"),
        pytest.param("አማርኛ", id="Ethiopic"),
        pytest.param("ᏣᎳᎩ", id="Cherokee"),
        pytest.param("ᠮᠣᠩ", id="Mongolian"),
        pytest.param("한국어ᄒ", id="Hangul"),
        pytest.param("ㄅㄆ", id="Bopomofo"),
        pytest.param("ꆈ", id="Yi"),
        pytest.param("𐐀𐑏", id="Deseret"),
        pytest.param("Ａｚ", id="fullwidth Latin"),
        pytest.param("09٣९０", id="digits"),
        pytest.param("Ⅷⅷ", id="letter numbers"),
        pytest.param("\u0301\u20dd", id="lone marks"),
    ],
)
def test_letters_marks_and_digits_are_parts_of_words(text):
    assert {kind_of(char) for char in text} == {WORD}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("漢字々〇㐀𠀀豈", id="Han"),
        pytest.param("ひらがなゝ", id="Hiragana"),
        pytest.param("カタカナヽ", id="Katakana"),
        pytest.param("ｶﾅ", id="halfwidth Katakana"),
        pytest.param("ー\u3099\u309aｰﾞ〱〼〆", id="kana of no one script"),
        pytest.param("ภาษาไทย่ำ๓", id="Thai"),
        pytest.param("ລາວ່໓", id="Lao"),
        pytest.param("ខ្មែរ៣", id="Khmer"),
        pytest.param("မြန်မာ၃", id="Myanmar"),
    ],
)
def test_scripts_without_spaces_give_a_token_per_character(text):
    assert {kind_of(char) for char in text} == {SINGLE}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\x00\t\n\x7f\x85", id="controls"),
        pytest.param(" \xa0\u2003\u3000", id="spaces"),
        pytest.param(".,-_'’“”«»、。・।؟", id="punctuation"),
        pytest.param("+$€°©™♥😀", id="symbols"),
        pytest.param("²½①", id="other numbers"),
        pytest.param("Ⓐⓐ", id="circled letters"),
        pytest.param("\u00ad\u200b\u200d\ufeff", id="format characters"),
        pytest.param("\ue000\U000f0000\U0010fffd", id="private use"),
        pytest.param("\ufffd", id="replacement"),
    ],
)
def test_everything_else_separates(text):
    assert {kind_of(char) for char in text} == {SEPARATOR}


def test_class_agrees_with_the_interpreter_where_the_category_never_changed():
    kinds = all_kinds()
    entries = all_entries()
    differing = []
    for code_point in range(NUM_CODE_POINTS):
        category = unicodedata.category(chr(code_point))
        if category in ("Cn", "Cs") or unicodedata.ucd_3_2_0.category(chr(code_point)) != category:
            continue
        is_token = category[0] in "LM" or category in ("Nd", "Nl")
        found = (kinds[code_point] != SEPARATOR, bool(entries[code_point] & DIGIT))
        if found != (is_token, category == "Nd"):
            differing.append(f"U+{code_point:04X} {category}")
    assert differing == []


@pytest.mark.parametrize(
    "digits",
    ["0123456789", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "๐๑๒๓๔๕๖๗๘๙", "０１２３４５６７８９", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"],
)
def test_decimal_digits_of_any_script_are_digits(digits):
    assert all(entry_of(char) & DIGIT for char in digits)


@pytest.mark.parametrize("char", ["a", "²", "½", "Ⅷ", "①", "三", " "])
def test_other_numbers_and_letters_are_not_digits(char):
    assert not entry_of(char) & DIGIT


def test_spaces_are_those_of_the_interpreter_without_the_four_information_separators():
    expected = [
        chr(code_point) for code_point in range(NUM_CODE_POINTS) if chr(code_point).isspace()
    ]
    assert chars_with(SPACE) == [char for char in expected if char not in "\x1c\x1d\x1e\x1f"]


# Unknown code points


@pytest.mark.parametrize(
    "char",
    [
        pytest.param("\ud800", id="first surrogate"),
        pytest.param("\udfff", id="last surrogate"),
        pytest.param("\ufdd0", id="noncharacter in a block"),
        pytest.param("\uffff", id="last of plane 0"),
        pytest.param("\U0010ffff", id="last of all"),
        pytest.param("\u0378", id="never assigned"),
        pytest.param("\U00050000", id="empty plane"),
        pytest.param("\U0001fae8", id="new in Unicode 15.0"),
        pytest.param("\U00031350", id="new ideograph in Unicode 15.0"),
        pytest.param("\U0002ebf0", id="new ideograph in Unicode 15.1"),
        pytest.param("\u1c89", id="new upper case in Unicode 16.0"),
    ],
)
def test_unknown_code_point_separates_and_folds_to_the_replacement_character(char):
    assert (kind_of(char), fold(char)) == (SEPARATOR, "\ufffd")


def test_exactly_the_unknown_code_points_and_the_replacement_character_fold_to_it():
    folds_there = np.flatnonzero(all_folded() == REPLACEMENT)
    unknown = np.flatnonzero(all_entries() & UNKNOWN)
    assert folds_there.tolist() == sorted([*unknown.tolist(), REPLACEMENT])


def test_unknown_code_points_carry_no_other_flag():
    entries = all_entries()
    unknown = entries[(entries & UNKNOWN) != 0]
    assert np.all(unknown & ~np.uint32(FOLD_MASK) == UNKNOWN)
    assert not all_combining()[(entries & UNKNOWN) != 0].any()


def test_every_known_character_is_assigned_in_this_interpreter():
    known = np.flatnonzero((all_entries() & UNKNOWN) == 0)
    assert not [
        f"U+{code_point:04X}"
        for code_point in known
        if unicodedata.category(chr(code_point)) in ("Cn", "Cs")
    ]


@pytest.mark.parametrize(
    "char", ["a", "\ue000", "\U000f0000", "\U00030000", "\U0001fae0", "\u061d"]
)
def test_private_use_and_characters_up_to_unicode_14_are_known(char):
    assert not entry_of(char) & UNKNOWN


# Normalisation


def test_combining_classes_are_those_of_the_interpreter():
    known = np.flatnonzero((all_entries() & UNKNOWN) == 0)
    expected = [unicodedata.combining(chr(code_point)) for code_point in known]
    assert all_combining()[known].tolist() == expected


def test_nfc_quick_check_no_marks_exactly_the_characters_that_nfc_replaces():
    known = np.flatnonzero((all_entries() & UNKNOWN) == 0)
    expected = [
        chr(code_point)
        for code_point in known
        if not unicodedata.is_normalized("NFC", chr(code_point))
    ]
    assert chars_with(NFC_NO) == expected


def test_attention_is_a_combining_class_or_a_doubtful_quick_check():
    entries = all_entries()
    expected = (all_combining() != 0) | ((entries & (NFC_NO | NFC_MAYBE)) != 0)
    assert np.array_equal((entries & NFC_ATTENTION) != 0, expected)


def test_starter_that_does_not_compose_is_left_alone_by_every_mark():
    entries = all_entries()
    quiet = np.flatnonzero(
        ((entries & (COMPOSES | NFC_NO | UNKNOWN)) == 0) & (all_combining() == 0)
    )
    # Ideographs and private use are left out for time; none of them decomposes.
    starters = [
        chr(c)
        for c in quiet
        if not (0x3400 <= c < 0xA000 or 0x17000 <= c < 0x18D00 or c >= 0x20000)
    ]
    for mark in chars_with(NFC_MAYBE):
        assert unicodedata.is_normalized("NFC", " ".join(char + mark for char in starters)), hex(
            ord(mark)
        )


@pytest.mark.parametrize("char", ["a", "é", "か", "ᄀ", "가", "각", "न", "\u0bc6", "ا"])
def test_characters_that_a_mark_can_change_compose(char):
    assert entry_of(char) & COMPOSES


SCRIPTS_WITH_MARKS = (
    "aAeEoOuUnxéèêëẹệẽąåǖơớ"
    + "\u0300\u0301\u0302\u0303\u0304\u0307\u0308\u031b\u0323\u0327\u0328\u0331\u0338\u0345"
    "αΩήᾳ" + "\u0342\u0313\u0314" + "\u0340\u0341\u0343\u0344\u0374\u0387"
    "ᄀ하ᅵᆨᇂᄓᅶᇃ가각힣" + "\u302e\u302f"
    "नरळऩकड\u093c\u094d\u093f\u0958" + "কয়\u09bc\u09c7\u09be\u09d7\u09cb"
    "கொ\u0bc6\u0bc7\u0bbe\u0bd7\u0b92"
    + "ಕ\u0cc6\u0cc2\u0cd5\u0cbf\u0cca"
    + "\u0d46\u0d3e\u0d57"
    + "\u0dd9\u0dca\u0dcf\u0ddc"
    "かはがぱ\u3099\u309a"
    + "\u1025\u102e\u1026\u1037"
    + "\u0f71\u0f72\u0f73\u0f74\u0f80\u0fb2\u0fb3"
    "אשׁ\u05b7\u05bc\u05c1\ufb2a" + "اأآ\u0653\u0654\u0655\u064b\u0651\u0670" + "กุ\u0e38\u0e48"
    "豈\U0002f800"
    + "\U00011099\U000110ba"
    + "\U00011131\U00011127"
    + "\U0001d15e\U0001d165"
    + " .1\ufffd\ue000"
)


def texts_rich_in_marks():
    return st.text(alphabet=st.sampled_from(sorted(set(SCRIPTS_WITH_MARKS))), max_size=8)


@given(texts_rich_in_marks())
@example("\u00e9\u0323")
@example("\u0344")
@example("\uac00\u11a8")
@example("\u0bc6\u0bbe")
@example("\u09c7\u09bc\u09be")
def test_text_that_passes_the_quick_check_is_nfc(text):
    if passes_quick_check(text):
        assert unicodedata.is_normalized("NFC", text)


@given(
    st.text(
        alphabet=st.sampled_from([*chars_with(NFC_ATTENTION), *"aéeên가ᄀか \u0bc6\u09c7"]),
        max_size=4,
    )
)
def test_text_of_any_marks_that_passes_the_quick_check_is_nfc(text):
    if passes_quick_check(text):
        assert unicodedata.is_normalized("NFC", text)


@given(st.text(alphabet=st.characters(), max_size=6))
def test_quick_check_takes_an_unknown_code_point_for_the_replacement_character(text):
    replaced = "".join("\ufffd" if entry_of(char) & UNKNOWN else char for char in text)
    assert passes_quick_check(text) == passes_quick_check(replaced)
    if passes_quick_check(text):
        # Normalising drops invisible characters, too.
        assert (
            normalise(text)
            == normalise(replaced)
            == "".join(char for char in replaced if not entry_of(char) & INVISIBLE)
        )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The quick brown fox – naïve café, 50 €.", id="English"),
        pytest.param(
            "எல்லா மனிதப் பிறவிகளும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும் உரிமைகளிலும் சமமானவர்கள்.",
            id="Tamil",
        ),
        pytest.param(
            "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি আছে।",
            id="Bengali",
        ),
        pytest.param(
            "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। पढ़ाई",
            id="Hindi",
        ),
        pytest.param("മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും സ്വാതന്ത്ര്യത്തോടുംകൂടി ജനിച്ചവരാണ്.", id="Malayalam"),
        pytest.param(
            "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม", id="Thai"
        ),
        pytest.param(
            "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。パーティー",
            id="Japanese",
        ),
        pytest.param(
            "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.", id="Korean"
        ),
        pytest.param(
            "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
            id="Vietnamese",
        ),
        pytest.param("يُولَدُ جَمِيعُ النَّاسِ أَحْرَارًا مُتَسَاوِينَ فِي الْكَرَامَةِ وَالْحُقُوقِ.", id="Arabic"),
        pytest.param("בְּרֵאשִׁית בָּרָא אֱלֹהִים", id="Hebrew"),
        pytest.param(
            "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
            id="Greek",
        ),
    ],
)
def test_common_text_passes_the_quick_check(text):
    # Some keyboards enter Hebrew and Arabic marks out of order; normalise, so that the text is NFC
    # in any editor.
    assert passes_quick_check(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    "text",
    ["e\u0301", "か\u3099", "ᄒ\u1161\u11ab", "\u0bc6\u0bbe", "\u212b", "a\u0301\u0323", "é\u0323"],
)
def test_text_that_is_not_nfc_fails_the_quick_check(text):
    assert not passes_quick_check(text)


@pytest.mark.parametrize(
    "text",
    [
        "Tất cả mọi người",
        "café",
        "すべてがパン",
        "모든 인간은",
        "கொடு",
        "তাঁদের নিয়ে",
        "Ελεύθεροι",
        "\u1e69\u0301",
    ],
)
def test_normalise_turns_nfd_into_nfc(text):
    composed = unicodedata.normalize("NFC", text)
    assert normalise(unicodedata.normalize("NFD", text)) == composed


def test_normalise_replaces_each_unknown_code_point_by_one_replacement_character():
    assert (
        normalise("a\ud800\udfffb\U0001fae8\uffffé\u0378\u0301")
        == "a\ufffd\ufffdb\ufffd\ufffdé\ufffd\u0301"
    )


def test_normalise_keeps_the_replacement_character_and_private_use():
    assert normalise("\ufffd\ue000\U0010fffd") == "\ufffd\ue000\U0010fffd"


@pytest.mark.parametrize("text", ["", "plain ASCII\n", "\x00"])
def test_normalise_does_not_change_ascii(text):
    assert normalise(text) == text


@given(texts_rich_in_marks())
def test_normalise_twice_is_normalise_once(text):
    assert normalise(normalise(text)) == normalise(text)


# The table as a format


@pytest.mark.parametrize(
    ("separates_invisible", "expected"),
    [
        (False, "0958c8f3244edf8f4074665b25fc999dbd465c242ec832813bff475513d40957"),
        (True, "56f595796ffeccf9a0524209bb744a8b1d0380c310f64131f48a0ebdecd8b0c4"),
    ],
    ids=["fast-3", "fast-2"],
)
def test_the_unicode_table_matches_its_golden_digest(separates_invisible, expected):
    # A new table changes signatures: it needs a new format version, not only a new number here.
    digest = hashlib.sha256()
    for array in load_table(separates_invisible=separates_invisible):
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    assert UNICODE_VERSION == "14.0"
    assert digest.hexdigest() == expected


def test_invisible_characters_are_marked_and_no_normal_form_makes_one():
    marked = np.flatnonzero(all_entries() & INVISIBLE)
    assert sorted(map(chr, marked)) == sorted(INVISIBLE_CHARACTERS)
    assert set(all_kinds()[marked]) == {SEPARATOR}
    for point in set(range(sys.maxunicode + 1)) - set(marked.tolist()):
        assert not set(INVISIBLE_CHARACTERS) & set(unicodedata.normalize("NFKC", chr(point)))


def test_table_has_the_layout_that_kernels_expect():
    table = load_table()
    assert [array.dtype for array in table] == [np.uint16, np.uint32, np.uint16, np.uint8]
    assert table.index.shape == table.combining_index.shape == (NUM_CODE_POINTS // BLOCK_SIZE,)
    assert table.entries.size == (int(table.index.max()) + 1) * BLOCK_SIZE
    assert table.combining.size == (int(table.combining_index.max()) + 1) * BLOCK_SIZE
    assert all(array.flags.c_contiguous and not array.flags.writeable for array in table)


def test_equal_blocks_are_stored_once():
    table = load_table()
    for values in (table.entries, table.combining):
        blocks = [block.tobytes() for block in values.reshape(-1, BLOCK_SIZE)]
        assert len(set(blocks)) == len(blocks)


def test_table_is_loaded_once():
    assert load_table() is load_table()
