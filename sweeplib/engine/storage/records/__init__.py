"""Records about results: manifests, locks, jobs, where they come from; and files that are whole."""
