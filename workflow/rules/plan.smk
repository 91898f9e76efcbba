rule plan:
    input:
        made_again,
    output:
        f"{directory}/plan.done.json",
    log:
        f"{directory}/jobs/plan.json",
    resources:
        **modest,
    params:
        directory=subpath(output[0], parent=True),
    message:
        f"{sweep.name}: plan"
    shell:
        sweeplib.commands.stages.call("plan") + " {params.directory:q}"
