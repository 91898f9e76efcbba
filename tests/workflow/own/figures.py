"""A plugin for tests: an analysis, the figure and the interactive plot that show it."""

from sweeplib.analysis import ANALYSES, Analysis
from sweeplib.pictures.figures import FIGURES, Chart, Figure

NEEDS = ("last_overlap",)


def last_overlap(ds):
    last = ds[["mean_overlap"]].sel(dynamics=["read_off"], activation="scaled").isel(time=-1, teacher=0)
    return last.mean("seed", keep_attrs=True).reset_coords(drop=True)


def last_overlaps(ds, analyses):
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing()
    axes = drawing.subplots()
    axes.plot(ds.gamma, analyses["last_overlap"].mean_overlap.squeeze())
    return drawing


def overlaps(ds, analyses):
    return Chart(x="gamma", y="mean_overlap", needs=NEEDS, title="Overlaps")


ANALYSES.register("last_overlap", Analysis("last_overlap", last_overlap, "The last overlap", overlaps=True))
FIGURES.register(
    "last_overlaps",
    Figure("last_overlaps", last_overlaps, "The last overlaps.", needs=NEEDS, interactive=overlaps),
)
