#!/usr/bin/env bash
# The driver of a sweep as a job of its own, for sites that end long processes on login nodes. In the folder of sweeplib:
#   sbatch workflow/profiles/slurm/driver.sh config/mine.yaml [RESULTS]
# It plans, submits the jobs of the workers (`cluster: {kind: slurm, ...}` in the sweep's file), and writes the report.
# When its time is over, submit it again: it continues. Add the partition and the account of your site.
#SBATCH --job-name=sweeplib-driver
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=24:00:00
#SBATCH --output=sweeplib-driver-%j.out
set -euo pipefail
exec make sweep PROFILE=workflow/profiles/slurm CONFIG="$1" RESULTS="${2:-results}"
