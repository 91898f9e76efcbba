"""Commands, the stages of a sweep, and what a user sees of them.

`cli` and the modules beside it declare the commands, `cli_options` the options that several have. What is not given on
a command line comes from the config, whose keys and defaults are in `config.models`, and those of clusters in
`engine.execution.clusters`. A command ends with 0; with 1 if a case or a stage failed; with 2 if it refused its input
(`engine.process.command`). `status` also has 3 and 4.
"""
