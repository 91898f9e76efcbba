rule figure:
    input:
        f"{directory}/dataset.done.json",
        expand("{directory}/analysis/{name}.done.json", directory=directory, name=sweep.analyses),
    output:
        f"{directory}/figures/{{name}}.pdf",
        f"{directory}/figures/{{name}}.png",
    wildcard_constraints:
        name="|".join(sweep.figures),
    params:
        directory=directory,
        options=lambda wildcards: sweep.figures[wildcards.name],
        code=code("figures", "theory"),
    script:
        "../scripts/figure.py"
