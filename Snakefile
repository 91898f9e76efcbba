# From a sweep's YAML file to its report: snakemake --profile workflow/profiles/local --config sweep=config/NAME.yaml
import sys

import sweeplib.errors
import sweeplib.stages

try:
    config = sweeplib.stages.settings(config)
    sweep, directory = sweeplib.stages.loaded(config["sweep"], config["results"])
except sweeplib.errors.SweeplibError as error:
    print(error, file=sys.stderr)
    sys.exit(2)


report: "workflow/report/workflow.rst"


made = [*sweep.runs, "dataset", *(f"analysis/{name}" for name in sweep.analyses)]


rule all:
    input:
        f"{directory}/report/index.html",
        expand("{directory}/{name}.done.json", directory=directory, name=made),  # also if the report exists
    message:
        f"{sweep.name}: done"


if len(workflow.modifier_stack) == 1:  # not in a module of another workflow

    include: "workflow/rules/messages.smk"


include: "workflow/rules/triggers.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/finalise.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"
