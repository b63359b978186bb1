"""OpenAPI: the types and paths of the API as documents, of version 2 and 3."""
