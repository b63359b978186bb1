"""PersistentVolumes and their claims, and volume sources, which pods use too."""
