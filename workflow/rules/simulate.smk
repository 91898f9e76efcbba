# The run store is no output of this rule: Snakemake deletes the outputs of failed jobs, the library resumes in the store.
rule simulate:
    input:
        f"{directory}/plan.json",
    output:
        f"{directory}/{{dynamics}}.done.json",
    wildcard_constraints:
        dynamics="|".join(sweep.runs),
    threads: sweep.cluster.expected_workers() or 1
    params:
        directory=directory,
        settings=lambda wildcards: {**physics, "dynamics": settings["dynamics"][wildcards.dynamics]},
        numerics=numerics,
    script:
        "../scripts/simulate.py"
