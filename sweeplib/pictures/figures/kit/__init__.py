"""What figures are made of: panels, scales, legends, looks, text."""
