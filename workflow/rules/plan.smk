rule plan:
    input:
        made_again,
    output:
        f"{directory}/stages/plan.done",
    log:
        f"{directory}/journal/plan.log",
    resources:
        **modest,
    params:
        directory=subpath(output[0], ancestor=2),
    message:
        f"{sweep.name}: plan"
    shell:
        sweeplib.commands.stages.call("plan") + " {params.directory:q}"
