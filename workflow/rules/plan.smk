rule plan:
    output:
        f"{directory}/plan.done.json",
    log:
        f"{directory}/jobs/plan.json",
    benchmark:
        f"{directory}/jobs/plan.tsv"
    params:
        directory=subpath(output[0], parent=True),
        settings=simulated,
        numerics=numerics,
    message:
        "plan"
    script:
        "../scripts/plan.py"
