"""What the runs came to: the tables that are written, and how they are read back."""
