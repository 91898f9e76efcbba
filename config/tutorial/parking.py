from sweeplib import simulator


@simulator(coverage="1")
def parking(rng, length: float = 10.0, care: float = 0.0):
    gaps, cars = [length], 0
    while gaps:
        gap = gaps.pop()
        if gap >= 1:
            start = 0.0 if rng.random() < care else rng.uniform(0, gap - 1)
            gaps += [start, gap - 1 - start]
            cars += 1
    return cars / length
