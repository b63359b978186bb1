"""Admission webhook configurations and admission policies."""
