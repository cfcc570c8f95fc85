"""Barcodes of our jam."""
