rule figure:
    input:
        made_again,
        f"{directory}/stages/finalise.done",
        lambda wildcards: sweeplib.commands.stages.analysis_outputs(sweep, directory, wildcards.name),
    output:
        f"{directory}/figures/{{name}}.pdf",
        report(
            f"{directory}/figures/{{name}}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"sweep": sweep.name, "figure": "{name}"},
        ),
    log:
        f"{directory}/journal/figure.{{name}}.log",
    wildcard_constraints:
        name="|".join(sweep.figures),
    resources:
        **modest,
    params:
        directory=subpath(output[0], ancestor=2),
        caption=lambda wildcards: sweeplib.commands.stages.caption(sweep, wildcards.name),
    message:
        f"{sweep.name}: figure {{wildcards.name}}"
    shell:
        sweeplib.commands.stages.call("figure") + " {params.directory:q} {wildcards.name}"
