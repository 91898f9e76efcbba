"""The compiled steps of the dynamics: those of SGD on the weights are in `weights`, the rules of updates in `steps`."""
