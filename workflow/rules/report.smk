rule report:
    input:
        made_again,
        f"{directory}/stages/finalise.done",
        expand("{directory}/stages/analyse.{name}.done", directory=directory, name=sweep.analyses),
        expand("{directory}/figures/{name}.png", directory=directory, name=sweep.figures),
    output:
        report(
            f"{directory}/report/index.html",
            caption="../report/page.rst",
            category="Report",
            labels={"sweep": sweep.name, "page": "interactive"},
        ),
    log:
        f"{directory}/journal/report.log",
    resources:
        **modest,
    params:
        directory=subpath(output[0], ancestor=2),
    message:
        f"{sweep.name}: report"
    shell:
        sweeplib.commands.stages.call("report") + " {params.directory:q}"
