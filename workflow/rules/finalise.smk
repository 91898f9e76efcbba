rule finalise:
    input:
        made_again,
        expand("{directory}/stages/simulate.{dynamics}.done", directory=directory, dynamics=sweep.runs),
    output:
        f"{directory}/stages/finalise.done",
    log:
        f"{directory}/journal/finalise.log",
    resources:
        **modest,
    params:
        directory=subpath(output[0], ancestor=2),
        publish=sweep.publish,
    message:
        f"{sweep.name}: dataset"
    shell:
        sweeplib.commands.stages.call("finalise") + " {params.directory:q}"
