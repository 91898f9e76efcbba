"""Integrators of many systems of ordinary differential equations.

`integration` is what others use. It begins with `explicit`, whose steps are those of `dop853` with the tolerances of
`floors` and the progress of `solutions`, and goes on with `stiff` where these crawl.
"""
