"""What all pages share: elements that cannot forget to escape, a frame, tables, drawings."""
