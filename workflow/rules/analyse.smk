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
        code=code("analyse"),
        failed=lambda wildcards: failures["analysis", wildcards.name],
    message:
        "analysis {wildcards.name}"
    script:
        "../scripts/analyse.py"
