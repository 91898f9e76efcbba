"""Section, the base of the models of a config's sections."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of a config: refuses undeclared keys and values of other types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
