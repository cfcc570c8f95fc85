"""Stations and tariff zones."""
