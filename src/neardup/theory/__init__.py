"""The mathematics: S-curve, families, the choice of a method, the textbook."""
