"""A report opened in a browser, and what tests read from it."""

import csv
import io
import json
import unicodedata
from pathlib import Path
from typing import Any

from PIL import Image

RESET = """() => {
    if (location.hash) history.replaceState(null, "", location.pathname);
    for (const input of document.querySelectorAll("input")) input.checked = input.defaultChecked;
    for (const input of document.querySelectorAll("input[type=range]")) input.value = input.defaultValue;
    for (const option of document.querySelectorAll("option")) option.selected = option.defaultSelected;
    for (const details of document.querySelectorAll("details")) details.open = false;
    for (const section of document.querySelectorAll("section.plot")) section.dispatchEvent(new Event("change"));
}"""
DRAWN = """([name, source]) => {
    const { ready } = document.querySelector(`section.plot[data-name=${name}]`).dataset;
    const drawn = Bokeh.documents.find((each) => each.roots()[0]?.id === ready);
    const entries = Object.entries(drawn.get_model_by_name(source).data);
    return Object.fromEntries(entries.map(([key, values]) => [key, [...values]]));
}"""
PLACE = """([name, row, source]) => {
    const { ready } = document.querySelector(`section.plot[data-name=${name}]`).dataset;
    const view = [...Bokeh.index.roots].find((each) => each.model.id === ready);
    const { x, y } = view.model.document.get_model_by_name(source).data;
    const { left, top } = view.canvas_view.el.getBoundingClientRect();
    return [left + view.frame.x_scale.compute(x[row]), top + view.frame.y_scale.compute(y[row])];
}"""


def in_a_line(text: str) -> str:
    """Return text in a line; letters of mathematics, which stand in lines of their own, as plain letters."""
    return " ".join(unicodedata.normalize("NFKC", text).split()).replace(" :", ":")


class Opened:
    """A page with all its plots drawn; `troubles` and `warnings` list the errors of the page."""

    def __init__(self, page: Any, path: Path, state: str = "") -> None:
        self.page = page
        self.troubles: list[str] = []
        self.warnings: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: message.type == "error" and self.troubles.append(message.text))
        page.on("console", lambda message: message.type == "warning" and self.warnings.append(message.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("requestfailed", lambda request: self.troubles.append(request.url))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri() + f"#{state}" * bool(state))
        for section in page.locator("section.plot").all():
            section.scroll_into_view_if_needed()
        page.locator("section.plot:not([data-ready])").first.wait_for(state="detached")

    def reset(self) -> None:
        """Reset every control to its initial value."""
        self.page.emulate_media(color_scheme="light")
        self.page.evaluate(RESET)

    def plot(self, name: str) -> Any:
        """The section of a plot."""
        return self.page.locator(f"section.plot[data-name={name}]")

    def menu(self, name: str, column: str) -> Any:
        """The menu that filters a column of a plot."""
        return self.plot(name).locator(f"select[data-column={column}]")

    def drawn(self, name: str, source: str = "points") -> dict[str, list[Any]]:
        """The data that a plot draws now."""
        found: dict[str, list[Any]] = self.page.evaluate(DRAWN, [name, source])
        return found

    def spec(self, name: str) -> dict[str, Any]:
        """What the page's script knows of a plot: what its axes, bars and colours are."""
        found: dict[str, Any] = json.loads(self.plot(name).locator("script[type='application/json']").inner_text())
        return dict(found["spec"])

    def hover(self, name: str, row: int) -> str:
        """Return the text of the tooltip at a point, with the mouse moved there."""
        x, y = self._place(name, row)
        self.page.mouse.move(x - 30, y - 30)
        self.page.mouse.move(x, y, steps=3)
        return self._tooltip()

    def tap(self, name: str, row: int) -> str:
        """Return the text of the tooltip at a point that was tapped."""
        self.page.touchscreen.tap(*self._place(name, row))
        return self._tooltip()

    def click(self, name: str, row: int) -> None:
        """Click a point."""
        self.page.mouse.click(*self._place(name, row))

    def is_painted(self, name: str, source: str, row: int) -> bool:
        """Whether the pixel at the place of a row of a source is clearly darker than the paper."""
        x, y = self._place(name, row, source)
        pixel = self.page.screenshot(clip={"x": round(x), "y": round(y), "width": 1, "height": 1})
        return max(Image.open(io.BytesIO(pixel)).convert("RGB").getpixel((0, 0))) < 220

    def _place(self, name: str, row: int, source: str = "points") -> tuple[float, float]:
        self.plot(name).locator(".canvas").scroll_into_view_if_needed()
        x, y = self.page.evaluate(PLACE, [name, row, source])
        return x, y

    def _tooltip(self) -> str:
        tooltip = self.page.locator(".bk-tooltip-content:visible").first
        tooltip.wait_for(state="visible", timeout=20_000)
        return in_a_line(tooltip.inner_text())

    def downloaded(self, section: Any) -> list[dict[str, str]]:
        """Return the rows of the CSV file that the section's button saves."""
        with self.page.expect_download() as download:
            section.locator("button.csv").click()
        text = Path(download.value.path()).read_text(encoding="utf-8-sig")
        return list(csv.DictReader(io.StringIO(text)))
