"""Records about results: manifests, locks, stages, where they come from; and files that are whole."""
