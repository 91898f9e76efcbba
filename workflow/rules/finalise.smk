rule finalise:
    input:
        made_again,
        expand("{directory}/{dynamics}.done.json", directory=directory, dynamics=sweep.runs),
    output:
        f"{directory}/dataset.done.json",
    log:
        f"{directory}/jobs/finalise.json",
    resources:
        **modest,
    params:
        directory=subpath(output[0], parent=True),
        publish=sweep.publish,
    message:
        f"{sweep.name}: dataset"
    shell:
        sweeplib.commands.stages.call("finalise") + " {params.directory:q}"
