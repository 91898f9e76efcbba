"""Schelling's model of segregation, made of Mesa: who has too few neighbours of the own kind moves."""

from typing import Annotated

from mesa import Model
from mesa.discrete_space import CellAgent, OrthogonalMooreGrid
from pydantic import Field

from sweeplib import Result, simulator


class Person(CellAgent):
    """A person of one of two kinds, with a home."""

    def __init__(self, model, cell, kind):
        super().__init__(model)
        self.cell, self.kind = cell, kind

    @property
    def alike(self):
        """The part of the neighbours that are of the own kind; 1 without neighbours."""
        kinds = [other.kind for other in self.cell.neighborhood.agents]
        return sum(kind == self.kind for kind in kinds) / len(kinds) if kinds else 1.0

    def step(self):
        if self.alike < self.model.wish:
            self.cell = self.model.grid.select_random_empty_cell()


class Town(Model):
    """A town on a torus, nine homes in ten inhabited."""

    def __init__(self, seed, size, wish):
        super().__init__(seed=seed)
        self.grid, self.wish = OrthogonalMooreGrid((size, size), torus=True, random=self.random), wish
        homes = self.random.sample(list(self.grid.all_cells), k=size * size * 9 // 10)
        for number, home in enumerate(homes):
            Person(self, home, number % 2)


Wish = Annotated[float, Field(ge=0, le=1, description="wanted fraction of alike neighbours")]


@simulator(
    alike=Result("1", label="fraction of alike neighbours"), content=Result("1", label="fraction who would stay")
)
def schelling(seed: int, wish: Wish, size: int = 16, steps: int = 25):
    town = Town(seed, size, wish)
    for _ in range(steps):
        town.agents.shuffle_do("step")
    people = list(town.agents)
    alike = [person.alike for person in people]
    return {"alike": sum(alike) / len(people), "content": sum(part >= wish for part in alike) / len(people)}
