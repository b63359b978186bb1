"""Objects out of text: JSON and YAML as Go reads them, then every value as its type in Go has it."""
