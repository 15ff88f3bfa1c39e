"""Command line, environment and ini values, resolved once into a frozen `Settings`.

Precedence: command line, then environment, then ini file, then default.
"""
