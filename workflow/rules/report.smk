rule report:
    input:
        made_again,
        f"{directory}/dataset.done.json",
        expand("{directory}/analysis/{name}.done.json", directory=directory, name=sweep.analyses),
        expand("{directory}/figures/{name}.png", directory=directory, name=sweep.figures),
    output:
        report(
            f"{directory}/report/index.html",
            caption="../report/page.rst",
            category="Report",
            labels={"sweep": sweep.name, "page": "interactive"},
        ),
    log:
        f"{directory}/jobs/report.json",
    resources:
        **modest,
    params:
        directory=subpath(output[0], ancestor=2),
    message:
        f"{sweep.name}: report"
    shell:
        sweeplib.commands.stages.call("report") + " {params.directory:q}"
