# The run store is not an output of this rule: Snakemake deletes the outputs of failed jobs, the library resumes the store.
rule simulate:
    input:
        made_again,
        f"{directory}/stages/plan.done",
    output:
        expand("{directory}/stages/simulate.{dynamics}.done", directory=directory, dynamics=sweep.runs),
    log:
        f"{directory}/journal/simulate.log",
    threads: sweep.cluster.workers_here() or 1
    resources:
        mem_mb=lambda wildcards, threads: 4000 + 1000 * threads,
        runtime=1440,
    params:
        directory=subpath(output[0], ancestor=2),
    message:
        f"{sweep.name}: simulations"
    shell:
        sweeplib.commands.stages.call("simulate") + " {params.directory:q} {threads}"
