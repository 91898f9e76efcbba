"""Pictures and pages: figures, the report, published values beside them."""
