"""What a user asks for: one run, described in full. Nothing here is read, built or started yet."""
