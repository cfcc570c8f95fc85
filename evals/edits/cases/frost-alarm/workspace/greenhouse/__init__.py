"""The thermometers of the nursery."""
