"""What happens to pods once they are bound: kubelets, profiles, walltimes, outcomes."""
