"""Commands, the stages of a sweep, and what a user sees of them."""
