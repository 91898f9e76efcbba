rule report:
    input:
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
        settings={key: value for key, value in settings.items() if key != "cluster"},
        code=code("report"),
        failed=sum(failures[each] for each in failures if each[0] not in ("analysis", "figure")),
    message:
        f"{sweep.name}: report"
    shell:
        sweeplib.stages.call("report", config["sweep"]) + " {params.directory:q}"
