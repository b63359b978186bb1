"""Services: Endpoints, EndpointSlices and their mirroring."""
