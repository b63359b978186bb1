"""What every check of an object is made of: names, amounts, addresses, metadata, and the list of what is wrong."""
