rule analyse:
    input:
        f"{directory}/dataset.done.json",
    output:
        f"{directory}/analysis/{{name}}.done.json",
    log:
        f"{directory}/jobs/analyse.{{name}}.json",
    wildcard_constraints:
        name="|".join(sweep.analyses),
    params:
        directory=subpath(output[0], ancestor=2),
        options=lambda wildcards: sweep.analyses[wildcards.name],
        code=code("analyse"),
        failed=lambda wildcards: failures["analysis", wildcards.name],
    message:
        "analysis {wildcards.name}"
    shell:
        "{job} sweeplib.stages:analyse {config[sweep]:q} {params.directory:q} {wildcards.name}"
