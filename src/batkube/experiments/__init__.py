"""Experiments: several scenarios that answer one question, run in parallel and gathered into one table.

    file ─▶ description ─▶ grid ─▶ plan ─▶ executor ─▶ run folders ─▶ results.csv, timings.csv, experiment.json

A run's name contains a hash of all its inputs, so a run whose folder exists is finished. An experiment that was killed
resumes where it stopped, and one whose file has grown executes only the new points.
"""
