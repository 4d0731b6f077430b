"""The vectorised ways of reading text give what the exact way gives, whatever the file holds."""

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weir.events.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP
from weir.files.csv import CsvFile
from weir.files.jsonl import JsonLines
from weir.files.text_chunks import cast_plain
from weir.kernels.expressions.casts import build_cast

FLAT = (
    ("vs", BIGINT),
    ("i", INT),
    ("f", DOUBLE),
    ("b", BOOLEAN),
    ("s", STRING),
    ("t", TIMESTAMP),
    ("dé", DATE),
)
RICH = (*FLAT, ("n", pa.decimal128(6, 2)), ("x", BINARY))
NESTED = (*RICH, ("l", pa.list_(BIGINT)), ("r", pa.struct([("a", DOUBLE)])))


class ExactJson(JsonLines):
    def _scanned(self, *_):
        return None

    def _decoded(self, *_):
        return None


class DecodedJson(JsonLines):
    def _scanned(self, *_):
        return None


class ExactCsv(CsvFile):
    def _plain(self, *_):
        return None


def contents(file, size, start=0):
    """All that chunks hold, so that −0.0 is not 0.0 and NaN is itself."""
    rows, bad, ctis, reads = [], [], [], [0]
    for chunk in file.chunks(size, start):
        chunk.rows.validate(full=True)
        table = {n: c.to_pylist() for n, c in zip(chunk.rows.schema.names, chunk.rows, strict=True)}
        values = list(zip(*table.values(), strict=True))
        rows += zip(chunk.offsets.tolist(), chunk.lines.tolist(), values, strict=True)
        bad += chunk.bad
        offsets = [*chunk.offsets.tolist(), chunk.stop]
        places = (offsets[place] for place in chunk.cti_indexes)
        ctis += zip(chunk.cti_times.tolist(), places, strict=True)
        reads.append(chunk.read)
    assert reads == sorted(reads) and reads[-1] <= file.size
    return repr((rows, bad, ctis, [(f.name, f.type) for f in chunk.rows.schema] if rows else []))


def same(tmp_path_factory, data, name, readers, columns, size, start):
    path = tmp_path_factory.mktemp("p") / name
    path.write_bytes(data)
    for needed in (None, ("vs", "s")):
        exact, *others = (reader(str(path), columns, needed) for reader in readers)
        expected = contents(exact, size, start)
        for other in others:
            assert contents(other, size, start) == expected


def lines(line, ends, **options):
    ended = st.tuples(line, st.sampled_from(ends)).map(lambda pair: pair[0] + pair[1])
    return st.lists(ended, max_size=6, **options).map(b"".join)


# --- jsonl ---------------------------------------------------------------------------------

GOOD_VALUES = {
    "vs": ["1", "-7", "0", str(2**63 - 1), str(-(2**63)), "null"],
    "i": ["1", str(2**31 - 1), "null"],
    "f": ["1", "0.1", "-0.0", "1e3", "2.5E-3", "123456789.123456789123456789", "1e-400", "null"],
    "b": ["true", "false", "null"],
    "s": ['"a"', '""', '"é, }{"', '"$"', '"// x"', "null"],
    "t": ['"2020-01-01T00:00:00Z"', '"2020-01-01"', '"2020-01-01 10:00"', "null"],
    "dé": ['"2020-02-29"', "null"],
    "ignored": ["1", '"x"', "true", "null", "1e400"],
}
ODD_VALUES = [
    "-0",
    "1.0",
    "1e400",
    "-1e999",
    str(2**63),
    "9" * 30,
    "0111",
    "-",
    "+1",
    ".5",
    "5.",
    "1e",
    "NaN",
    '"NaN"',
    '"Infinity"',
    '"nan"',
    '"0x1f"',
    "0x1f",
    "tru",
    "truee",
    "nul",
    "None",
    "'a'",
    '"\\n"',
    '"\\u00e9"',
    '"\\ud800"',
    '"\\u0000"',
    '"\\x"',
    '"a\tb"',
    '"a',
    "[]",
    "[1]",
    "[1,]",
    "{}",
    '{"a": 1}',
    "",
    '"2020-02-30"',
    '"2020-01-01T00:00:00+01:00"',
    '"2020-01-01T00:00:00z"',
    '"aGk="',
    '"aGk"',
    '"1.25"',
    "1.255",
    "1 2",
    "1}{",
    '"}\\n{"',
]
ODD_NAMES = [
    '"$cti"',
    '"\\u0024cti"',
    '"$\\u0063ti"',
    '"VS"',
    '"v\\u0073"',
    "vs",
    '""',
    '"n"',
    '"x"',
]
ODD_NAMES += ['"l"', '"r"', '"d\\u00e9"']
ODD_LINES = [
    b"",
    b" ",
    b"{}",
    b"{ }",
    b"[1]",
    b"3",
    b"x",
    b'{"vs": 1',
    b'{"vs":',
    b"1}",
    b'"',
    b"}",
    b"{",
    b'{"vs": 1} {"vs": 2}',
    b'{"vs": 1}, {"vs": 2}',
    b'{"vs": 1,}',
    b'{,"vs": 1}',
    b'{"vs" 1}',
    b'{"vs": 1}\x00',
    b"\xef\xbb\xbf{}",
    b'{"s": "\xff"}',
    b'{"ignored": "\xff"}',
    b'{"\xff": 1}',
    b'{"s": "\xed\xa0\x80"}',
    b'{"$cti": 5}',
    b'{"$cti": null}',
    b'{"$cti": "soon"}',
    b' {"vs": 4}',
    b'{"vs": 1}  ',
    b'\t{\t"vs"\t:\t1\t,\t"i"\t:\t2\t}\t',
    b'{"vs": 1}\r',
    b'{\r"vs": 1}',
    b"\x0c",
]

good_pairs = st.sampled_from(list(GOOD_VALUES)).flatmap(
    lambda name: st.sampled_from(GOOD_VALUES[name]).map(lambda value: (f'"{name}"', value))
)
any_names = st.sampled_from([*(f'"{name}"' for name in GOOD_VALUES), *ODD_NAMES])
any_values = st.sampled_from([v for values in GOOD_VALUES.values() for v in values] + ODD_VALUES)
good_objects = st.lists(good_pairs, max_size=8, unique_by=lambda pair: pair[0])
any_objects = st.lists(st.one_of(good_pairs, st.tuples(any_names, any_values)), max_size=5)


def written(pairs, colon=": ", comma=", "):
    return ("{" + comma.join(f"{name}{colon}{value}" for name, value in pairs) + "}").encode()


good_lines = st.builds(written, good_objects, st.sampled_from([":", ": ", " :\t"]))
odd_lines = st.one_of(st.builds(written, any_objects), st.sampled_from(ODD_LINES))
json_files = st.one_of(
    lines(good_lines, [b"\n"]),
    lines(good_lines, [b"\r\n"]),
    lines(st.one_of(good_lines, good_lines, odd_lines), [b"\n", b"\n", b"\n", b"\r\n", b"", b"\r"]),
)


@settings(max_examples=120, deadline=None)
@given(
    json_files,
    st.sampled_from((FLAT, RICH, NESTED)),
    st.sampled_from((1, 2, 99)),
    st.integers(0, 3),
)
@example(b'{"vs": 1} {"vs": 2}\n{"s": "}\n{"}\n{"vs": 3}\n', FLAT, 99, 0)
@example(b'{"vs": 1, "vs": null, "s": null, "s": "a"}\n', FLAT, 99, 0)
@example(b'{"vs":\n1}\n{"vs": 2} {"vs": 3}\n', FLAT, 99, 0)
@example(b'{"vs": 99999999999999999999, "vs": 1}\n{"f": 1e400, "f": 1}\n', FLAT, 99, 0)
def test_json_lines(tmp_path_factory, data, columns, size, start):
    readers = (ExactJson, DecodedJson, JsonLines)
    same(tmp_path_factory, data, "a.jsonl", readers, columns, size, start)


@settings(max_examples=100, deadline=None)
@given(good_objects, st.integers(0, 200), st.binary(max_size=2))
def test_json_lines_with_a_changed_byte(tmp_path_factory, pairs, place, instead):
    line = written(pairs)
    place %= len(line)
    data = b'{"vs": 1}\n' + line[:place] + instead + line[place + 1 :] + b'\n{"vs": 2}\n'
    readers = (ExactJson, DecodedJson, JsonLines)
    same(tmp_path_factory, data, "a.jsonl", readers, FLAT, 99, 0)


def test_each_odd_value_and_line(tmp_path_factory):
    """Every line is a block of its own."""
    odd = [written([(f'"{name}"', value)]) for name in GOOD_VALUES for value in ODD_VALUES]
    odd += [written([(name, "1")]) for name in ODD_NAMES] + ODD_LINES
    readers = (ExactJson, DecodedJson, JsonLines)
    same(tmp_path_factory, b"\n".join(odd), "a.jsonl", readers, FLAT, 1, 0)


# --- csv -----------------------------------------------------------------------------------

GOOD_FIELDS = {
    "vs": ["1", "-7", "", str(2**63 - 1), "007", '"5"'],
    "i": ["1", "", "-2147483648"],
    "f": ["1", "0.1", "-0", "1e3", ".5", "5.", "NaN", "-Infinity", "1e400", "", '"2.5"'],
    "b": ["true", "FALSE", "1", "0", ""],
    "s": ["a", "é", '""', "", '"a,b"', '"a""b"', '"""a"', '"a\nb"', '"a\r\nb"', " a ", "a b", "\t"],
    "t": ["2020-01-01T00:00:00Z", "2020-01-01", "", '"2020-01-01 10:00"'],
    "dé": ["2020-02-29", ""],
    "n": ["1.5", "-0", "1e2", ".5", "+1", ""],
    "x": ["aGk=", "", '"aGk="'],
    "ignored": ["", "z", '"q"'],
}
ODD_FIELDS = [
    "x",
    " 5",
    "5 ",
    "+5",
    "0x1f",
    "0X1F",
    "1_0",
    str(2**63),
    "9" * 30,
    "nan(1)",
    "inf",
    "+nan",
    "1d5",
    "1.005",
    "10000",
    "1e99999",
    "2020-02-30",
    "2020-01-01T00:00:00+01:00",
    "24:00",
    "aGk",
    "yes",
    'a"b',
    '"a"b',
    '"a',
    '"a" ',
    '"',
    "\x00",
    "\ufeff",
    "a\rb",
    '"a\rb"',
    "1,2",
]
WIDE = tuple(GOOD_FIELDS)

good_rows = st.tuples(*(st.sampled_from(GOOD_FIELDS[name]) for name in WIDE)).map(list)
odd_rows = st.builds(
    lambda row, place, field: [*row[:place], field, *row[place + 1 :]],
    good_rows,
    st.integers(0, len(WIDE) - 1),
    st.sampled_from(ODD_FIELDS),
)
csv_lines = st.one_of(
    good_rows.map(lambda row: ",".join(row).encode()),
    odd_rows.map(lambda row: ",".join(row).encode()),
    st.sampled_from(
        [b"", b" ", b"1", b",", b",,,,,,,,,", b"\xff,,,,,,,,,", b"\xef\xbb\xbf1,,,,,,,,,"]
    ),
)
csv_files = st.one_of(
    lines(good_rows.map(lambda row: ",".join(row).encode()), [b"\n"]),
    lines(csv_lines, [b"\n", b"\n", b"\r\n", b"", b"\r"]),
)


@settings(max_examples=120, deadline=None)
@given(csv_files, st.sampled_from((1, 2, 99)), st.integers(0, 3))
@example(b"1,,,,,,,,,\r2,,,,,,,,,\n\n", 99, 0)
def test_csv(tmp_path_factory, data, size, start):
    data = ",".join(WIDE).encode() + b"\n" + data
    same(tmp_path_factory, data, "a.csv", (ExactCsv, CsvFile), RICH, size, start)


def test_each_odd_field(tmp_path_factory):
    """Every record is a block of its own."""
    rows = []
    for place in range(len(WIDE)):
        for field in ODD_FIELDS:
            fields = ["1", *[""] * (len(WIDE) - 1)]
            fields[place] = field
            # A quote that is left open reaches to the next one.
            rows.append(",".join(fields) + ('"' if field.count('"') % 2 else ""))
    data = "\n".join([",".join(WIDE), *rows, ""]).encode()
    same(tmp_path_factory, data, "a.csv", (ExactCsv, CsvFile), RICH, 1, 0)


@pytest.mark.parametrize("dtype", [t for _, t in FLAT if t != STRING])
def test_plain_casts_are_casts(dtype):
    fields = [f for good in GOOD_FIELDS.values() for f in good] + ODD_FIELDS
    for text in dict.fromkeys(field.strip('"') for field in fields):
        column = cast_plain(pa.array([text, None]), dtype)
        exact = build_cast(STRING, dtype, lenient=True)(pa.array([text, None]))
        assert column is None or repr(column.to_pylist()) == repr(exact.to_pylist()), text


@settings(max_examples=40, deadline=None)
@given(lines(st.sampled_from([b"1", b"x", b"", b" ", b'"1"', b"\t"]), [b"\n", b"\r\n"]))
def test_csv_of_one_column(tmp_path_factory, data):
    columns = (("vs", STRING),)
    same(tmp_path_factory, b"vs\n" + data, "a.csv", (ExactCsv, CsvFile), columns, 99, 0)


# --- the plain ways are taken --------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_good_files_never_need_the_exact_way(tmp_path, monkeypatch, end):
    def fail(*_):
        raise AssertionError("a block was not plain")

    monkeypatch.setattr(JsonLines, "_exact", fail)
    monkeypatch.setattr(CsvFile, "_exact", fail)
    flat = {n: GOOD_VALUES[n][0] for n in GOOD_VALUES}
    line = written([(f'"{n}"', v) for n, v in flat.items()]).decode()
    row = ",".join(fields[0] for fields in GOOD_FIELDS.values())
    quoted = ",".join(fields[-1] for fields in GOOD_FIELDS.values())
    (tmp_path / "a.jsonl").write_bytes(3 * f"{line}{end}".encode())
    (tmp_path / "r.jsonl").write_bytes(3 * f'{{"vs": 1, "s": "\\u00e9", "l": [1]}}{end}'.encode())
    header = ",".join(WIDE)
    (tmp_path / "a.csv").write_bytes(f"{header}{end}{row}{end}{quoted}{end}{row}".encode())
    for reader, name, columns in (
        (CsvFile, "a.csv", RICH),
        (JsonLines, "r.jsonl", NESTED),
        (JsonLines, "a.jsonl", FLAT),
    ):
        file = reader(str(tmp_path / name), columns)
        assert sum(len(chunk.offsets) for chunk in file.chunks()) == 3
    monkeypatch.setattr(JsonLines, "_decoded", fail)
    assert len(list(JsonLines(str(tmp_path / "a.jsonl"), FLAT).chunks())) == 1
