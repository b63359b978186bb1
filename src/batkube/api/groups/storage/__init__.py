"""StorageClasses, VolumeAttachments, CSIDrivers and CSINodes."""
