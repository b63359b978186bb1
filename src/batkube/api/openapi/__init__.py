"""OpenAPI documents of the API, in version 2 (Swagger) and version 3."""
