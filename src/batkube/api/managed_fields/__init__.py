"""Who owns which field of an object, and what follows from it when one is applied."""
