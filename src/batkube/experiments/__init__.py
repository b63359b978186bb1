"""Experiments: several scenarios that answer one question, run in parallel and gathered into one table.

    file ─▶ description ─▶ grid ─▶ plan ─▶ executor ─▶ run folders ─▶ results.csv, timings.csv, experiment.json

A run's name holds the hash of all that is given to it, so what is finished is known by its folder alone: an
experiment that was killed goes on where it was, and one whose file has grown runs only what is new.
"""
