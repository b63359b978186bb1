"""The state of a simulated Batsim: jobs, profiles, machines, options (shared by `simulator` and `schedulers`)."""
