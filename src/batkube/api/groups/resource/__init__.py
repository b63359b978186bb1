"""Dynamic resource allocation: ResourceClaims, DeviceClasses and ResourceSlices."""
