# From a sweep's YAML file to its report: snakemake --profile workflow/profiles/local --config sweep=config/NAME.yaml
include: "workflow/Snakefile"


if len(workflow.modifier_stack) == 1:  # not in a module of another workflow, which has a target of its own
    workflow.default_target = "all"  # Snakemake takes none of an included file
