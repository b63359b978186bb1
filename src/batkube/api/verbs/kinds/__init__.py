"""The served kinds: their behaviour, versions and encoding."""
