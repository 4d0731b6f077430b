"""The live runtime as machines without I/O: signals and a clock in, commands out."""
