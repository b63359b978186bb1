"""What an experiment's file says: its axes, its seeds, the figures it asks for."""
