"""The page in a real browser: what is drawn, what changes as a job runs, keys, narrow screens."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Route

from browser.conftest import WatchedPage
from hostile import hostile_folder
from simulated_store import EVIL, SimulatedStore
from weir.files.object_store import ObjectStore
from weir.job.history import History
from weir.page.document import report_page
from weir.page.server import serving
from weir.page.view import ViewReader
from weir.reliable.object_names import PLAN
from weir.wording import printable

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> SimulatedStore:
    """A job that runs: the tests let its time pass, in their order."""
    job = SimulatedStore(tmp_path_factory.mktemp("job"), seconds=16)
    job.pass_seconds(4)
    return job


@pytest.fixture(scope="module")
def address(job: SimulatedStore) -> Iterator[str]:
    with serving(job.store) as address:
        yield address


def test_a_job_is_drawn_and_its_figures_change(
    job: SimulatedStore, address: str, watched: WatchedPage
) -> None:
    page = watched.page
    page.goto(address)
    page.wait_for_selector("[data-node=s0]")
    assert page.locator(".pill").first.inner_text() == "running"
    nodes = page.locator(".node .name").all_inner_texts()
    assert {"Sale", "Visit", "Join", "Aggregate", "PerShop", "Both"} <= set(nodes)
    paths = page.eval_on_selector_all("path.edge", "all => all.map(p => p.getTotalLength())")
    assert len(paths) == page.evaluate("document.querySelectorAll('.graph .tag').length") >= 6
    assert all(length > 20 for length in paths)
    before = page.locator(".tile .figure").first.inner_text()
    tag = page.locator(".graph .tag").first.inner_text()
    figure, first_tag = page.locator(".tile .figure").first, page.locator(".graph .tag").first
    for _ in range(10):  # seconds; two are enough unless the machine is busy
        job.pass_second()
        page.wait_for_timeout(1100)
        if figure.inner_text() != before and first_tag.inner_text() != tag:
            break
    assert figure.inner_text() != before
    assert first_tag.inner_text() != tag
    assert page.locator(".graph .tag b").first.inner_text().endswith("/s")
    assert page.locator("path.edge.flows").count() > 0
    # Nothing but the page itself and views were asked for.
    assert {url.split("/", 3)[3].split("#")[0] for url in watched.requests} == {"", "view"}


def test_a_kill_appears_on_the_timeline_with_its_story(
    job: SimulatedStore, address: str, watched: WatchedPage
) -> None:
    page = watched.page
    page.goto(address)
    page.wait_for_selector(".lanes svg")
    assert page.locator("[data-episode]").count() == 0
    killed = job.kill_host()
    job.pass_seconds(4)
    page.wait_for_selector("[data-episode]")
    assert f"host {killed} lost" in (page.get_attribute("[data-episode]", "aria-label") or "")
    page.focus("[data-episode]")
    page.keyboard.press("Enter")
    story = page.locator("details[open]")
    assert f"host {killed} lost" in story.locator("summary").inner_text()
    told = story.locator("li").all_inner_texts()
    assert any("placed on" in line for line in told)
    assert any("runs again" in line for line in told)
    page.wait_for_timeout(1200)  # the next view comes, and the story stays open
    assert page.locator("details[open]").count() == 1
    assert page.locator(".chart .mark").count() > 0


def test_keys_reach_everything_and_vertices_are_shown_on_demand(
    job: SimulatedStore, address: str, watched: WatchedPage
) -> None:
    page = watched.page
    page.goto(address)
    page.wait_for_selector("[data-node=s0]")
    assert page.locator("#panel").count() == 0
    page.focus("[data-node=s0]")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.node") == "s1"
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.node") == "s2"
    page.keyboard.press("Enter")
    assert page.locator("#panel tbody tr").count() == 2
    assert page.get_attribute("[data-node=s2]", "aria-expanded") == "true"
    assert "split by the hash of" in page.locator("#panel").inner_text()
    page.focus("#panel button")
    page.keyboard.press("Enter")
    assert page.locator("#panel").count() == 0
    assert page.evaluate("document.activeElement.dataset.node") == "s2"
    page.focus(".chart svg")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".chart .tip:not([hidden])").count() == 1


def test_a_job_that_has_said_nothing_yet(tmp_path: Path, watched: WatchedPage) -> None:
    job = SimulatedStore(tmp_path)
    job.store.delete([PLAN])
    page = watched.page
    with serving(job.store) as address:
        page.goto(address)
        page.wait_for_selector(".pill")
        assert page.locator(".pill").first.inner_text() == "no report yet"
        assert "The plan is not known yet" in page.locator("#graph").inner_text()
        page.goto("about:blank")  # before the server goes


def test_who_has_no_token_sees_nothing_of_the_job(address: str, watched: WatchedPage) -> None:
    page = watched.page
    page.goto(address.split("#")[0] + "#token=guessed")
    page.wait_for_selector("#lost .note")
    assert "token" in page.locator("#lost").inner_text()
    assert page.locator(".node").count() == 0
    assert [c for c in watched.complaints if "401" not in c] == []
    watched.complaints.clear()  # the browser itself tells of the 401
    watched.may_be_lost = True


def test_what_cannot_be_drawn_is_said_to_be_a_bug_and_drawn_anew(
    address: str, watched: WatchedPage
) -> None:
    """Once a view is there that can be drawn, the page shows it."""
    page = watched.page

    def harm(route: Route) -> None:
        answer = route.fetch()
        view = answer.json()
        view["story"]["lines"] = None
        route.fulfill(response=answer, json=view)

    page.route("**/view", harm)
    page.goto(address)
    page.wait_for_selector("#lost .note")
    assert "which is a bug of Weir" in page.locator("#lost").inner_text()
    assert watched.complaints
    assert page.locator("#hosts").inner_text() == ""
    page.unroute("**/view")
    page.wait_for_selector("#hosts > *")
    page.wait_for_selector("#lost .note", state="detached")
    watched.complaints.clear()


def test_a_file_of_a_finished_job_on_all_screens(
    job: SimulatedStore, watched: WatchedPage, tmp_path: Path
) -> None:
    job.finish()
    file = tmp_path / "report.html"
    file.write_text(report_page(ViewReader(job.store, lambda: 0.0).read()), encoding="utf-8")
    page = watched.page
    for scheme, width in (("light", 1400), ("dark", 768), ("light", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 844})
        page.goto(file.as_uri())
        page.wait_for_selector("[data-node=s0]")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        assert page.evaluate(OVERLAPS) == [], width
    assert page.locator(".pill").first.inner_text() == "finished"
    # What users wrote is text.
    shown = EVIL.replace("\u202e", "\\u202e")
    assert page.locator("td", has_text="</script>").first.inner_text() == shown
    assert page.locator("img").count() == 0
    assert "<b>no number</b>" in page.locator("#turned").inner_text()
    assert {url.split(":")[0] for url in watched.requests} <= {"file", "data"}


def test_of_many_stages_the_highest_are_drawn_and_the_rest_counted(
    job: SimulatedStore, watched: WatchedPage, tmp_path: Path
) -> None:
    view = ViewReader(job.store, lambda: 0.0).read()
    plain = next(s for s in view.stages if not s.source)
    stages = [msgspec.structs.replace(plain, number=n, name=f"S{n}", links=()) for n in range(12)]
    samples = [
        msgspec.structs.replace(s, hosts=1, state=tuple(range(12)), unread=(1,) + (0,) * 11)
        for s in view.history.samples
    ]
    view = msgspec.structs.replace(
        view,
        stages=tuple(stages),
        outputs=(),
        delays=(),
        flows=(),
        history=History(samples=tuple(samples)),
    )
    file = tmp_path / "report.html"
    file.write_text(report_page(view), encoding="utf-8")
    watched.page.goto(file.as_uri())
    chart = watched.page.locator(".chart", has_text="Rows in state")
    legend = chart.locator(".legend li").all_inner_texts()
    assert legend == [*(f"{n} S{n}" for n in range(4, 12)), "and 3 more, which are lower"]
    colours = chart.locator(".legend i").evaluate_all("all => all.map((i) => i.style.background)")
    assert len(set(colours)) == 8
    waits = watched.page.locator(".chart", has_text="Rows that wait to be read")
    assert waits.locator("polyline").count() == 1 and waits.locator(".legend").count() == 0


def test_what_is_invisible_is_shown(watched: WatchedPage) -> None:
    """All that no terminal is sent, as it is shown there, and what hides without doing harm."""
    script = resources.files("weir.page").joinpath("assets/dom.js").read_text(encoding="utf-8")
    shown = dict[int, str](watched.page.evaluate(f"() => {{ {script} {ESCAPED} }}"))
    harmful = {c: printable(chr(c)) for c in range(0x110000) if printable(chr(c)) != chr(c)}
    assert harmful.items() <= shown.items()
    assert {0xAD, 0x200B, 0x2060, 0x3164, 0xFEFF, 0xE0041} <= shown.keys()
    assert shown[0xFEFF] == "\\ufeff"
    # What scripts and emoji need, and what is seen, stays.
    assert not shown.keys() & {0x09, 0x0A, 0x200C, 0x200D, 0xFE0F, 0x20, 0xA0, 0x600, 0x1F600}
    assert len(shown) < 10_000


ESCAPED = """
  const found = [];
  for (let c = 0; c < 0x110000; c++) {
    const text = String.fromCodePoint(c);
    if (clean(text) !== text) found.push([c, clean(text)]);
  }
  return found;
"""
"""Finds the characters that the page does not show as they are, and how it shows them."""


def test_a_store_that_is_meant_to_do_harm(watched: WatchedPage, tmp_path: Path) -> None:
    hostile_folder(tmp_path)
    store = ObjectStore(str(tmp_path / "store"))
    file = tmp_path / "report.html"
    page = report_page(ViewReader(store, lambda: 0.0).read())
    file.write_text(page, encoding="utf-8", errors="backslashreplace")
    watched.page.set_viewport_size({"width": 390, "height": 844})
    watched.page.goto(file.as_uri())
    watched.page.wait_for_selector(".pill")
    assert watched.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert watched.page.locator("#outputs td").count() > 0


OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.node')].map(
    (node) => ({ name: node.dataset.node, ...node.getBoundingClientRect().toJSON() }));
  return boxes.flatMap((a) => boxes.filter((b) => a.name < b.name
    && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  ).map((b) => a.name + b.name));
}"""
"""Finds the cards of the graph that lie over one another."""
