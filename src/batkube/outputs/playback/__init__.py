"""Playback of a finished run: its nodes, jobs and pods at any instant, as states and as a stream of deltas."""
