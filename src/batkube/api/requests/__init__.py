"""Requests and answers: what is asked, by which path, with which options, and how a refusal is put."""
