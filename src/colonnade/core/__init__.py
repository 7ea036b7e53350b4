"""Pure numerics: no clock, no file, no link."""
