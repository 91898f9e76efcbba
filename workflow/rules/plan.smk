rule plan:
    output:
        f"{directory}/plan.json",
    params:
        directory=directory,
        settings=simulated,
        numerics=numerics,
    script:
        "../scripts/plan.py"
