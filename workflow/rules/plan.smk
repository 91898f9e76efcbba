rule plan:
    output:
        f"{directory}/plan.json",
    params:
        directory=directory,
        settings={**physics, "dynamics": settings["dynamics"]},
        numerics=numerics,
    script:
        "../scripts/plan.py"
