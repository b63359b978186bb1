"""Our own Batsim (`batkube batsim`): platform, submitters, job execution, output files."""
