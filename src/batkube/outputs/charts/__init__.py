"""What all charts share: colours, axes, ticks."""
