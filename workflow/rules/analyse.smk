rule analyse:
    input:
        made_again,
        f"{directory}/stages/finalise.done",
    output:
        f"{directory}/stages/analyse.{{name}}.done",
    log:
        f"{directory}/journal/analyse.{{name}}.log",
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
