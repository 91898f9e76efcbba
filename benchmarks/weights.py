"""SGD on the weights, per step, compared to the loops that a user would write, and the two floors of its work."""

import importlib.util
import math
from dataclasses import replace

import numpy as np

from benchmarks.chain import steps_of
from benchmarks.timing import Benchmark, Work
from sweeplib import Problem
from sweeplib.networks.numerics.random import fill_normals

RATE = 0.1


def _problem(d: int, p: int, k: int) -> Problem:
    return Problem(gamma=RATE, p=p, k=k, d=d, Delta=0.1, activation="erf", teacher_start="gaussian")


def numpy_loop(d: int, p: int, k: int, steps: int) -> Work:
    """Take steps with plain NumPy, one sample at a time."""
    from scipy.special import erf

    stream = np.random.default_rng(0)
    W, W_star = stream.normal(size=(p, d)), stream.normal(size=(k, d))

    def work() -> float:
        for _ in range(steps):
            x = stream.normal(size=d) / math.sqrt(d)
            lam, lam_star = W @ x, W_star @ x
            error = (
                erf(lam_star / math.sqrt(2)).mean() + math.sqrt(0.1) * stream.normal() - erf(lam / math.sqrt(2)).mean()
            )
            slope = math.sqrt(2 / math.pi) * np.exp(-(lam**2) / 2)
            W[:] += np.outer(RATE / p * error * slope, x)
        return steps

    return work


def torch_loop(d: int, p: int, k: int, steps: int) -> Work:
    """Take steps with PyTorch and its autograd, one sample at a time."""
    import torch

    torch.set_num_threads(1)
    W, W_star = torch.randn(p, d, dtype=torch.float64, requires_grad=True), torch.randn(k, d, dtype=torch.float64)

    def work() -> float:
        for _ in range(steps):
            x = torch.randn(d, dtype=torch.float64) / math.sqrt(d)
            label = torch.erf(W_star @ x / math.sqrt(2)).mean() + math.sqrt(0.1) * torch.randn((), dtype=torch.float64)
            loss = 0.5 * (label - torch.erf(W @ x / math.sqrt(2)).mean()) ** 2
            (gradient,) = torch.autograd.grad(loss, W)
            with torch.no_grad():
                W.sub_(RATE * gradient)
        return steps

    return work


def draws_and_products(d: int, p: int, k: int, steps: int) -> Work:
    """The draws of a step, and the multiply-adds of its two products with W and one with W*, measured alone by BLAS."""
    from scipy.linalg.blas import dgemv, dger

    stream = np.random.default_rng(0)
    W, W_star = np.asfortranarray(stream.normal(size=(d, p))), np.asfortranarray(stream.normal(size=(d, k)))
    x, c = np.empty(4 * ((d + 4) // 4)), np.full(p, 1e-9)
    sample = x[:d]

    def work() -> float:
        for step in range(steps):
            fill_normals(np.uint64(1), np.uint64(2), np.uint64(step), x)
            dgemv(1.0, W, sample, trans=1)
            dgemv(1.0, W_star, sample, trans=1)
            dger(1e-9, sample, c, a=W, overwrite_a=1)
        return steps

    return work


def two_products(n: int, d: int, p: int, steps: int) -> Work:
    """The two BLAS products of a step with the full batch, X Wᵀ and Cᵀ X."""
    stream = np.random.default_rng(0)
    X, W, C = stream.normal(size=(n, d)), stream.normal(size=(p, d)), stream.normal(size=(n, p))

    def work() -> float:
        for _ in range(steps):
            np.matmul(X, W.T)
            np.matmul(C.T, X)
        return steps

    return work


def _training_sets() -> list[Benchmark]:
    n, d, p, k = 2000, 1000, 4, 2
    full, small = (replace(_problem(d, p, k), samples=n, batch_size=size) for size in (n, 1))
    of_full, of_small = steps_of(full, "sgd", 1, 40), steps_of(small, "sgd", 1, 4000)
    size, products = f"n = {n}, d = {d}, p = {p}", two_products(n, d, p, 40)
    return [
        Benchmark(f"weights, full batch of {size}", "a step", of_full, floor=products, floor_is="two BLAS products"),
        Benchmark(f"weights, one sample of {size}", "a step", of_small),
    ]


def _sizes() -> list[Benchmark]:
    made = []
    for d, p, k, steps, reach in ((1000, 4, 2, 1000, 2.5e-6), (40, 800, 1, 4000, None), (100, 1000, 1, 4000, None)):
        size = (d, p, k)
        made.append(
            Benchmark(
                f"weights, erf, d = {d}, p = {p}, k = {k}",
                "a step",
                steps_of(_problem(*size), "sgd", 1, steps),
                numpy_loop(*size, steps),
                "NumPy loop",
                draws_and_products(*size, steps),
                "draws, BLAS products",
                reach,
            )
        )
    wide = _problem(100, 1000, 1)
    single = steps_of(wide, "sgd", 1, 4000, weights="float32")
    double = steps_of(wide, "sgd", 1, 4000)
    made.append(Benchmark("weights in float32, d = 100, p = 1000", "a step", single, double, "in float64"))
    if importlib.util.find_spec("torch"):
        made.append(
            Benchmark(
                "weights, erf, d = 1000, p = 4, k = 2, autograd",
                "a step",
                steps_of(_problem(1000, 4, 2), "sgd", 1, 1000),
                torch_loop(1000, 4, 2, 500),
                "PyTorch autograd loop",
            )
        )
    return [*made, *_training_sets()]


BENCHMARKS = _sizes()
