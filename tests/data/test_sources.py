"""Tables from files: what is read, and every refusal."""

import gzip
import lzma

import numpy as np
import pytest

from colonnade.data.sources import read
from colonnade.data.tables import Texts, pick
from colonnade.errors import DataError

CSV = "id,age,maker,late\nf3,1.5,BOEING,1\nf1,,AIRBUS,0\nf2,3,,1\n"


@pytest.fixture
def write(tmp_path):
    def to_file(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return to_file


def test_csv_keeps_order_ids_labels_types_and_empty_cells(write):
    table = read(write("t.csv", CSV), id="id", label="late")
    assert (table.rows, table.names, table.ids) == (3, ("age", "maker"), ["f3", "f1", "f2"])
    np.testing.assert_array_equal(table.labels, [1, 0, 1])
    np.testing.assert_array_equal(table.cells["age"], [1.5, np.nan, 3])
    maker = table.cells["maker"]
    assert isinstance(maker, Texts)
    assert [maker.values[code] if code >= 0 else None for code in maker.codes] == ["BOEING", "AIRBUS", None]


@pytest.mark.parametrize("suffix, pack", [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_compressed_tables_read_the_same(write, suffix, pack):
    table = read(write("t.csv" + suffix, pack(CSV.encode())), id="id", label="late")
    assert table.ids == ["f3", "f1", "f2"]


def test_tab_separated_byte_order_mark_quotes_and_newlines(write):
    table = read(write("t.tsv", '\ufeffid\tnote\n1\t"a\tb\nc"\n'), id="id")
    assert table.cells["note"].values == ("a\tb\nc",)


def test_ids_stay_text_and_booleans_and_dates_have_a_meaning(write):
    table = read(write("t.csv", "id,flag,day\n007,true,2020-01-01\n7,false,2020-01-02\n"), id="id")
    assert table.ids == ["007", "7"]
    np.testing.assert_array_equal(table.cells["flag"], [1, 0])
    assert table.cells["day"].values == ("2020-01-01", "2020-01-02")


def test_a_type_that_changes_far_down_is_still_read_whole(write):
    rows = [f"{number},{number}" for number in range(200_000)] + ["200000,odd"]
    table = read(write("t.csv", "id,x\n" + "\n".join(rows)), id="id")
    assert isinstance(table.cells["x"], Texts)
    assert table.rows == 200_001


def test_columns_are_picked_in_the_order_asked_for(write):
    table = read(write("t.csv", "id,a,b,c,d\n1,1,2,3,4\n"), id="id", columns=["d", "a:c"])
    assert table.names == ("d", "a", "b", "c")


def test_text_labels(write):
    table = read(write("t.csv", "y,x\nyes,1\nno,2\n"), label="y")
    assert table.labels.tolist() == ["yes", "no"]
    assert table.ids is None


@pytest.mark.parametrize(
    "text, options, words",
    [
        ("", {}, "the file is empty"),
        ("id,x\n", {"id": "id"}, "no rows"),
        ("id,x\n1,2\n", {"id": "idd"}, "no id column 'idd': did you mean 'id'?"),
        ("id,x\n1,2\n", {"label": "y"}, "no label column 'y'"),
        ("id,distance\n1,2\n", {"columns": ["distanze"]}, "no column 'distanze': did you mean 'distance'?"),
        ("id,x\n1,2\n", {"columns": ["x", "x"]}, "column 'x' is named 2 times"),
        ("id,x,z\n1,2,3\n", {"columns": ["z:x"]}, "run backwards"),
        ("id,x\n1,2\n3,4\n5,6,7\n", {"id": "id"}, "line 4: 3 cells, the header has 2"),
        ("id,x\n1,2\n1,3\n2,1\n2,1\n", {"id": "id"}, "id '1' stands in 2 rows (and 1 more ids are repeated)"),
        ("id,x\n1,2\n,3\n", {"id": "id"}, "1 rows have an empty id 'id'"),
        ("id,y\n1,2\n2,\n", {"label": "y"}, "label 'y' is empty in 1 rows"),
        ("id,x,x\n1,2,3\n", {}, "2 columns called 'x'"),
        ("id;x\n1;2,5\n", {"id": "id"}, "separated by ';': save the table with ','"),
        ("id\tx\n1\t2\n", {}, "separated by tabs"),
        (",x\n0,2\n1,3\n", {}, "column 1 has no name (a row index that was saved too?)"),
        (b"id,x\n" + b"1,a\n" * 9_000 + b"1,\xff\xfe\n", {}, "not UTF-8"),
        (b"i\xff,x\n1,2\n", {}, "UTF-8"),
    ],
)
def test_a_bad_csv_is_one_sentence(write, text, options, words):
    with pytest.raises(DataError) as caught:
        read(write("t.csv", text), **options)
    assert words in str(caught.value)
    assert "t.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_without_a_name_is_left_out_of_a_list(write):
    assert read(write("t.csv", ",x\n0,2\n1,3\n"), columns=["x"]).names == ("x",)
    assert read(write("t.csv", ",x\n0,2\n1,3\n"), id="").ids == ["0", "1"]


def test_files_that_cannot_be_read(tmp_path, write):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"unknown kind of table '\.parquet'"):
        read(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="cannot be read"):
        read(write("t.csv.xz", b"no archive"))
    with pytest.raises(DataError, match="cannot be read"):
        read(write("t.csv.gz", gzip.compress(CSV.encode())[:-9]))


def test_libsvm_columns_are_named_by_their_numbers(write):
    table = read(write("t.svm", "+1 1:0.5 4:2 # note\n-1 2:1\n+1\n"), label="label")
    assert table.names == ("1", "2", "3", "4")
    np.testing.assert_array_equal(table.cells.toarray(), [[0.5, 0, 0, 2], [0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(table.labels, [1, -1, 1])
    assert table.select(["3:4"]).names == ("3", "4")
    assert table.select([4, 1]).cells.toarray()[0].tolist() == [2, 0.5]


def test_libsvm_numbers_may_start_at_zero_and_labels_may_be_left_alone(write):
    table = read(write("t.libsvm.gz", gzip.compress(b"0 0:1 2:3\n")))
    assert (table.names, table.labels) == (("0", "1", "2"), None)


@pytest.mark.parametrize(
    "text, words",
    [
        ("1 1:2\n1 x:2\n", "line 2: not a libsvm table"),
        ("1 1:2\n1 3:1 2:1\n", "line 2: not a libsvm table"),
        ("1 1:2\none 2:1\n", "line 2"),
        ("nan 1:2\n", "1 labels are NaN or infinite"),
        ("", "no rows"),
    ],
)
def test_a_bad_libsvm_file_is_one_sentence(write, text, words):
    with pytest.raises(DataError) as caught:
        read(write("t.svm", text), label="label")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_libsvm_has_no_ids(write):
    with pytest.raises(DataError, match="no id column"):
        read(write("t.svm", "1 1:2\n"), id="id")


def test_many_columns_are_not_listed_in_a_refusal():
    names = tuple(map(str, range(1, 1001)))
    with pytest.raises(DataError, match=r"it has 1 to 1000$"):
        pick(["1001"], names, "t.svm")
