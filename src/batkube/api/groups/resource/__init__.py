"""Dynamic resource allocation: claims and the devices that slices offer."""
