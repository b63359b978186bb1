"""Building blocks of validation: names, quantities, addresses, metadata, and the list of errors."""
