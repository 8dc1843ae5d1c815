import pyarrow as pa

from neardup.io.documents.row_cache import RowCache


def batch(num_bytes):
    return pa.record_batch({"number": pa.array([1] * (num_bytes // 8))})


def test_pieces_are_returned_once():
    held = RowCache(1000, 300)
    held.put(3, batch(80))
    held.put(3, batch(160))
    assert [rows.num_rows for rows in held.take(3)] == [10, 20]
    assert held.take(3) is None


def test_nothing_is_held_if_not_everything_is_expected_to_fit():
    held = RowCache(1000, 1001)
    held.put(0, batch(80))
    assert held.take(0) is None


def test_rows_that_do_not_fit_drop_all_pieces():
    held = RowCache(1000, 10)
    held.put(0, batch(800))
    held.put(1, batch(240))
    held.put(2, batch(8))
    assert [held.take(piece) for piece in range(3)] == [None] * 3
