"""What notebooks show of results and plans."""

import re
from html.parser import HTMLParser

import dask.array as da
import pytest

import udfdask as ud
from udfdask.explanation.html_table import html_table
from udfdask.testing import raise_if_dask_computes
from udfdask.udfs import StdDevUDF, SumUDF

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
