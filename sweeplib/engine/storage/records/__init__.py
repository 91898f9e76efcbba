"""Records about results: manifests, locks, stages, where they come from; and files that are whole.

`stage_records` has what a stage did and made, `artefacts` from what, and what a workflow makes again; `locks` and
`holders` exclude; `files`, `links` and `file_system` write; `provenance` has versions and machines.
"""
