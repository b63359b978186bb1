"""Experiments: several scenarios that answer one question, run in parallel and gathered into one table.

    file ─▶ description ─▶ grid ─▶ plan ─▶ executor ─▶ run folders ─▶ results.csv, timings.csv, experiment.json

A run's name contains a hash of all its inputs, so its folder alone tells that it is finished. An experiment that was
killed resumes where it was, and one whose file has grown runs only the new points.
"""
