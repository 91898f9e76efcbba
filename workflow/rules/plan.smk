rule plan:
    output:
        f"{directory}/plan.done.json",
    params:
        directory=directory,
        settings=simulated,
        numerics=numerics,
    message:
        "plan"
    script:
        "../scripts/plan.py"
