"""Networks: the simulator of two-layer networks, as the engine asks for one."""
