rule analyse:
    input:
        f"{directory}/dataset.done.json",
    output:
        f"{directory}/analysis/{{name}}.done.json",
    wildcard_constraints:
        name="|".join(sweep.analyses),
    params:
        directory=directory,
        options=lambda wildcards: sweep.analyses[wildcards.name],
        code=code("analysis", "theory"),
    script:
        "../scripts/analyse.py"
