rule plan:
    input:
        made_again,
    output:
        f"{directory}/plan.done.json",
    log:
        f"{directory}/jobs/plan.json",
    benchmark:
        f"{directory}/jobs/plan.tsv"
    resources:
        **modest,
    params:
        directory=subpath(output[0], parent=True),
        settings=simulated,
        numerics=numerics,
    message:
        f"{sweep.name}: plan"
    script:
        "../scripts/plan.py"
