rule plan:
    output:
        f"{directory}/plan.json",
    params:
        directory=directory,
        settings=simulated,
        numerics=numerics,
    message:
        "plan"
    script:
        "../scripts/plan.py"
