"""Coroutines over a Host: the papers' loops and the protocol that serves them."""
