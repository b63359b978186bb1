"""Storage classes, attachments, CSI drivers and nodes."""
