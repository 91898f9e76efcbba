# From a sweep's YAML file to its report: snakemake --profile workflow/profiles/local --config sweep=config/NAME.yaml
import sys

import sweeplib.errors
import sweeplib.stages

try:
    config = {"sweep": "config/quickstart.yaml", "results": "results"} | config
    if len(config) > 2:
        raise sweeplib.errors.InputError("give the sweep's file as --config sweep=FILE, without --configfile")
    sweep, directory = sweeplib.stages.loaded(config["sweep"], config["results"])
except sweeplib.errors.SweeplibError as error:
    print(error, file=sys.stderr)
    sys.exit(2)


report: "workflow/report/workflow.rst"


made = [*sweep.runs, "dataset", *(f"analysis/{name}" for name in sweep.analyses)]


include: "workflow/rules/messages.smk"
include: "workflow/rules/triggers.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/finalise.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        f"{directory}/report/index.html",
        expand("{directory}/{name}.done.json", directory=directory, name=made),  # also if the report exists
    message:
        "done"
