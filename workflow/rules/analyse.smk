rule analyse:
    input:
        made_again,
        f"{directory}/dataset.done.json",
    output:
        f"{directory}/analysis/{{name}}.done.json",
    log:
        f"{directory}/jobs/analyse.{{name}}.json",
    wildcard_constraints:
        name="|".join(sweep.analyses),
    resources:
        **modest,
    params:
        directory=subpath(output[0], ancestor=2),
    message:
        f"{sweep.name}: analysis {{wildcards.name}}"
    shell:
        sweeplib.commands.stages.call("analyse") + " {params.directory:q} {wildcards.name}"
