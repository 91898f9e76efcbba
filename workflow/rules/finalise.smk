rule finalise:
    input:
        expand("{directory}/{dynamics}.done.json", directory=directory, dynamics=sweep.runs),
    output:
        f"{directory}/dataset.done.json",
    params:
        directory=directory,
        settings=simulated,
        publish=sweep.publish,
        numerics=numerics,
        code=code("simulate"),
    message:
        "dataset"
    script:
        "../scripts/finalise.py"
