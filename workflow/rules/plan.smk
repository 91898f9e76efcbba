rule plan:
    output:
        f"{directory}/plan.done.json",
    log:
        f"{directory}/jobs/plan.json",
    params:
        directory=subpath(output[0], parent=True),
        settings=simulated,
        numerics=numerics,
    message:
        "plan"
    shell:
        "{job} sweeplib.stages:plan {config[sweep]:q} {params.directory:q}"
