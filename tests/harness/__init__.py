"""What the tests of the running program share: starting it and asking it in bytes."""
