"""What notebooks show of results and plans."""

import re
from html.parser import HTMLParser

import dask.array as da
import pytest

import udfdask as ud
from udfdask.explanation.html_table import html_table
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import NoOpUDF, StdDevUDF, SumUDF

X = da.ones((4, 6, 8, 8), chunks=(2, 6, 8, 8))


class Table(HTMLParser):
    """Texts of the cells of a table, row by row; fails on tags that are not closed in order."""

    def __init__(self, source):
        super().__init__()
        self.rows, self.open, self.texts = [], [], []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] in (["td"], ["th"]):
            self.rows[-1][-1] += data
        else:
            self.texts.append(data)


def test_a_lazy_result():
    with raise_if_dask_computes():
        table = Table(ud.run_udf(X, StdDevUDF())._repr_html_())
    assert table.texts == ["Result of StdDevUDF, lazy"]
    assert table.rows[0] == ["name", "kind", "shape", "dtype", "size", "chunks"]
    assert ["mean", "sig", "8 x 8", "float64", "512 B", "1 of 8 x 8"] in table.rows


def test_a_computed_result():
    table = Table(ud.run_udf(X, SumUDF()).compute()._repr_html_())
    assert table.texts == ["Result of SumUDF, computed"]
    assert table.rows[1:] == [["intensity", "sig", "8 x 8", "float64", "512 B"]]


def test_a_result_without_buffers():
    assert Table(ud.run_udf(X, NoOpUDF())._repr_html_()).rows == []


def test_a_plan_says_what_its_text_says():
    plan = ud.explain(X, [SumUDF(), StdDevUDF()])
    rows = Table(plan._repr_html_()).rows
    assert [row[0] for row in rows][:3] == ["data", "chunks", "reads"]
    assert [row[0] for row in rows][-2:] == ["SumUDF", "StdDevUDF"]
    squeezed = [re.sub(r"[\s:]", "", "".join(row)) for row in rows]
    assert squeezed == [re.sub(r"[\s:]", "", line) for line in str(plan).splitlines()]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", 'a"b', "a & b", "<&>"])
def test_texts_are_escaped(text):
    table = Table(html_table(text, (text,), [(text,)]))
    assert table.rows == [[text], [text]]
    assert table.texts == [text]
    assert "<script" not in html_table(text, (text,), [(text,)])


def test_a_class_of_a_strange_name():
    udf = type("<b>&Odd", (SumUDF,), {})()
    result = ud.run_udf(X, udf)
    assert Table(result._repr_html_()).texts == ["Result of <b>&Odd, lazy"]
    label, text = Table(result.explain()._repr_html_()).rows[-1]
    assert label == "<b>&Odd"
    assert text.startswith("process_tile on ")


def test_no_colours_of_its_own_and_nothing_from_elsewhere():
    source = ud.run_udf(X, SumUDF())._repr_html_() + ud.explain(X, SumUDF())._repr_html_()
    assert not re.search(r"https?:|src=|href=|url\(|@import|<script|<link", source)
    # what is not inherited from the theme is half transparent gray, seen on light and on dark
    colors = set(re.findall(r"(?:color|background): *([^;\"]+)", source))
    assert colors <= {"transparent", "rgba(128, 128, 128, 0.6)"}
