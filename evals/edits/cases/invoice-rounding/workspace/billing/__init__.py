"""Invoices of the workshop."""
