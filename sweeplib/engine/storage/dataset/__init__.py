"""The labelled dataset, made of the rows of a run store."""
