# From a sweep's YAML file to its report: snakemake --profile workflow/profiles/local --config sweep=config/NAME.yaml
include: "workflow/Snakefile"
