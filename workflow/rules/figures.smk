def caption(wildcards):
    import sweeplib.figures.figure  # only if there is a figure: the import adds a quarter of a second to a dry run

    return sweeplib.figures.figure.requested(wildcards.name, sweep.figures[wildcards.name])[0].caption


rule figure:
    input:
        f"{directory}/dataset.done.json",
        expand("{directory}/analysis/{name}.done.json", directory=directory, name=sweep.analyses),
    output:
        f"{directory}/figures/{{name}}.pdf",
        report(
            f"{directory}/figures/{{name}}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"sweep": sweep.name, "figure": "{name}"},
        ),
    wildcard_constraints:
        name="|".join(sweep.figures),
    params:
        directory=directory,
        options=lambda wildcards: sweep.drawing(wildcards.name),
        caption=caption,
        code=code("figure"),
        failed=lambda wildcards: failures["figure", wildcards.name],
    message:
        "figure {wildcards.name}"
    script:
        "../scripts/figure.py"
