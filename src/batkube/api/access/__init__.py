"""Access: who sends a request, what that one may do, and how one asks about it."""
