"""API requests and responses: routing, options, content negotiation and Status errors."""
