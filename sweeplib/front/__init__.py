"""A sweep as one command: Snakemake runs its stages, and a screen, or plain lines, say what they do."""
