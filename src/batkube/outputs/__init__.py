"""What a run leaves behind, and the pictures and tables made of it."""
